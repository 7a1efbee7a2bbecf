"""The programs that prove the grader: the witness as reference, and the witness with one thing wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from casewarden_sdk.contract import Control
from casewarden_sdk.planted import Fault, planted

__all__ = ["FAULTS", "controls"]

_HERE: Final = Path(__file__).parent
_GUESS: Final = 'return {"guess_type": kind, "target_position": -position}'
_BEST: Final = "max(totals, key=lambda move: totals[move])"
_ACTION: Final = 'return {"pick_fish": mine[actor]["kind"], "action": action, "target_position": target}'

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
    return planted(reference, _HERE / "controls", FAULTS)
