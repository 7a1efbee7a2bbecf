"""What a game's record is worth. The game is played again from the record's rows, by the rules of this version.

No record, whatever JSON it is, makes it raise: rows that are no game leave a game that nobody has won.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .engine import FULL_HP, Game, Guess, IllegalMove, Move

__all__ = ["Judged"]


class Judged:
    """A game that was played again. ``content`` is the case's, ``result`` the sample's."""

    def __init__(self, content: Mapping[str, Any], result: Any) -> None:
        fields = result if isinstance(result, dict) else {}
        self.game = _replayed(content, fields.get("replay"))
        self._seat: int = content["seat"]
        self._turns = [turn for turn in _list(fields.get("turns")) if isinstance(turn, dict)]

    def checks(self) -> dict[str, bool]:
        """Return the check of each dimension."""
        over = self.game.winner is not None
        lost_by_form = self.game.ended not in ("defeat", "steps") and self.game.winner != self._seat
        return {
            "win": self.game.winner == self._seat,
            "guessing": over and bool(self._turns) and all(_answered(turn.get("guess")) for turn in self._turns),
            "protocol": over and not lost_by_form,
        }

    def metrics(self) -> dict[str, float]:
        """Return what AgentBench measures of a game, for the agent's side."""
        enemies = self.game.sides[1 - self._seat]
        damage = sum(FULL_HP - fish.hp for fish in enemies)
        win, rate = int(self.game.winner == self._seat), damage / (FULL_HP * len(enemies))
        questions = [
            turn[what] for turn in self._turns for what in ("guess", "action") if isinstance(turn.get(what), dict)
        ]
        return {
            "win": win,
            "damage": damage,
            "damage_rate": rate,
            "score": 0.7 * win + min(0.3, 0.3 * rate),
            "takedown": sum(fish.dead for fish in enemies),
            "turns": len(self._turns),
            "tries": sum(len(_list(question.get("tries"))) for question in questions),
        }

    def explain(self) -> str:
        """Say what does not hold."""
        checks, game = self.checks(), self.game
        if game.winner is None:
            return "the game was not played to its end"
        told = []
        if not checks["win"]:
            hp = [sum(fish.hp for fish in game.sides[side]) for side in (self._seat, 1 - self._seat)]
            told.append(f"win: lost by {game.ended} at step {game.step}, with {hp[0]} against {hp[1]} hit points")
        if not checks["guessing"]:
            told.append("guessing: a question for a guess had no legal one in any of its tries")
        if not checks["protocol"]:
            told.append("protocol: a question for an action had no legal one in any of its tries, or came too late")
        return "; ".join(told)


def _replayed(content: Mapping[str, Any], rows: Any) -> Game:
    """Return the game that the rows of a replay tell of, as far as the rules allow them."""
    game = Game(content["line_ups"], content["steps"])
    for row in _list(rows):
        try:
            phase, player = row["phase"], row["player"]
            if phase == "guess":
                game.guess(player, None if row["guess"] is None else Guess(*row["guess"]))
            elif phase == "action":
                move = row["move"]
                skill = "normal" if move["skill"] == "normal" else "active"
                game.act(player, Move(move["actor"], skill, tuple(move["targets"])))
            elif phase == "forfeit" and game.winner is None:
                game.forfeit(int(player == 1), str(row["why"]))
        except (IllegalMove, KeyError, TypeError, ValueError, IndexError):
            break
    return game


def _answered(guess: Any) -> bool:
    """Tell whether a question for a guess was answered with one; where none was asked, nothing is missing."""
    return guess is None or (isinstance(guess, dict) and guess.get("code") == 0)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
