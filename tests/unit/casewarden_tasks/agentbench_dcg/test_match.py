"""A whole game with an agent, and what its record is worth."""

from __future__ import annotations

import asyncio
import copy
import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_tasks.agentbench_dcg.games import deal
from casewarden_tasks.agentbench_dcg.grader import Judged
from casewarden_tasks.agentbench_dcg.match import TURN_SECONDS, Match
from casewarden_tasks.agentbench_dcg.witness import Player

GAME = deal(17, 0, 5, compat=False)


def played(game: dict[str, Any], reply: Callable[[str], str], seconds_a_reply: float = 0.0) -> dict[str, Any]:
    """Play a game with an agent that is a function of the question."""
    passed = [0.0]

    async def ask(messages: Sequence[Any]) -> str:
        passed[0] += seconds_a_reply
        return reply(messages[-1]["content"])

    match = Match(game, ask, lambda: passed[0])
    asyncio.run(match.play())
    return match.record()


@functools.cache
def won() -> dict[str, Any]:
    return played(GAME, Player().reply)


@pytest.mark.parametrize("index", [0, 5, 10, 15])
def test_the_witness_wins_and_passes(index: int) -> None:
    game = deal(17, index, 5, compat=False)
    judged = Judged(game, played(game, Player().reply))
    assert judged.checks() == {"win": True, "guessing": True, "protocol": True}
    figures = judged.metrics()
    assert [figures[name] for name in ("win", "score", "damage", "damage_rate", "takedown")] == [1, 1, 1600, 1, 4]


def test_equal_replies_give_an_equal_record() -> None:
    assert played(GAME, Player().reply) == won() == json.loads(json.dumps(won()))


def test_no_guess_costs_the_dimension_guessing_and_no_more() -> None:
    player = Player()
    record = played(GAME, lambda question: "" if question.startswith("Guess") else player.reply(question))
    assert [len(turn["guess"]["tries"]) for turn in record["turns"]] == [5] * len(record["turns"])
    checks = Judged(GAME, record).checks()
    assert (checks["guessing"], checks["protocol"]) == (False, True)


def test_five_tries_without_a_legal_action_lose_the_game() -> None:
    player = Player()
    record = played(GAME, lambda question: player.reply(question) if question.startswith("Guess") else "attack!")
    assert (record["winner"], record["ended"]) == (1, "no legal action")
    (turn,) = record["turns"]
    assert (len(turn["action"]["tries"]), turn["action"]["code"]) == (5, 2)
    assert Judged(GAME, record).checks() == {"win": False, "guessing": True, "protocol": False}


def test_a_turn_that_takes_too_long_is_lost() -> None:
    record = played(GAME, Player().reply, seconds_a_reply=TURN_SECONDS / 2 + 1)
    assert (record["winner"], record["ended"], len(record["turns"])) == (1, "late", 1)
    assert record["turns"][0]["late"] is True
    assert Judged(GAME, record).checks()["protocol"] is False


def test_a_guess_that_comes_too_late_is_not_made() -> None:
    record = played(GAME, Player().reply, seconds_a_reply=TURN_SECONDS + 1)
    assert record["turns"][0]["action"] is None
    assert [row["phase"] for row in record["replay"]] == ["pick", "pick", "forfeit"]


def test_v0_2_lets_the_eels_skill_fail_silently() -> None:
    eel = json.dumps({"pick_fish": "eel", "action": "active"})
    record = played(deal(17, 0, 5, compat=True), lambda question: eel)
    assert {one["wrong"] for one in record["turns"][0]["action"]["tries"]} == {
        "the active skill of eel is refused, as in AgentBench v0.2"
    }
    assert record["turns"][0]["action"]["code"] == 1


def test_a_game_that_was_broken_off_holds_nothing() -> None:
    assert not any(Judged(GAME, {**won(), "replay": won()["replay"][:-1]}).checks().values())


def test_the_verdict_is_of_the_rows_and_not_of_what_the_record_claims() -> None:
    lost = played(GAME, lambda _: "")
    assert Judged(GAME, {**lost, "winner": 0, "ended": "defeat"}).checks()["win"] is False


def test_a_row_that_the_rules_do_not_allow_ends_the_game_there() -> None:
    record = copy.deepcopy(won())
    next(row for row in record["replay"] if row["phase"] == "action")["move"]["targets"] = [0, 1, 2, 3, 4]
    assert Judged(GAME, record).checks()["win"] is False


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["phase", "player", "guess", "move", "tries", "code", "actor", "why"]), inner)
    ),
    max_leaves=10,
)


@given(st.one_of(json_values, st.fixed_dictionaries({"replay": st.lists(json_values), "turns": json_values})))
def test_no_record_makes_the_grader_raise(record: Any) -> None:
    judged = Judged(GAME, record)
    assert not judged.checks()["win"]
    assert judged.metrics()["win"] == 0
    assert judged.explain()
