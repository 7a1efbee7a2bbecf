"""The cases of one seed: against each baseline, from each side, as many games as ``params.testTime`` says.

Version 1 draws who stands where and what the baseline's dice show, and deals no game that the witness loses: so every
case can be won, and luck alone decides none. ``params.compat: v0.2`` deals as AgentBench does: the fish in one order,
any dice.
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
        _case(draw, f"{name}-{side}-{copy}", {"name": name}, seat, compat)
        for name in BASELINES
        for seat, side in enumerate(_SIDES)
        for copy in range(1, copies + 1)
    ]


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


def _case(draw: random.Random, case_id: str, opponent: Mapping[str, Any], seat: int, compat: bool) -> Case:
    """Deal until the witness wins; with ``compat`` the first deal stands."""
    for _ in range(_DEALS):
        line_ups = [list(KINDS), list(KINDS)]
        if not compat:
            for line_up in line_ups:
                draw.shuffle(line_up)
        content = {
            "id": case_id,
            "seat": seat,
            "steps": STEPS,
            "line_ups": line_ups,
            "opponent": {**opponent, "seed": draw.getrandbits(48)},
            "compat": compat,
        }
        if compat or _witness_wins(content):
            return Case(case_id, DIMENSIONS, content)
    raise ContractError(f"{case_id}: the witness wins none of {_DEALS} games; the rules must have changed")


def _witness_wins(content: Mapping[str, Any]) -> bool:
    player = Player()

    async def ask(messages: Sequence[Mapping[str, str]]) -> str:
        return player.reply(messages[-1]["content"])

    match = Match(content, ask, lambda: 0.0)
    _run(match)
    return bool(match.game.winner == content["seat"])


def _run(match: Match) -> None:
    """Play to the end at once: the witness answers without waiting, so no event loop is needed, and none is started."""
    playing = match.play()
    try:
        playing.send(None)
    except StopIteration:
        return
    raise ContractError("the witness waited for something")
