"""The controls of durable-kv: programs whose verdict is known, for audits of the grader.

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

FAULTS: Final = (
    Fault(
        "ack-without-work",
        "basic",
        "response = service.answer(json.loads(line))",
        'response = {"ok": True}',
        ("validation", "transactions", "compare_swap", "persistence", "crash_recovery"),
    ),
    Fault("memory-only", "persistence", "self.log.append(writes)", "pass", ("crash_recovery",)),
    Fault(
        "partial-batch",
        "transactions",
        "return self.commit([self.write(operation) for operation in operations])",
        """for operation in operations:
            self.commit([self.write(operation)])
        return {"ok": True}""",
    ),
    Fault(
        "cas-always-wins",
        "compare_swap",
        "if key not in self.table or not self.matches(self.table[key], expected):",
        "if False:",
    ),
    Fault(
        "boolean-equals-one",
        "compare_swap",
        "return text == expected",
        "return json.loads(text) == json.loads(expected)",
    ),
    Fault(
        "delete-noop",
        "basic",
        "self.table.pop(key, None)",
        "pass",
        ("transactions", "persistence", "crash_recovery"),
    ),
    Fault("accept-nonstring-keys", "validation", "if not isinstance(key, str):", "if False:"),
    Fault("commit-on-exit", "crash_recovery", "        self.settle()\n", ""),
)


def controls() -> tuple[Control, ...]:
    """Return reference, null agent, crashing agent and every fault."""
    reference = _program("reference")
    return planted(reference, _PROGRAMS, FAULTS)


def _program(name: str) -> str:
    return (_PROGRAMS / name / "main.py").read_text(encoding="utf-8")
