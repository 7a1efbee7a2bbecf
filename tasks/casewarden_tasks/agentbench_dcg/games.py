"""Which games there are: against each baseline, from each side, as many as ``test_time`` says.

Version 1 draws who stands where and what the baseline's dice show, and deals no game that the witness loses: so every
case can be won, and luck alone decides none. ``compat: v0.2`` deals as AgentBench does: the fish in one order, any
dice.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from casewarden_sdk.errors import ContractError

from .baselines import BASELINES
from .engine import KINDS, STEPS
from .match import Match
from .witness import Player

__all__ = ["SIDES", "count", "deal", "witness_wins"]

SIDES: Final = ("first", "second")
_DEALS: Final = 1000


def count(test_time: int) -> int:
    """Return how many games there are."""
    return len(BASELINES) * len(SIDES) * test_time


def deal(seed: int, index: int, test_time: int, compat: bool) -> dict[str, Any]:
    """Return the game of an index, in AgentBench's order: by baseline, then by side, then the copies."""
    group, copy = divmod(index, test_time)
    name, seat = list(BASELINES)[group // len(SIDES)], group % len(SIDES)
    draw = random.Random(f"{seed}/{index}")  # noqa: S311 - repeatable draws are the point
    for _ in range(_DEALS):
        line_ups = [list(KINDS), list(KINDS)]
        if not compat:
            for line_up in line_ups:
                draw.shuffle(line_up)
        game = {
            "title": f"{name}, {SIDES[seat]}, {copy + 1}",
            "seat": seat,
            "steps": STEPS,
            "line_ups": line_ups,
            "opponent": {"name": name, "seed": draw.getrandbits(48)},
            "compat": compat,
        }
        if compat or witness_wins(game):
            return game
    raise ContractError(f"game {index}: the witness wins none of {_DEALS} deals; the rules must have changed")


def witness_wins(game: Mapping[str, Any]) -> bool:
    """Tell whether the witness wins a game."""
    player = Player()

    async def ask(messages: Sequence[Mapping[str, str]]) -> str:
        return player.reply(messages[-1]["content"])

    match = Match(game, ask, lambda: 0.0)
    playing = match.play()
    # The witness answers without waiting, so the whole game is one step of the coroutine and needs no event loop.
    try:
        playing.send(None)
    except StopIteration:
        return bool(match.game.winner == game["seat"])
    raise RuntimeError("the witness waited for something")
