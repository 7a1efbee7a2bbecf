"""The controls of durable-kv: programs whose verdict is known, for audits of the grader.

Each fault is the reference with one passage replaced, so that it differs from right in one way. ``target`` is the
dimension that must catch it; ``collateral`` are the others that it also breaks, as measured.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from casewarden_sdk.contract import Control
from casewarden_sdk.errors import ContractError

__all__ = ["FAULTS", "controls"]

_PROGRAMS: Final = Path(__file__).parent / "controls"


class Fault(NamedTuple):
    """One passage of the reference and what stands there instead."""

    name: str
    target: str
    right: str
    wrong: str
    collateral: tuple[str, ...] = ()


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
    return (
        Control("reference", "reference", {"main.py": reference}),
        Control("null-agent", "null", {"main.py": _program("null-agent")}),
        Control("crashing-agent", "crash", {"main.py": _program("crashing-agent")}),
        *(
            Control(fault.name, "fault", {"main.py": _plant(fault, reference)}, fault.target, fault.collateral)
            for fault in FAULTS
        ),
    )


def _program(name: str) -> str:
    return (_PROGRAMS / name / "main.py").read_text(encoding="utf-8")


def _plant(fault: Fault, reference: str) -> str:
    """Replace the one passage; a passage that is not there exactly once would plant nothing, or too much."""
    found = reference.count(fault.right)
    if found != 1:
        raise ContractError(f"fault {fault.name!r}: {fault.right!r} is {found} times in the reference; it must be once")
    return reference.replace(fault.right, fault.wrong)
