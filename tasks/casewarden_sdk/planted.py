"""Controls that are planted: a pack's reference with one passage replaced, so that it differs from right in one way."""

from __future__ import annotations

from pathlib import Path
from typing import Iterable, NamedTuple, Tuple

from .contract import Control
from .errors import ContractError

__all__ = ["Fault", "planted", "replaced"]


class Fault(NamedTuple):
    """One passage of the reference and what stands there instead.

    ``target`` is the dimension that must catch it, ``collateral`` are the others that it breaks too. ``breaks`` says
    that the fault is one of protocol: it ends as an agent error, and that is how it is caught.
    """

    name: str
    target: str
    right: str
    wrong: str
    collateral: Tuple[str, ...] = ()
    breaks: bool = False


def planted(reference: str, programs: Path, faults: Iterable[Fault]) -> Tuple[Control, ...]:
    """Return reference, null agent, crashing agent and every fault.

    ``programs`` has a folder for each of the two agents, with its ``main.py``. ``ContractError`` where a fault's
    passage is not in the reference exactly once, ``OSError`` where an agent cannot be read.
    """

    def program(name: str) -> str:
        return (programs / name / "main.py").read_text(encoding="utf-8")

    return (
        Control("reference", "reference", {"main.py": reference}),
        Control("null-agent", "null", {"main.py": program("null-agent")}),
        Control("crashing-agent", "crash", {"main.py": program("crashing-agent")}),
        *(
            Control(
                fault.name,
                "fault",
                {"main.py": _plant(fault, reference)},
                fault.target,
                fault.collateral,
                protocol_fault=fault.breaks,
            )
            for fault in faults
        ),
    )


def replaced(text: str, right: str, wrong: str) -> str:
    """Replace one passage; ``ContractError`` where it is not there exactly once: that plants nothing, or too much."""
    found = text.count(right)
    if found != 1:
        raise ContractError(f"{right!r} is {found} times in the reference; it must be once")
    return text.replace(right, wrong)


def _plant(fault: Fault, reference: str) -> str:
    try:
        return replaced(reference, fault.right, fault.wrong)
    except ContractError as error:
        raise ContractError(f"fault {fault.name!r}: {error}") from None
