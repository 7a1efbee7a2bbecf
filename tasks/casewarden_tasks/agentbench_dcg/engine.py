"""The rules of Aquawar: two sides of four fish, a guess and an action a turn, until one side has no fish left.

Pure: a game is its two line-ups and the calls made on it. Every call is a *phase* and leaves a row in ``replay``, plain
JSON, from which the whole game can be played again. Fish are named by position, 0 to 3; a player is 0 or 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

__all__ = [
    "ALLY_SKILL", "AOE_SKILL", "COUNTERING", "DEFLECTING", "FULL_HP", "KINDS", "STEPS",
    "Fish", "Game", "Guess", "IllegalMove", "Move",
]  # fmt: skip

KINDS: Final = ("spray", "flame", "eel", "sunfish")
AOE_SKILL: Final = frozenset({"spray", "eel"})
ALLY_SKILL: Final = frozenset({"flame", "sunfish"})
COUNTERING: Final = frozenset({"spray", "flame"})
DEFLECTING: Final = frozenset({"eel", "sunfish"})

FULL_HP: Final = 400
STEPS: Final = 128
_ATTACK: Final = 200
_GUESS_PENALTY: Final = 50
_SPRAY_DAMAGE: Final = 70
_ALLY_DAMAGE: Final = 75
_ALLY_RAISE: Final = 140
_COUNTER_BELOW: Final = 120
_COUNTER_DAMAGE: Final = 30
_ANGER_EACH: Final = 200
_ANGER_RAISE: Final = 40


class IllegalMove(ValueError):
    """A guess or a move that the rules do not allow; the game is as it was before."""


class Guess(NamedTuple):
    """The claim that the enemy's fish at ``position`` is a ``kind``."""

    position: int
    kind: str


class Move(NamedTuple):
    """What the fish at ``actor`` does. ``skill`` is ``normal`` or ``active``; ``targets`` are positions.

    A normal attack names one living enemy. The active skill of spray and eel names every living enemy, that of flame
    and sunfish one living ally.
    """

    actor: int
    skill: str
    targets: tuple[int, ...]


@dataclass
class Fish:
    """One fish as it is now. ``dead`` is set when an action is over, not in its middle.

    ``anger`` is the damage that an eel or sunfish has taken since its attack last rose.
    """

    kind: str
    hp: int = FULL_HP
    attack: int = _ATTACK
    dead: bool = False
    revealed: bool = False
    anger: int = 0


