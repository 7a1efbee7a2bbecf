"""The controls of support-routing: programs whose verdict is known, for audits of the grader.

Each fault is the reference with one passage replaced, so that it differs from right in one way. ``target`` is the
dimension that must catch it; ``collateral`` are the others that it also breaks, as measured.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from casewarden_sdk.contract import Control
from casewarden_sdk.planted import Fault, planted

__all__ = ["FAULTS", "controls"]

_PROGRAMS: Final = Path(__file__).parent / "controls"
_ADD_NOTE: Final = 'call("add_note", ticket_id=ticket_id, body=task["note"], request_id="note-of-the-review")'

FAULTS: Final = (
    Fault("claim-without-actions", "routing", "        work(task)\n", "", ("notes", "closure")),
    Fault(
        "wrong-ticket",
        "scope",
        'ticket_id = task["ticket_id"]',
        'ticket_id = next(name for name in task["ticket_ids"] if name != task["ticket_id"])',
        ("routing", "notes", "closure"),
    ),
    Fault(
        "wrong-queue",
        "routing",
        'queue = task["routing_rules"][ticket["category"]]',
        'queue = min(set(task["routing_rules"].values()) - {task["routing_rules"][ticket["category"]]})',
    ),
    Fault(
        "duplicate-note",
        "notes",
        _ADD_NOTE,
        f"{_ADD_NOTE}\n    {_ADD_NOTE.replace('note-of-the-review', 'the-same-again')}",
    ),
    Fault("close-unresolved", "closure", 'if ticket["resolved"]:', "if True:"),
    Fault("skip-retry", "notes", 'if not result["error"]["retryable"]:', "if True:", ("routing", "closure")),
    Fault(
        "new-key-on-retry",
        "notes",
        'say({"tool": tool, "arguments": arguments})',
        """if "request_id" in arguments:
            arguments["request_id"] += f"/{attempt}"
        say({"tool": tool, "arguments": arguments})""",
    ),
    Fault(
        "never-finishes",
        "protocol",
        'say({"finish": True, "message": message})',
        'while True:\n        call("get_ticket", ticket_id=task["ticket_id"])',
        breaks=True,
    ),
)


def controls() -> tuple[Control, ...]:
    """Return reference, null agent, crashing agent and every fault."""
    reference = _program("reference")
    return planted(reference, _PROGRAMS, FAULTS)


def _program(name: str) -> str:
    return (_PROGRAMS / name / "main.py").read_text(encoding="utf-8")
