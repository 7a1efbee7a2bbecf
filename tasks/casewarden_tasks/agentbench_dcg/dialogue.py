"""The two conversations with an agent, one to guess and one to act: what it is told, and how its replies are read.

The rules and the acknowledgement are put before every question anew, as AgentBench v0.2 does it: the messages are the
questions answered so far with their replies, the rules, the acknowledgement, the question. A question has five tries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from .engine import AOE_SKILL, KINDS, Guess, Move
from .table import Seen, View

__all__ = [
    "ACTION_RULES", "GUESS_RULES", "INVALID", "TRIES", "UNREADABLE",
    "Ask", "Conversation", "Turn", "action_question", "guess_question", "read_action", "read_guess",
]  # fmt: skip

TRIES: Final = 5
INVALID: Final = 1  # a reply could be read and is not allowed
UNREADABLE: Final = 2  # no JSON object in the reply

Message = Mapping[str, str]
Ask = Callable[[Sequence[Message]], Awaitable[str]]
T = TypeVar("T")

_OBJECT: Final = re.compile(r"\{[^{}]*\}")
_OBJECTS_READ: Final = 100  # of one reply
_KEPT: Final = 1000  # characters of a reply in the record; the transcript has all
_TOLD_OF_A_MOVE: Final = ("attack", "skill", "targets")
_ACKNOWLEDGED: Final = "Understood. I will follow these rules and answer with one JSON object."

_GAME: Final = """You play Aquawar, a duel of two sides with four fish each: spray, flame, eel and sunfish, at
positions 0 to 3. You know your own fish; which of the enemy's fish stands at which position is hidden until it is
guessed. Each fish starts with 400 hit points (HP) and an attack (ATK) of 200. The sides take turns. A turn is a guess
about one fish of the enemy, then an action of one of your fish. A side whose fish are all dead has lost.

What each fish can do in an action:
- any fish, "normal": hits one living enemy for half of its own ATK.
- spray, "active": hits every living enemy for 70.
- eel, "active": hits every living enemy for 35% of its ATK.
- flame and sunfish, "active": takes 75 HP from one living ally, and raises its own ATK by 140 for good.
What happens by itself:
- spray and flame counter: when an enemy's hit leaves one of their allies below 120 HP, each of them takes 30 HP from
  the attacker.
- eel and sunfish deflect: of a hit they take 70% themselves, the other 30% is shared by their living allies. For every
  200 HP that they have lost, their ATK rises by 40.
Only hits by an enemy are deflected or countered."""

GUESS_RULES: Final = f"""{_GAME}

You are asked to guess. A right guess takes 50 HP from every fish of the enemy and shows you that fish; a wrong one
costs nothing. Answer with one JSON object, for example {{"guess_type": "eel", "target_position": 2}}: guess_type is one
of spray, flame, eel, sunfish, and target_position is the position of a living fish of the enemy that was not named yet.
"""

ACTION_RULES: Final = f"""{_GAME}

