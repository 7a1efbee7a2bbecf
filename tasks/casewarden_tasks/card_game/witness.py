"""A player of Aquawar on standard input and output: the reference, and the witness that a game can be won.

It reads what any agent is told and nothing else, works out what the enemy's fish may be, tries each of its moves on
rules of its own, and takes the one that leaves the best table. Nothing is imported from the pack.
"""

import itertools
import json
import sys

KINDS = ("spray", "flame", "eel", "sunfish")
AOE, INFIGHT = {"spray", "eel"}, {"flame", "sunfish"}
COUNTER, DEFLECT = {"spray", "flame"}, {"eel", "sunfish"}


class Player:
    """One game's memory: for each position of the enemy, the kinds that it may still be."""

    def __init__(self):
        self.fits = [set(KINDS) for _ in range(4)]

    def reply(self, question):
        """Return the reply to a question, the text of the last message."""
        facts = dict(line.split(": ", 1) for line in question.splitlines() if ": " in line)
        facts = {name: json.loads(value) for name, value in facts.items()}
        self.learn(facts)
        if "State" in facts:
            return json.dumps(self.act(facts["State"]))
        return json.dumps(self.guess(facts["Enemy positions that are alive and not named"]))

    def learn(self, facts):
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

    def worlds(self):
        """Return every way in which the enemy's fish may stand."""
        ways = [way for way in itertools.permutations(KINDS) if all(kind in fits for kind, fits in zip(way, self.fits))]
        return ways or list(itertools.permutations(KINDS))

    def guess(self, positions):
        """Name the fish that is so in most of the ways."""
        worlds = self.worlds()
        claims = [(sum(way[position] == kind for way in worlds), -position, kind) for position in positions for kind in KINDS]
        _, position, kind = max(claims)
        return {"guess_type": kind, "target_position": -position}

    def act(self, state):
        """Take the move that is best on average over the ways."""
        mine = side_of(state["You"], None)
        totals = {}
        for way in self.worlds()[:6]:
            enemy = side_of(state["Enemy"], way)
            for move in moves(mine, enemy):
                totals[move] = totals.get(move, 0) + worth(*tried(mine, enemy, move))
        actor, action, target = max(totals, key=totals.get)
        return {"pick_fish": mine[actor]["kind"], "action": action, "target_position": target}


def side_of(told, way):
    """Return four fish by position; those that are not told of are dead."""
    side = [{"kind": "none", "hp": 0, "attack": 0} for _ in range(4)]
    for fish in told:
        place = fish["POSITION"]
        attack = 200 if fish["ATK"] == "unknown" else fish["ATK"]
        side[place] = {"kind": way[place] if way else fish["ID"], "hp": fish["HP"], "attack": attack}
    return side


def living(side):
    return [place for place, fish in enumerate(side) if fish["hp"] > 0]


def moves(mine, enemy):
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


def tried(mine, enemy, move):
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


def strike(attacker, side, alive, target, damage):
    """Let one hit be deflected and countered; ``alive`` are the places that lived when the action began."""
    mates = [side[place] for place in alive if place != target]
    if side[target]["kind"] in DEFLECT and mates:
        for mate in mates:
            lose(mate, damage * 3 // 10 // len(mates))
        damage = damage * 7 // 10
    lose(side[target], damage)
    if side[target]["hp"] < 120:
        lose(attacker, 30 * sum(mate["kind"] in COUNTER for mate in mates))


def lose(fish, damage):
    fish["hp"] = max(0, fish["hp"] - damage)


def worth(mine, enemy):
    """Return how good a table is: a fish that lives is worth more than its hit points."""
    if not living(enemy):
        return 10000
    return value(mine) - value(enemy)


def value(side):
    return sum(
        60 + fish["hp"] + (fish["attack"] - 200) / 8 + (32 if fish["kind"] in AOE else 0) for fish in side if fish["hp"] > 0
    )


def main():
    player = Player()
    for line in sys.stdin:
        said = player.reply(json.loads(line)["messages"][-1]["content"])
        print(json.dumps({"role": "assistant", "content": said}), flush=True)


if __name__ == "__main__":
    main()