class Game:
    """One game. Player 0 moves first; a turn is ``guess`` and then ``act``.

    ``line_ups`` are the kinds of both sides by position. Choosing them are the first two phases; when more than
    ``steps`` phases have passed, the game is decided by what is left. ``winner`` and ``ended`` are None while it goes
    on; ``ended`` is ``defeat``, ``steps`` or what ``forfeit`` was told.
    """

    def __init__(self, line_ups: Sequence[Sequence[str]], steps: int = STEPS) -> None:
        for line_up in line_ups:
            if sorted(line_up) != sorted(KINDS):
                raise IllegalMove(f"line-up {list(line_up)!r}: name each of {', '.join(KINDS)} once")
        self.sides: tuple[list[Fish], list[Fish]] = (
            [Fish(kind) for kind in line_ups[0]],
            [Fish(kind) for kind in line_ups[1]],
        )
        self.turn = 0
        self.expects = "guess"
        self.step = 0
        self.winner: int | None = None
        self.ended: str | None = None
        self.replay: list[dict[str, Any]] = []
        self._limit = steps
        self._events: list[dict[str, Any]] = []
        for player in (0, 1):
            self._close(player, "pick", {"line_up": list(line_ups[player])})

    def living(self, player: int) -> list[int]:
        """Return the positions of a player's fish that are not dead."""
        return [position for position, fish in enumerate(self.sides[player]) if not fish.dead]

    def guess(self, player: int, guess: Guess | None) -> bool:
        """Name a fish of the enemy, or nothing; return whether it was right. Right ones cost all its fish 50 hp."""
        self._require(player, "guess")
        enemies = self.sides[1 - player]
        if guess is None:
            self._close(player, "guess", {"guess": None})
            return False
        if guess.kind not in KINDS:
            raise IllegalMove(f"guess {guess.kind!r}: name one of {', '.join(KINDS)}")
        self._require_living(1 - player, guess.position, "guess")
        if enemies[guess.position].revealed:
            raise IllegalMove(f"guess at position {guess.position}: that fish is known already")
        right = enemies[guess.position].kind == guess.kind
        if right:
            enemies[guess.position].revealed = True
            self._tell("reveal", 1 - player, guess.position, kind=guess.kind)
            for position in self.living(1 - player):
                self._hurt(1 - player, position, _GUESS_PENALTY, "guess")
        self._close(player, "guess", {"guess": [guess.position, guess.kind], "right": right})
        return right

    def act(self, player: int, move: Move) -> None:
        """Carry out a move; every hit is settled wholly before the next, in order of position."""
        self._require(player, "action")
        kind = self._check(player, move)
        fish = self.sides[player][move.actor]
        attack = fish.attack
        if move.skill == "normal":
            self._hit(player, move.actor, move.targets[0], fish.attack // 2)
        elif kind in ALLY_SKILL:
            self._hurt(player, move.targets[0], _ALLY_DAMAGE, "infight")
            self._raise(player, move.actor, _ALLY_RAISE)
        else:
            for position in sorted(move.targets):
                damage = _SPRAY_DAMAGE if kind == "spray" else fish.attack * 35 // 100
                self._hit(player, move.actor, position, damage)
        told = "normal" if move.skill == "normal" else "AOE" if kind in AOE_SKILL else "infight"
        moved = {"actor": move.actor, "attack": attack, "skill": told, "targets": sorted(move.targets)}
        self._close(player, "action", {"move": moved})

    def forfeit(self, player: int, why: str) -> None:
        """End the game with the other side's win."""
        self.winner, self.ended = 1 - player, why
        self._close(player, "forfeit", {"why": why})

    def _check(self, player: int, move: Move) -> str:
        self._require_living(player, move.actor, "actor")
        kind = self.sides[player][move.actor].kind
        if move.skill not in ("normal", "active"):
            raise IllegalMove(f"skill {move.skill!r}: use normal or active")
        if move.skill == "active" and kind in AOE_SKILL:
            if sorted(move.targets) != self.living(1 - player):
                raise IllegalMove(f"targets {list(move.targets)}: name every living enemy, {self.living(1 - player)}")
            return kind
        if len(move.targets) != 1:
            raise IllegalMove(f"targets {list(move.targets)}: name one")
        if move.skill == "normal":
            self._require_living(1 - player, move.targets[0], "target")
        else:
            self._require_living(player, move.targets[0], "target")
            if move.targets[0] == move.actor:
                raise IllegalMove(f"target {move.actor}: this skill is for an ally, not for the fish itself")
        return kind

    def _hit(self, player: int, actor: int, position: int, damage: int) -> None:
        """Damage with a source: it may be deflected, and a badly hurt fish is avenged."""
        enemy = 1 - player
        fish = self.sides[enemy][position]
        mates = [other for other in self.living(enemy) if other != position]
        if fish.kind in DEFLECTING and mates:
            share = damage * 30 // 100 // len(mates)
            self._tell("deflect", enemy, position, share=share, mates=mates)
            for mate in mates:
                self._hurt(enemy, mate, share, "share")
            damage = damage * 70 // 100
        self._hurt(enemy, position, damage, "hit")
        if fish.hp < _COUNTER_BELOW:
            for mate in mates:
                if self.sides[enemy][mate].kind in COUNTERING:
                    self._tell("counter", enemy, mate)
                    self._hurt(player, actor, _COUNTER_DAMAGE, "counter")

    def _hurt(self, player: int, position: int, damage: int, why: str) -> None:
        fish = self.sides[player][position]
        lost = min(damage, fish.hp)
        fish.hp -= lost
        self._tell("damage", player, position, lost=lost, why=why)
        if fish.kind in DEFLECTING:
            fish.anger += lost
            while fish.anger >= _ANGER_EACH:
                fish.anger -= _ANGER_EACH
                self._raise(player, position, _ANGER_RAISE)

    def _raise(self, player: int, position: int, attack: int) -> None:
        self.sides[player][position].attack += attack
        self._tell("raise", player, position, attack=attack)

    def _tell(self, event: str, player: int, position: int, **more: Any) -> None:
        self._events.append({"event": event, "player": player, "position": position, **more})

    def _require(self, player: int, phase: str) -> None:
        if self.winner is not None:
            raise IllegalMove("the game is over")
        if (player, phase) != (self.turn, self.expects):
            raise IllegalMove(f"{phase} of player {player}: it is player {self.turn}'s turn to {self.expects}")

    def _require_living(self, player: int, position: int, what: str) -> None:
        if position not in self.living(player):
            raise IllegalMove(f"{what} {position!r}: player {player} has living fish at {self.living(player)}")

    def _close(self, player: int, phase: str, fields: dict[str, Any]) -> None:
        """End a phase: deaths, winner, whose turn it is, and a row of the replay."""
        for owner, side in enumerate(self.sides):
            for position, fish in enumerate(side):
                if fish.hp == 0 and not fish.dead:
                    fish.dead = True
                    self._tell("death", owner, position)
        self.step += 1
        if self.winner is None and phase != "pick":
            self._decide(player)
        self.replay.append({"step": self.step, "player": player, "phase": phase, **fields, "events": self._events,
                            "fish": [[[fish.hp, fish.attack] for fish in side] for side in self.sides]})  # fmt: skip
        self._events = []
        if phase == "guess":
            self.expects = "action"
        elif phase == "action":
            self.expects, self.turn = "guess", 1 - player

    def _decide(self, player: int) -> None:
        alive = [bool(self.living(side)) for side in (0, 1)]
        if not all(alive):
            self.winner, self.ended = (player if not any(alive) else alive.index(True)), "defeat"
        elif self.step > self._limit:
            left = [
                (len(self.living(side)), sum(fish.hp for fish in fishes), max(fish.hp for fish in fishes))
                for side, fishes in enumerate(self.sides)
            ]
            self.winner, self.ended = int(left[0] <= left[1]), "steps"
