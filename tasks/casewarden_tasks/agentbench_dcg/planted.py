"""The programs that prove the grader: the witness as reference, and the witness with one thing wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from casewarden_sdk.contract import Control
from casewarden_sdk.errors import ContractError

__all__ = ["FAULTS", "controls"]

_HERE: Final = Path(__file__).parent
_GUESS: Final = 'return {"guess_type": kind, "target_position": -position}'
_BEST: Final = "max(totals, key=lambda move: totals[move])"
_ACTION: Final = 'return {"pick_fish": mine[actor]["kind"], "action": action, "target_position": target}'


class Fault(NamedTuple):
    """One passage of the witness and what stands there instead.

    ``breaks`` says that the fault is one of protocol: it ends as an agent error, and that is how it is caught.
    """

    name: str
    target: str
    right: str
    wrong: str
    collateral: tuple[str, ...] = ()
    breaks: bool = False


FAULTS: Final = (
    Fault("plays-to-lose", "win", _BEST, "min(totals, key=lambda move: totals[move])"),
    Fault("passive", "win", _BEST, 'min(totals, key=lambda move: (move[1] == "normal", move))'),
    Fault("never-guesses", "guessing", _GUESS, "return None", ("win",)),
    Fault("guesses-a-shark", "guessing", _GUESS, _GUESS.replace("kind", '"shark"'), ("win",)),
    Fault("illegal-target", "protocol", _ACTION, _ACTION.replace('"target_position": target', '"target_position": 4')
          .replace('"action": action', '"action": "normal"'), ("win",), breaks=True),
    Fault("wrong-json", "protocol", _ACTION, 'return f"{actor} {action} {target}"', ("win",), breaks=True),
)  # fmt: skip


def controls() -> tuple[Control, ...]:
    """Return reference, null agent, crashing agent and every fault."""
    reference = (_HERE / "witness.py").read_text(encoding="utf-8")
    return (
        Control("reference", "reference", {"main.py": reference}),
        Control("null-agent", "null", {"main.py": _program("null-agent")}),
        Control("crashing-agent", "crash", {"main.py": _program("crashing-agent")}),
        *(
            Control(
                fault.name, "fault", {"main.py": _plant(fault, reference)}, fault.target, fault.collateral,
                protocol_fault=fault.breaks,
            )
            for fault in FAULTS
        ),
    )  # fmt: skip


def _program(name: str) -> str:
    return (_HERE / "controls" / name / "main.py").read_text(encoding="utf-8")


def _plant(fault: Fault, reference: str) -> str:
    """Replace the one passage; a passage that is not there exactly once would plant nothing, or too much."""
    found = reference.count(fault.right)
    if found != 1:
        raise ContractError(f"fault {fault.name!r}: {fault.right!r} is {found} times in the reference; it must be once")
    return reference.replace(fault.right, fault.wrong)
