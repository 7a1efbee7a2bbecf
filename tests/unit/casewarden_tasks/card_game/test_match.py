"""A whole game with an agent, and the verdict of its record."""

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

from casewarden_sdk.contract import AGENT_ERROR, Case
from casewarden_tasks.card_game import PACK
from casewarden_tasks.card_game.grader import grade
from casewarden_tasks.card_game.match import TURN_SECONDS, Match
from casewarden_tasks.card_game.witness import Player

Reply = Callable[[str], str]


@functools.cache
def case_of(case_id: str = "baseline1-first-1", compat: bool = False) -> Case:
    cases = PACK.cases(17, {"compat": "v0.2"} if compat else {})
    return next(case for case in cases if case.id == case_id)


def played(case: Case, reply: Reply, seconds_a_reply: float = 0.0) -> dict[str, Any]:
    """Play a case with an agent that is a function of the question."""
    passed = [0.0]

    async def ask(messages: Sequence[Any]) -> str:
        passed[0] += seconds_a_reply
        return reply(messages[-1]["content"])

    match = Match(case.content, ask, lambda: passed[0])
    asyncio.run(match.play())
    return {**match.record(), "exit": None, "candidate_error": None}


@functools.cache
def won() -> dict[str, Any]:
    return played(case_of(), Player().reply)


@pytest.mark.parametrize(
    "case_id", ["baseline1-first-1", "baseline1-second-1", "baseline2-first-1", "baseline2-second-1"]
)
def test_the_witness_wins_and_passes(case_id: str) -> None:
    verdict = grade(case_of(case_id), played(case_of(case_id), Player().reply))
    assert (verdict.status, verdict.metrics["score"], verdict.metrics["win"]) == ("passed", "1", "1")
    assert (verdict.metrics["damage"], verdict.metrics["takedown"]) == ("1600", "4")


def test_equal_replies_give_an_equal_record() -> None:
    assert played(case_of(), Player().reply) == won() == json.loads(json.dumps(won()))


def test_no_guess_costs_the_dimension_guessing_and_no_more() -> None:
    player = Player()
    record = played(case_of(), lambda question: "" if question.startswith("Guess") else player.reply(question))
    assert [len(turn["guess"]["tries"]) for turn in record["turns"]] == [5] * len(record["turns"])
    verdict = grade(case_of(), record)
    assert (verdict.checks["guessing"], verdict.checks["protocol"]) == (False, True)


def test_five_tries_without_a_legal_action_lose_the_game() -> None:
    player = Player()
    record = played(case_of(), lambda question: player.reply(question) if question.startswith("Guess") else "attack!")
    assert (record["winner"], record["ended"]) == (1, "no legal action")
    (turn,) = record["turns"]
    assert (len(turn["action"]["tries"]), turn["action"]["code"]) == (5, 2)
    assert grade(case_of(), record).checks == {"win": False, "guessing": True, "protocol": False}


def test_a_turn_that_takes_too_long_is_lost() -> None:
    record = played(case_of(), Player().reply, seconds_a_reply=TURN_SECONDS / 2 + 1)
    assert (record["winner"], record["ended"], len(record["turns"])) == (1, "late", 1)
    assert record["turns"][0]["late"] is True
    assert grade(case_of(), record).checks["protocol"] is False


def test_a_guess_that_comes_too_late_is_not_made() -> None:
    record = played(case_of(), Player().reply, seconds_a_reply=TURN_SECONDS + 1)
    assert record["turns"][0]["action"] is None
    assert [row["phase"] for row in record["replay"]] == ["pick", "pick", "forfeit"]


def test_v0_2_lets_the_eels_skill_fail_silently() -> None:
    eel = json.dumps({"pick_fish": "eel", "action": "active"})
    case = case_of(compat=True)
    record = played(case, lambda question: eel)
    assert {one["wrong"] for one in record["turns"][0]["action"]["tries"]} == {
        "the active skill of eel is refused, as in AgentBench v0.2"
    }
    assert record["turns"][0]["action"]["code"] == 1


def test_a_fault_of_the_candidates_is_an_agent_error_and_the_game_so_far_is_judged() -> None:
    record = copy.deepcopy(won())
    record["candidate_error"] = {"reason": "Exited", "message": "exited with code 1"}
    verdict = grade(case_of(), record)
    assert (verdict.status, verdict.reason) == (AGENT_ERROR, "Exited")
    assert verdict.checks == {"win": True, "guessing": True, "protocol": False}


def test_a_game_that_was_broken_off_holds_nothing() -> None:
    record = {**won(), "replay": won()["replay"][:-1], "candidate_error": {"reason": "TimeLimit", "message": "600 s"}}
    assert not any(grade(case_of(), record).checks.values())


def test_the_verdict_is_of_the_rows_and_not_of_what_the_record_claims() -> None:
    lost = played(case_of(), lambda _: "")
    assert grade(case_of(), {**lost, "winner": 0, "ended": "defeat"}).checks["win"] is False


def test_a_row_that_the_rules_do_not_allow_ends_the_game_there() -> None:
    record = copy.deepcopy(won())
    next(row for row in record["replay"] if row["phase"] == "action")["move"]["targets"] = [0, 1, 2, 3, 4]
    assert grade(case_of(), record).checks["win"] is False


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
    assert not grade(case_of(), record).checks["win"]