You are asked to act. Answer with one JSON object, for example
{{"pick_fish": "flame", "action": "normal", "target_position": 1}}
pick_fish is one of your living fish, action is normal or active. target_position is, for a normal action, the position
of a living enemy; for the active one of flame and sunfish, the position of a living ally that is not the fish itself;
for the active one of spray and eel it is not read, since they hit every enemy.
"""


class Turn(NamedTuple, Generic[T]):
    """What a question came to: the value that was read, or None with ``code`` when every try failed.

    ``tries`` are the replies, cut, each with what was wrong with it ("" for the last when it is right).
    """

    value: T | None
    code: int
    tries: list[dict[str, str]]


class _Refused(Exception):
    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


class Conversation:
    """One of the two conversations of a game."""

    def __init__(self, rules: str, ask: Ask) -> None:
        self._opening = [{"role": "user", "content": rules}, {"role": "agent", "content": _ACKNOWLEDGED}]
        self._ask = ask
        self._history: list[Message] = []

    async def question(self, text: str, read: Callable[[str], T], over: Callable[[], bool]) -> Turn[T]:
        """Ask until a reply can be read, at most five times and not once ``over`` says that the time is spent."""
        tries: list[dict[str, str]] = []
        code = UNREADABLE
        asked = {"role": "user", "content": text}
        for _ in range(TRIES):
            reply = await self._ask([*self._history, *self._opening, asked])
            late = over()
            try:
                value = read(reply)
            except _Refused as refused:
                tries.append({"reply": reply[:_KEPT], "wrong": str(refused)})
                code = min(code, refused.code)
                # A failed try leaves its opening behind, and nothing of what was asked and said.
                self._history += self._opening
            else:
                self._history += [asked, {"role": "agent", "content": reply}]
                tries.append({"reply": reply[:_KEPT], "wrong": ""})
                return Turn(value, 0, tries)
            if late:
                break
        return Turn(None, code, tries)


def guess_question(view: View) -> str:
    """Return the text that asks for a guess."""
    unnamed = [fish.position for fish in view.enemy if not fish.kind]
    passives = [{"position": position, "passive": name} for position, name in view.passives]
    return _question(
        "Guess now.",
        {
            "Your last guess": _told_guess(view.own_guess),
            "Enemy positions that are alive and not named": unnamed,
            "Enemy's last action": _told_action(view.enemy_action, view.enemy),
            "Enemy's passives since your last action": passives,
        },
    )


def action_question(view: View) -> str:
    """Return the text that asks for an action."""
    return _question(
        "Act now.",
        {
            "State": {
                "You": [_told_fish(fish) for fish in view.you],
                "Enemy": [_told_fish(fish) for fish in view.enemy],
            },
            "Your last action": _told_action(view.own_action, view.you),
            "Enemy's last action": _told_action(view.enemy_action, view.enemy),
        },
    )


def read_guess(reply: str, view: View) -> Guess:
    """Return the guess in a reply."""
    open_positions = [fish.position for fish in view.enemy if not fish.kind]

    def check(said: Mapping[str, Any]) -> Guess:
        kind, position = said.get("guess_type"), said.get("target_position")
        if kind not in KINDS:
            raise _Refused(INVALID, f"guess_type is none of {', '.join(KINDS)}")
        if not _is_position(position) or position not in open_positions:
            raise _Refused(INVALID, f"target_position is none of {open_positions}")
        return Guess(position, kind)

    return _first(reply, check)


def read_action(reply: str, view: View, compat: bool = False) -> Move:
    """Return the move in a reply. ``compat`` refuses the active skills of eel and sunfish, as v0.2 does."""
    mine = {fish.kind: fish.position for fish in view.you}
    enemies = [fish.position for fish in view.enemy]

    def check(said: Mapping[str, Any]) -> Move:
        kind, action, target = said.get("pick_fish"), said.get("action"), said.get("target_position")
        if not isinstance(kind, str) or kind not in mine:
            raise _Refused(INVALID, f"pick_fish is none of {', '.join(str(name) for name in mine)}")
        if action not in ("normal", "active"):
            raise _Refused(INVALID, "action is neither normal nor active")
        if action == "active" and compat and kind in ("eel", "sunfish"):
            raise _Refused(INVALID, f"the active skill of {kind} is refused, as in AgentBench v0.2")
        if action == "active" and kind in AOE_SKILL:
            return Move(mine[kind], "active", tuple(enemies))
        allowed = enemies if action == "normal" else [place for name, place in mine.items() if name != kind]
        if not _is_position(target) or target not in allowed:
            raise _Refused(INVALID, f"target_position is none of {allowed}")
        return Move(mine[kind], action, (target,))

    return _first(reply, check)


def _first(reply: str, check: Callable[[Mapping[str, Any]], T]) -> T:
    """Return what the first object of a reply that is right comes to; complain of the last one that is not."""
    complaint = _Refused(UNREADABLE, "no JSON object in the reply")
    for number, span in enumerate(_OBJECT.finditer(reply)):
        if number == _OBJECTS_READ:
            break
        try:
            said = json.loads(span.group().replace("'", '"'))
        except (ValueError, RecursionError):
            continue
        try:
            return check(said)
        except _Refused as refused:
            complaint = refused
    raise complaint


def _is_position(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _question(what: str, facts: Mapping[str, Any]) -> str:
    return "\n".join((what, *(f"{name}: {json.dumps(fact)}" for name, fact in facts.items())))


def _told_guess(row: Mapping[str, Any] | None) -> Any:
    if row is None or row["guess"] is None:
        return None
    return {"guess_type": row["guess"][1], "target_position": row["guess"][0], "right": row["right"]}


def _told_action(row: Mapping[str, Any] | None, side: Sequence[Seen]) -> Any:
    if row is None:
        return None
    move = row["move"]
    kind = next((fish.kind for fish in side if fish.position == move["actor"]), None)
    return {"position": move["actor"], "fish": kind or "unknown", **{key: move[key] for key in _TOLD_OF_A_MOVE}}


def _told_fish(fish: Seen) -> dict[str, Any]:
    return {
        "POSITION": fish.position,
        "ID": fish.kind or "unknown",
        "HP": fish.hp,
        "ATK": "unknown" if fish.attack is None else fish.attack,
    }
