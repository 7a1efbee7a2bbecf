"""The two opponents of AgentBench: one that plays at random, one that deduces, kills and attacks all at once.

They draw from the ``random.Random`` that they are given and from nothing else, and see what a player sees.
"""

from __future__ import annotations

import random
from typing import Final

from .engine import ALLY_SKILL, AOE_SKILL, DEFLECTING, KINDS, Guess, Move
from .table import Seen, View

__all__ = ["BASELINES", "Deducing", "Opponent", "Random"]

_NORMAL_SHARE: Final = 0.3
_STARTING_ATTACK: Final = 200
_SAFE_HP: Final = 75


class Opponent:
    """A program that plays one side."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw

    def guess(self, view: View) -> Guess | None:
        """Return what to name, or nothing."""
        raise NotImplementedError

    def act(self, view: View) -> Move:
        """Return what to do."""
        raise NotImplementedError

    def _skill(self, view: View, fish: Seen) -> Move | None:
        """Return the active skill of a fish with a random target, None where it has none."""
        if fish.kind in AOE_SKILL:
            return Move(fish.position, "active", tuple(enemy.position for enemy in view.enemy))
        mates = [mate.position for mate in view.you if mate != fish]
        return Move(fish.position, "active", (self._draw.choice(mates),)) if mates else None


class Random(Opponent):
    """Baseline 1: any fish is anything; three attacks in ten are normal, the others are the active skill."""

    def guess(self, view: View) -> Guess | None:
        """Name anything anywhere; what is named already is left at that."""
        enemy, kind = self._draw.choice(view.enemy), self._draw.choice(KINDS)
        return None if enemy.kind else Guess(enemy.position, kind)

    def act(self, view: View) -> Move:
        """Do anything that is legal."""
        fish = self._draw.choice(view.you)
        normal = Move(fish.position, "normal", (self._draw.choice(view.enemy).position,))
        return normal if self._draw.random() < _NORMAL_SHARE else self._skill(view, fish) or normal


class Deducing(Opponent):
    """Baseline 2: names what the enemy gave away; kills, else hits all, else raises its attack, else strikes back."""

    def guess(self, view: View) -> Guess | None:
        """Name the fish that fits the fewest kinds."""
        unknown = [enemy for enemy in view.enemy if enemy.kind is None]
        if not unknown:
            return None
        fewest = min(len(enemy.possible) for enemy in unknown)
        enemy = self._draw.choice([enemy for enemy in unknown if len(enemy.possible) == fewest])
        return Guess(enemy.position, self._draw.choice(enemy.possible))

    def act(self, view: View) -> Move:
        """Take the first of the four ways that is open."""
        strongest = max(view.you, key=lambda fish: fish.attack or 0)
        dying = [enemy for enemy in view.enemy if enemy.hp <= _dealt(strongest, enemy, len(view.enemy))]
        if dying:
            return Move(strongest.position, "normal", (max(dying, key=lambda enemy: enemy.hp).position,))
        many = [fish for fish in view.you if fish.kind in AOE_SKILL]
        if many and len(view.enemy) >= 2:
            best = max(many, key=lambda fish: 70 if fish.kind == "spray" else (fish.attack or 0) * 35 // 100)
            return Move(best.position, "active", tuple(enemy.position for enemy in view.enemy))
        return _raised(view) or Move(strongest.position, "normal", (_threat(view),))


def _raised(view: View) -> Move | None:
    """Return the skill of a fish that raises its attack, where it has not yet and an ally can afford it."""
    for fish in view.you:
        mates = [mate for mate in view.you if mate != fish and mate.hp > _SAFE_HP]
        if fish.kind in ALLY_SKILL and mates and (fish.attack or 0) <= _STARTING_ATTACK:
            return Move(fish.position, "active", (max(mates, key=lambda mate: mate.hp).position,))
    return None


def _threat(view: View) -> int:
    """Return the enemy that acted last, or the weakest where that one is dead or none has."""
    last = view.enemy_action["move"]["actor"] if view.enemy_action else None
    weakest = min(view.enemy, key=lambda enemy: enemy.hp).position
    return next((enemy.position for enemy in view.enemy if enemy.position == last), weakest)


def _dealt(fish: Seen, enemy: Seen, enemies: int) -> int:
    """Return what a normal attack takes from an enemy, as far as it is known whether that one deflects."""
    damage = (fish.attack or 0) // 2
    deflects = enemies > 1 and set(enemy.possible) <= DEFLECTING
    return damage * 70 // 100 if deflects else damage


BASELINES: Final = {"baseline1": Random, "baseline2": Deducing}
