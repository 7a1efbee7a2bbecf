"""What an agent is told, how its replies are read, and how a question is asked again."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_tasks.agentbench_dcg.dialogue import (
    INVALID,
    UNREADABLE,
    Conversation,
    Turn,
    _Refused,
    action_question,
    guess_question,
    read_action,
    read_guess,
)
from casewarden_tasks.agentbench_dcg.engine import KINDS, Game, Guess, Move
from casewarden_tasks.agentbench_dcg.table import View, view


def after_one_turn() -> Game:
    """Player 1 named the flame and hit everybody with its eel; player 0 is to move and has lost its spray."""
    game = Game([KINDS, ("eel", "spray", "sunfish", "flame")])
    game.sides[0][0].hp = 10
    game.guess(0, None)
    game.act(0, Move(0, "active", (0, 1, 2, 3)))
    game.guess(1, Guess(1, "flame"))
    game.act(1, Move(0, "active", (1, 2, 3)))
    return game


def seen() -> View:
    return view(after_one_turn(), 0)


def facts(question: str) -> dict[str, Any]:
    return {name: json.loads(value) for name, value in (line.split(": ", 1) for line in question.splitlines()[1:])}


def test_the_question_for_a_guess_tells_what_gives_fish_away() -> None:
    assert facts(guess_question(seen())) == {
        "Your last guess": None,
        "Enemy positions that are alive and not named": [0, 1, 2, 3],
        "Enemy's last action": {
            "position": 0, "fish": "unknown", "attack": 200, "skill": "AOE", "targets": [1, 2, 3],
        },
        "Enemy's passives since your last action": [
            {"position": 0, "passive": "deflect"}, {"position": 2, "passive": "deflect"},
        ],
    }  # fmt: skip


def test_the_question_for_an_action_shows_the_living_and_hides_who_the_enemys_are() -> None:
    told = facts(action_question(seen()))
    assert [fish["ID"] for fish in told["State"]["You"]] == ["flame", "eel", "sunfish"]
    assert {(fish["ID"], fish["ATK"]) for fish in told["State"]["Enemy"]} == {("unknown", "unknown")}
    assert told["Your last action"]["skill"] == "AOE"


def test_a_named_enemy_is_shown() -> None:
    game = after_one_turn()
    game.guess(0, Guess(3, "flame"))
    enemy = facts(action_question(view(game, 0)))["State"]["Enemy"][3]
    assert (enemy["ID"], enemy["ATK"]) == ("flame", 200)


@pytest.mark.parametrize(
    "reply",
    [
        '{"guess_type": "eel", "target_position": 2}',
        'I think {it} is this one:\n```json\n{"guess_type": "eel",\n "target_position": 2}\n```\nbecause …',
        "{'guess_type': 'eel', 'target_position': 2}",
        '{"guess_type": "cod", "target_position": 2} no, {"guess_type": "eel", "target_position": 2}',
        '{"guess_type": "eel", "target_position": 2} or {"guess_type": "spray", "target_position": 0}',
    ],
)
def test_a_guess_is_the_first_right_object_of_a_reply(reply: str) -> None:
    assert read_guess(reply, seen()) == Guess(2, "eel")


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("", UNREADABLE),
        ("eel at 2", UNREADABLE),
        ('{"guess_type": "eel", "target_position": ', UNREADABLE),
        ('{guess_type: "eel"}', UNREADABLE),
        ("{}", INVALID),
        ('{"guess_type": "shark", "target_position": 2}', INVALID),
        ('{"guess_type": ["eel"], "target_position": 2}', INVALID),
        ('{"guess_type": "eel", "target_position": 4}', INVALID),
        ('{"guess_type": "eel", "target_position": true}', INVALID),
        ('{"guess_type": "eel", "target_position": "2"}', INVALID),
        ('{"guess_type": "eel", "target_position": 2.0}', INVALID),
    ],
)
def test_what_is_no_guess_is_told_apart_from_what_is_no_json(reply: str, code: int) -> None:
    with pytest.raises(_Refused) as refused:
        read_guess(reply, seen())
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("said", "move"),
    [
        ({"pick_fish": "flame", "action": "normal", "target_position": 3}, Move(1, "normal", (3,))),
        ({"pick_fish": "eel", "action": "active"}, Move(2, "active", (0, 1, 2, 3))),
        ({"pick_fish": "eel", "action": "active", "target_position": "all"}, Move(2, "active", (0, 1, 2, 3))),
        ({"pick_fish": "sunfish", "action": "active", "target_position": 1}, Move(3, "active", (1,))),
    ],
)
def test_an_action_is_read(said: dict[str, Any], move: Move) -> None:
    assert read_action(json.dumps(said), seen()) == move


@pytest.mark.parametrize(
    "said",
    [
        {"pick_fish": "spray", "action": "active"},  # is dead
        {"pick_fish": ["eel"], "action": "active"},
        {"pick_fish": "flame", "action": "swim", "target_position": 3},
        {"pick_fish": "flame", "action": "normal"},
        {"pick_fish": "flame", "action": "active", "target_position": 1},  # is itself
        {"pick_fish": "flame", "action": "active", "target_position": 0},  # is dead
    ],
)
def test_an_illegal_action_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(_Refused) as refused:
        read_action(json.dumps(said), seen())
    assert refused.value.code == INVALID


@pytest.mark.parametrize("kind", ["eel", "sunfish"])
def test_v0_2_refuses_the_active_skill_of_eel_and_sunfish(kind: str) -> None:
    said = json.dumps({"pick_fish": kind, "action": "active", "target_position": 1})
    assert read_action(said, seen())
    with pytest.raises(_Refused):
        read_action(said, seen(), compat=True)


@given(st.text(alphabet="{}[]\"':,0123ael \n\\", max_size=200))
def test_no_reply_breaks_the_reading(reply: str) -> None:
    for read in (read_guess, read_action):
        with contextlib.suppress(_Refused):
            assert read(reply, seen())


class Scripted:
    """Answers with one reply after another, and keeps what it was asked."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.asked: list[list[str]] = []

    async def __call__(self, messages: Sequence[Any]) -> str:
        assert [message["role"] for message in messages] == ["user", "agent"] * (len(messages) // 2) + ["user"]
        self.asked.append([message["content"] for message in messages])
        return self.replies.pop(0)


def asked_once(agent: Scripted, talk: Conversation, text: str = "Guess now.", late: bool = False) -> Turn[Guess]:
    return asyncio.run(talk.question(text, lambda reply: read_guess(reply, seen()), lambda: late))


RIGHT = '{"guess_type": "eel", "target_position": 2}'


def test_a_question_is_asked_until_it_is_answered_rightly() -> None:
    agent = Scripted("hm", "{}", RIGHT)
    turn = asked_once(agent, Conversation("rules", agent))
    assert (turn.value, turn.code) == (Guess(2, "eel"), 0)
    assert [bool(one["wrong"]) for one in turn.tries] == [True, True, False]


@pytest.mark.parametrize(("replies", "code"), [(["hm"] * 5, UNREADABLE), (["hm", "hm", "{}", "hm", "hm"], INVALID)])
def test_after_five_tries_the_mildest_failure_is_the_questions(replies: list[str], code: int) -> None:
    agent = Scripted(*replies)
    turn = asked_once(agent, Conversation("rules", agent))
    assert (turn.value, turn.code, agent.replies) == (None, code, [])


def test_the_time_is_not_overrun_by_more_than_one_reply() -> None:
    agent = Scripted("hm", "never asked")
    assert asked_once(agent, Conversation("rules", agent), late=True).value is None
    assert agent.replies == ["never asked"]


def test_messages_are_answered_questions_then_rules_then_the_question() -> None:
    agent = Scripted(RIGHT, RIGHT)
    talk = Conversation("rules", agent)
    asked_once(agent, talk, "first")
    asked_once(agent, talk, "second")
    acknowledged = agent.asked[0][1]
    assert agent.asked[0] == ["rules", acknowledged, "first"]
    assert agent.asked[1] == ["first", RIGHT, "rules", acknowledged, "second"]


def test_a_failed_try_leaves_its_rules_behind_and_nothing_of_its_own() -> None:
    agent = Scripted("hm", RIGHT)
    asked_once(agent, Conversation("rules", agent), "first")
    acknowledged = agent.asked[0][1]
    assert agent.asked[1] == ["rules", acknowledged, "rules", acknowledged, "first"]
