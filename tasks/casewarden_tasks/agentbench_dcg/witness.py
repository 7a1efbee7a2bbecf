"""A player of Aquawar on standard input and output: the reference, and the witness that a game can be won.

It reads what any agent is told and nothing else, works out what the enemy's fish may be, tries each of its moves on
rules of its own, and takes the one that leaves the best table. Nothing is imported from the pack.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from typing import Any

Way = tuple[str, ...]
Side = list[dict[str, Any]]
Choice = tuple[int, str, int]

KINDS = ("spray", "flame", "eel", "sunfish")
AOE, INFIGHT = {"spray", "eel"}, {"flame", "sunfish"}
COUNTER, DEFLECT = {"spray", "flame"}, {"eel", "sunfish"}


class Player:
    """One game's memory: for each position of the enemy, the kinds that it may still be."""

    def __init__(self) -> None:
        self.fits: list[set[str]] = [set(KINDS) for _ in range(4)]

    def reply(self, question: str) -> str:
        """Return the reply to a question, the text of the last message."""
        lines = [line.split(": ", 1) for line in question.splitlines() if ": " in line]
        facts: dict[str, Any] = {name: json.loads(value) for name, value in lines}
        self.learn(facts)
        if "State" in facts:
            return json.dumps(self.act(facts["State"]))
        return json.dumps(self.guess(facts["Enemy positions that are alive and not named"]))

    def learn(self, facts: dict[str, Any]) -> None:
        """Narrow what the enemy's fish may be."""
        action, guess = facts.get("Enemy's last action"), facts.get("Your last guess")
        if action and action["skill"] != "normal":
            self.fits[action["position"]] &= AOE if action["skill"] == "AOE" else INFIGHT
        for seen in facts.get("Enemy's passives since your last action", ()):
            self.fits[seen["position"]] &= COUNTER if seen["passive"] == "counter" else DEFLECT
        if guess and not guess["right"]:
            self.fits[guess["target_position"]].discard(guess["guess_type"])
        if guess and guess["right"]:
            self.fits[guess["target_position"]] = {guess["guess_type"]}
        for fish in facts.get("State", {}).get("Enemy", ()):
            if fish["ID"] != "unknown":
                self.fits[fish["POSITION"]] = {fish["ID"]}

    def worlds(self) -> list[Way]:
        """Return every way in which the enemy's fish may stand."""
        ways = list(itertools.permutations(KINDS))
        return [way for way in ways if all(way[place] in self.fits[place] for place in range(4))] or ways

    def guess(self, positions: list[int]) -> Any:
        """Name the fish that is so in most of the ways."""
        worlds = self.worlds()
        claims = [(sum(way[place] == kind for way in worlds), -place, kind) for place in positions for kind in KINDS]
        _, position, kind = max(claims)
        return {"guess_type": kind, "target_position": -position}

    def act(self, state: dict[str, Any]) -> Any:
        """Take the move that is best on average over the ways."""
        mine = side_of(state["You"], None)
        totals: dict[Choice, float] = {}
        for way in self.worlds()[:6]:
            enemy = side_of(state["Enemy"], way)
            for move in moves(mine, enemy):
                totals[move] = totals.get(move, 0) + worth(*tried(mine, enemy, move))
        actor, action, target = max(totals, key=lambda move: totals[move])
        return {"pick_fish": mine[actor]["kind"], "action": action, "target_position": target}


def side_of(told: Side, way: Way | None) -> Side:
    """Return four fish by position; those that are not told of are dead."""
    side: Side = [{"kind": "none", "hp": 0, "attack": 0} for _ in range(4)]
    for fish in told:
        place = fish["POSITION"]
        attack = 200 if fish["ATK"] == "unknown" else fish["ATK"]
        side[place] = {"kind": way[place] if way else fish["ID"], "hp": fish["HP"], "attack": attack}
    return side


def living(side: Side) -> list[int]:
    """Return the places of the fish that live."""
    return [place for place, fish in enumerate(side) if fish["hp"] > 0]


def moves(mine: Side, enemy: Side) -> Iterator[Choice]:
    """Yield every legal move as actor, action and target."""
    for actor in living(mine):
        for target in living(enemy):
            yield actor, "normal", target
        if mine[actor]["kind"] in AOE:
            yield actor, "active", 0
        else:
            for ally in living(mine):
                if ally != actor:
                    yield actor, "active", ally


def tried(mine: Side, enemy: Side, move: Choice) -> tuple[Side, Side]:
    """Return both sides as they are after a move."""
    mine, enemy = [dict(fish) for fish in mine], [dict(fish) for fish in enemy]
    actor, action, target = move
    fish, alive = mine[actor], living(enemy)
    if action == "normal":
        strike(fish, enemy, alive, target, fish["attack"] // 2)
    elif fish["kind"] in INFIGHT:
        lose(mine[target], 75)
        fish["attack"] += 140
    else:
        for place in alive:
            strike(fish, enemy, alive, place, 70 if fish["kind"] == "spray" else fish["attack"] * 7 // 20)
    return mine, enemy


def strike(attacker: dict[str, Any], side: Side, alive: list[int], target: int, damage: int) -> None:
    """Let one hit be deflected and countered; ``alive`` are the places that lived when the action began."""
    mates = [side[place] for place in alive if place != target]
    if side[target]["kind"] in DEFLECT and mates:
        for mate in mates:
            lose(mate, damage * 3 // 10 // len(mates))
        damage = damage * 7 // 10
    lose(side[target], damage)
    if side[target]["hp"] < 120:
        lose(attacker, 30 * sum(mate["kind"] in COUNTER for mate in mates))


def lose(fish: dict[str, Any], damage: int) -> None:
    """Take hit points, as many as there are."""
    fish["hp"] = max(0, fish["hp"] - damage)


def worth(mine: Side, enemy: Side) -> float:
    """Return how good a table is: a fish that lives is worth more than its hit points."""
    if not living(enemy):
        return 10000
    return value(mine) - value(enemy)


def value(side: Side) -> float:
    """Return what a side is worth: its living fish, their hit points, and what they can do."""
    alive = [side[place] for place in living(side)]
    skill = sum(32 for fish in alive if fish["kind"] in AOE)
    return float(skill + sum(60 + fish["hp"] + (fish["attack"] - 200) / 8 for fish in alive))


def main() -> None:
    """Answer until the input ends."""
    player = Player()
    for line in sys.stdin:
        said = player.reply(json.loads(line)["messages"][-1]["content"])
        print(json.dumps({"role": "assistant", "content": said}), flush=True)


if __name__ == "__main__":
    main()
