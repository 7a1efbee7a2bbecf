"""What a player may see of a game, and the table as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .engine import ALLY_SKILL, AOE_SKILL, COUNTERING, DEFLECTING, FULL_HP, KINDS, Game

__all__ = ["Seen", "View", "picture", "view"]

_BAR: Final = 20


@dataclass(frozen=True)
class Seen:
    """A living fish as a player sees it. ``kind`` and ``attack`` are None for an enemy that was not named yet."""

    position: int
    hp: int
    attack: int | None
    kind: str | None
    possible: tuple[str, ...]


@dataclass(frozen=True)
class View:
    """A game from one player's side.

    ``you`` and ``enemy`` are the living fish. ``possible`` of an enemy's fish are the kinds that fit what was seen: its
    skills, its passives, wrong guesses, and who has been named. ``own_action``, ``enemy_action`` and ``own_guess`` are
    the last such rows of the replay, None before there is one. ``passives`` are those of the enemy since the player's
    own last action, as position and name.
    """

    you: tuple[Seen, ...]
    enemy: tuple[Seen, ...]
    own_action: dict[str, Any] | None = None
    enemy_action: dict[str, Any] | None = None
    own_guess: dict[str, Any] | None = None
    passives: tuple[tuple[int, str], ...] = field(default=())


def view(game: Game, player: int) -> View:
    """Return what ``player`` sees now."""
    own = [row for row in game.replay if row["player"] == player]
    enemy_rows = [row for row in game.replay if row["player"] != player]
    began = max((row["step"] for row in own if row["phase"] == "action"), default=0)
    passives = tuple(
        dict.fromkeys(
            (event["position"], event["event"])
            for row in game.replay
            if row["step"] >= began
            for event in row["events"]
            if event["player"] != player and event["event"] in ("counter", "deflect")
        )
    )
    possible = _possible(game, player)
    return View(
        tuple(
            Seen(position, fish.hp, fish.attack, fish.kind, (fish.kind,))
            for position, fish in enumerate(game.sides[player])
            if not fish.dead
        ),
        tuple(
            Seen(
                position,
                fish.hp,
                fish.attack if fish.revealed else None,
                fish.kind if fish.revealed else None,
                possible[position],
            )
            for position, fish in enumerate(game.sides[1 - player])
            if not fish.dead
        ),
        _last(own, "action"),
        _last(enemy_rows, "action"),
        _last(own, "guess"),
        passives,
    )


def _last(rows: Sequence[dict[str, Any]], phase: str) -> dict[str, Any] | None:
    return next((row for row in reversed(rows) if row["phase"] == phase), None)


def _possible(game: Game, player: int) -> list[tuple[str, ...]]:
    """Narrow the enemy's kinds by what was seen of each fish; a named kind is nobody else's."""
    fits = [set(KINDS) for _ in KINDS]
    for row in game.replay:
        if row["phase"] == "action" and row["player"] != player:
            skill = row["move"]["skill"]
            if skill != "normal":
                fits[row["move"]["actor"]] &= AOE_SKILL if skill == "AOE" else ALLY_SKILL
        if row["phase"] == "guess" and row["player"] == player and row["guess"] is not None and not row["right"]:
            fits[row["guess"][0]].discard(row["guess"][1])
        for event in row["events"]:
            if event["player"] != player and event["event"] == "counter":
                fits[event["position"]] &= COUNTERING
            elif event["player"] != player and event["event"] == "deflect":
                fits[event["position"]] &= DEFLECTING
    named = {fish.kind for fish in game.sides[1 - player] if fish.revealed}
    return [
        (fish.kind,) if fish.revealed else tuple(kind for kind in KINDS if kind in fits[position] - named)
        for position, fish in enumerate(game.sides[1 - player])
    ]


def picture(row: dict[str, Any], line_ups: Sequence[Sequence[str]], names: Sequence[str]) -> str:
    """Return the table after a row of the replay: a line per fish, its hit points as a bar."""
    lines = [f"step {row['step']}: {names[row['player']]}, {row['phase']}{_what(row)}"]
    for player, side in enumerate(row["fish"]):
        lines.append(f"  {names[player]}")
        for position, (hp, attack) in enumerate(side):
            bar = "#" * (-(-hp * _BAR // FULL_HP))
            state = f"hp {hp:3}  attack {attack:3}" if hp else "dead"
            lines.append(f"    {position} {line_ups[player][position]:<8}|{bar:<{_BAR}}| {state}")
    return "\n".join(lines)


def _what(row: dict[str, Any]) -> str:
    if row["phase"] == "guess":
        if row["guess"] is None:
            return ": none"
        return f": {row['guess'][1]} at {row['guess'][0]}, {'right' if row['right'] else 'wrong'}"
    if row["phase"] == "action":
        move = row["move"]
        return f": {move['actor']} {move['skill']} on {', '.join(map(str, move['targets']))}"
    return f": {row['why']}" if row["phase"] == "forfeit" else ""
