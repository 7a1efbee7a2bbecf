"""The verdict of a card game's record. The game is played again from the record's rows, by the rules of this version.

No record, whatever JSON it is, makes it raise: rows that are no game leave a game that nobody has won.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from casewarden_sdk.contract import Case, Verdict
from casewarden_sdk.errors import CandidateError

from .engine import FULL_HP, KINDS, Game, Guess, IllegalMove, Move

__all__ = ["grade", "measures", "replayed"]

_MISSING: Final[Mapping[str, Any]] = {}
_WHOLE: Final = FULL_HP * len(KINDS)


def grade(case: Case, record: Any) -> Verdict:
    """Return the verdict with all three checks and the measures of the game."""
    fields = record if isinstance(record, dict) else _MISSING
    fault = _fault(fields)
    game = replayed(case.content, fields.get("replay"))
    seat: int = case.content["seat"]
    turns = [turn for turn in _list(fields.get("turns")) if isinstance(turn, dict)]
    over = game.winner is not None
    checks = {
        "win": game.winner == seat,
        "guessing": over and bool(turns) and all(_answered(turn.get("guess")) for turn in turns),
        "protocol": over and fault is None and not (game.ended not in ("defeat", "steps") and game.winner != seat),
    }
    error = _error(game, seat, checks) if fault is None and not all(checks.values()) else None
    return Verdict.assessed(case, checks, error, fault, measures(game, seat, turns))


def replayed(content: Mapping[str, Any], rows: Any) -> Game:
    """Return the game that the rows of a replay tell of, as far as the rules allow them."""
    game = Game(content["line_ups"], content["steps"])
    for row in _list(rows):
        try:
            phase, player = row["phase"], row["player"]
            if phase == "guess":
                game.guess(player, None if row["guess"] is None else Guess(*row["guess"]))
            elif phase == "action":
                move = row["move"]
                game.act(player, Move(move["actor"], "normal" if move["skill"] == "normal" else "active",
                                      tuple(move["targets"])))  # fmt: skip
            elif phase == "forfeit" and game.winner is None:
                game.forfeit(int(player == 1), str(row["why"]))
        except (IllegalMove, KeyError, TypeError, ValueError, IndexError):
            break
    return game


def measures(game: Game, seat: int, turns: list[dict[str, Any]]) -> dict[str, str]:
    """Return what AgentBench measures of a game, for the agent's side, as decimal strings."""
    enemies = game.sides[1 - seat]
    damage = sum(FULL_HP - fish.hp for fish in enemies)
    win = int(game.winner == seat)
    rate = Decimal(damage) / _WHOLE
    score = Decimal("0.7") * win + min(Decimal("0.3"), Decimal("0.3") * rate)
    tries = sum(len(_list(turn[what].get("tries"))) for turn in turns for what in ("guess", "action")
                if isinstance(turn.get(what), dict))  # fmt: skip
    figures = {
        "win": Decimal(win),
        "damage": Decimal(damage),
        "damage_rate": rate,
        "score": score,
        "takedown": Decimal(sum(fish.dead for fish in enemies)),
        "turns": Decimal(len(turns)),
        "tries": Decimal(tries),
    }
    return {name: f"{value.normalize():f}" for name, value in figures.items()}


def _answered(guess: Any) -> bool:
    """Tell whether a question for a guess was answered with one; where none was asked, nothing is missing."""
    return guess is None or (isinstance(guess, dict) and guess.get("code") == 0)


def _error(game: Game, seat: int, checks: Mapping[str, bool]) -> str:
    if game.winner is None:
        return "the game was not played to its end"
    told = []
    if not checks["win"]:
        hp = [sum(fish.hp for fish in game.sides[side]) for side in (seat, 1 - seat)]
        told.append(f"win: lost by {game.ended} at step {game.step}, with {hp[0]} against {hp[1]} hit points")
    if not checks["guessing"]:
        told.append("guessing: a question for a guess had no guess in any of its tries")
    if not checks["protocol"]:
        told.append("protocol: a question for an action had no legal one in any of its tries, or came too late")
    return "; ".join(told)


def _fault(fields: Mapping[str, Any]) -> CandidateError | None:
    fault = fields.get("candidate_error")
    if isinstance(fault, dict) and isinstance(fault.get("reason"), str) and isinstance(fault.get("message"), str):
        return CandidateError(fault["reason"], fault["message"])
    return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
