"""Plays one game between an agent and a baseline, and says what came of it. Judges nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from .baselines import BASELINES
from .dialogue import (
    ACTION_RULES,
    GUESS_RULES,
    Ask,
    Conversation,
    action_question,
    guess_question,
    read_action,
    read_guess,
)  # fmt: skip
from .engine import Game
from .table import picture, view

__all__ = ["TURN_SECONDS", "Match"]

TURN_SECONDS: Final = 300.0


class Match:
    """One case while it is played. ``ask`` puts messages to the agent, ``clock`` gives seconds."""

    def __init__(self, content: Mapping[str, Any], ask: Ask, clock: Callable[[], float]) -> None:
        opponent = content["opponent"]
        self.game = Game(content["line_ups"], content["steps"])
        self.seat: int = content["seat"]
        self.turns: list[dict[str, Any]] = []
        self.code: int | None = None
        """What was wrong where every try to act failed, as in ``dialogue``; None where that did not happen."""
        self._compat: bool = content["compat"]
        self._opponent = BASELINES[opponent["name"]](random.Random(opponent["seed"]))  # noqa: S311 - repeatable
        self._guessing = Conversation(GUESS_RULES, ask)
        self._acting = Conversation(ACTION_RULES, ask)
        self._clock = clock
        self._names = ("agent", opponent["name"]) if self.seat == 0 else (opponent["name"], "agent")

    async def play(self) -> None:
        """Play until somebody has won. Whatever ``ask`` raises ends it; ``record`` has the game so far."""
        while self.game.winner is None:
            if self.game.turn == self.seat:
                await self._agent()
            else:
                self._baseline()

    @property
    def tries(self) -> int:
        """How many replies there were."""
        asked = [turn[what] for turn in self.turns for what in ("guess", "action") if turn[what]]
        return sum(len(question["tries"]) for question in asked)

    def record(self) -> dict[str, Any]:
        """Return the game as plain JSON: its end, every row, every reply, and the last table as text."""
        game = self.game
        line_ups = [[fish.kind for fish in side] for side in game.sides]
        return {
            "winner": game.winner,
            "ended": game.ended,
            "hp": [[fish.hp for fish in side] for side in game.sides],
            "replay": game.replay,
            "turns": self.turns,
            "picture": picture(game.replay[-1], line_ups, self._names),
        }

    def _baseline(self) -> None:
        player = self.game.turn
        self.game.guess(player, self._opponent.guess(view(self.game, player)))
        if self.game.winner is None:
            self.game.act(player, self._opponent.act(view(self.game, player)))

    async def _agent(self) -> None:
        turn: dict[str, Any] = {"step": self.game.step, "guess": None, "action": None, "late": False}
        self.turns.append(turn)
        until = self._clock() + TURN_SECONDS

        def late() -> bool:
            turn["late"] = self._clock() > until
            return bool(turn["late"])

        seen = view(self.game, self.seat)
        guess = None
        if any(fish.kind is None for fish in seen.enemy):
            guessed = await self._guessing.question(guess_question(seen), lambda reply: read_guess(reply, seen), late)
            turn["guess"] = {"code": guessed.code, "tries": guessed.tries}
            guess = guessed.value
        if not turn["late"]:
            self.game.guess(self.seat, guess)
            if self.game.winner is not None:
                return
            now = view(self.game, self.seat)
            acted = await self._acting.question(
                action_question(now), lambda reply: read_action(reply, now, self._compat), late
            )
            turn["action"] = {"code": acted.code, "tries": acted.tries}
            if acted.value is not None and not turn["late"]:
                self.game.act(self.seat, acted.value)
                return
            self.code = None if turn["late"] else acted.code
        self.game.forfeit(self.seat, "late" if turn["late"] else "no legal action")
