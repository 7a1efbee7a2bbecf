"""The cases of one seed: against each baseline, from each side, as many games as ``params.testTime`` says.

Version 1 draws who stands where and what the baseline's dice show, and deals no game that the witness loses: so every case
can be won, and luck alone decides none. ``params.compat: v0.2`` deals as AgentBench does: the fish in one order, any dice.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from casewarden_sdk.contract import Case
from casewarden_sdk.errors import ContractError

from .baselines import BASELINES
from .engine import KINDS, STEPS
from .match import Match
from .witness import Player

__all__ = ["DIMENSIONS", "generate"]

DIMENSIONS: Final = ("win", "guessing", "protocol")
_COMPAT: Final = "v0.2"
_TEST_TIME: Final = 5
_MOST: Final = 50
_DEALS: Final = 1000
_SIDES: Final = ("first", "second")


def generate(seed: int, params: Mapping[str, Any]) -> list[Case]:
    """Return the cases of ``seed``, always in the same order. ``ContractError`` for bad ``params``."""
    compat, copies = _checked(params)
    draw = random.Random(seed)  # noqa: S311 - repeatable draws are the point
    return [
        Case(case_id, DIMENSIONS, {"id": case_id, "compat": compat, "steps": STEPS, "seat": seat, **_deal(draw, name, seat, compat)})
        for name in BASELINES
        for seat, side in enumerate(_SIDES)
        for case_id in (f"{name}-{side}-{copy}" for copy in range(1, copies + 1))
    ]  # fmt: skip


def _checked(params: Mapping[str, Any]) -> tuple[bool, int]:
    for name in params:
        if name not in ("compat", "testTime"):
            raise ContractError(
                f"spec.task.params.{name}: card-game has the parameters compat and testTime only; remove it"
            )
    compat, copies = params.get("compat"), params.get("testTime", _TEST_TIME)
    if compat not in (None, _COMPAT):
        raise ContractError(f"spec.task.params.compat is {compat!r}; give {_COMPAT!r}, or leave it out")
    if not isinstance(copies, int) or isinstance(copies, bool) or not 1 <= copies <= _MOST:
        raise ContractError(f"spec.task.params.testTime is {copies!r}; give a whole number from 1 to {_MOST}")
    return compat is not None, copies


def _deal(draw: random.Random, name: str, seat: int, compat: bool) -> dict[str, Any]:
    for _ in range(_DEALS):
        line_ups = [list(KINDS), list(KINDS)]
        if not compat:
            for line_up in line_ups:
                draw.shuffle(line_up)
        dealt = {"line_ups": line_ups, "opponent": {"name": name, "seed": draw.getrandbits(48)}}
        if compat or _witness_wins({**dealt, "compat": False, "steps": STEPS, "seat": seat}):
            return dealt
    raise ContractError(f"no game of {name} at seat {seat} can be won by the witness in {_DEALS} deals")


def _witness_wins(content: Mapping[str, Any]) -> bool:
    player = Player()

    async def ask(messages: Sequence[Mapping[str, str]]) -> str:
        return str(player.reply(messages[-1]["content"]))

    match = Match(content, ask, lambda: 0.0)
    _run(match)
    return match.game.winner == content["seat"]


def _run(match: Match) -> None:
    """Play to the end at once: the witness answers without waiting, so no event loop is needed, and none is started."""
    playing = match.play()
    try:
        playing.send(None)
    except StopIteration:
        return
    raise ContractError("the witness waited for something")
