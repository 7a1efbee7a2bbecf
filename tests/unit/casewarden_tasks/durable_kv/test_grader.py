"""The verdict follows from the record, and from a right record only is it ``passed``."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewarden_sdk.contract import AGENT_ERROR, FAILED, PASSED, Case
from casewarden_tasks.durable_kv.cases import generate
from casewarden_tasks.durable_kv.grader import grade
from casewarden_tasks.durable_kv.model import Model

CASES = {case.id: case for case in generate(17)}
ENDED = {"code": 0, "signal": None, "output_bytes": 10, "stderr_tail": "", "unsolicited": 0}
KILLED = {"code": None, "signal": 9, "output_bytes": 10, "stderr_tail": "", "unsolicited": 0}
FAULT = {"reason": "TimeLimit", "message": "no answer in time"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
any_case = st.integers(0, 1 << 32).flatmap(lambda seed: st.sampled_from(generate(seed)))


def right_record(case: Case) -> dict[str, Any]:
    model = Model()
    return {
        "sessions": [
            {
                "responses": [model.answer(request) for request in session["requests"]],
                "exit": dict(ENDED if session["stop"] == "eof" else KILLED),
            }
            for session in case.content["sessions"]
        ],
        "candidate_error": None,
    }


@given(any_case)
def test_right_answers_and_clean_ends_pass(case: Case) -> None:
    verdict = grade(case, right_record(case))
    assert (verdict.status, dict(verdict.checks), verdict.error) == (PASSED, {case.dimensions[0]: True}, None)


@settings(max_examples=300)
@given(any_case, st.data())
def test_one_changed_response_fails_the_case(case: Case, data: st.DataObject) -> None:
    record = right_record(case)
    session = data.draw(st.sampled_from(record["sessions"]))
    position = data.draw(st.integers(0, len(session["responses"]) - 1))
    wrong = data.draw(JSON.filter(lambda value: repr(value) != repr(session["responses"][position])))
    session["responses"][position] = wrong
    verdict = grade(case, record)
    assert verdict.status == FAILED
    assert verdict.error is not None
    assert f"request {position + 1}: expected" in verdict.error


@pytest.mark.parametrize(("wrong", "right"), [(1, True), (0, False), (1.0, 1)])
def test_what_python_calls_equal_may_differ_in_json(wrong: Any, right: Any) -> None:
    sessions = [{"requests": [{"op": "put", "key": "a", "value": right}, {"op": "get", "key": "a"}], "stop": "eof"}]
    case = Case("typed", ("basic",), {"id": "typed", "sessions": sessions})
    record = right_record(case)
    assert grade(case, record).passed
    record["sessions"][0]["responses"][1]["value"] = wrong
    assert grade(case, record).status == FAILED


@given(any_case, st.data())
def test_a_record_with_a_part_missing_or_too_many_never_passes(case: Case, data: st.DataObject) -> None:
    record = right_record(case)
    sessions = record["sessions"]
    damage = data.draw(st.sampled_from(["session", "extra session", "response", "extra response", "end"]))
    session = data.draw(st.sampled_from(sessions))
    if damage == "session":
        sessions.remove(session)
    elif damage == "extra session":
        sessions.append(copy.deepcopy(session))
    elif damage == "response":
        session["responses"].pop()
    elif damage == "extra response":
        session["responses"].append({"ok": True})
    else:
        session["exit"] = None
    assert not grade(case, record).passed


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ({"code": 3}, "Exited"),
        ({"code": None, "signal": 11}, "Exited"),
        ({"code": False}, "Exited"),
        ({"unsolicited": 7}, "Protocol"),
    ],
)
def test_a_session_that_does_not_end_cleanly_is_the_agents_error(end: dict[str, Any], reason: str) -> None:
    record = right_record(CASES["read-write-delete"])
    record["sessions"][0]["exit"].update(end)
    verdict = grade(CASES["read-write-delete"], record)
    assert (verdict.status, verdict.reason) == (AGENT_ERROR, reason)


def test_nothing_is_asked_of_a_process_that_was_killed() -> None:
    case = CASES["sigkill-after-acknowledgement"]
    record = right_record(case)
    record["sessions"][0]["exit"].update(code=1, signal=None, unsolicited=9)
    assert grade(case, record).passed


def test_where_the_record_stops_the_candidates_error_decides() -> None:
    case = CASES["read-write-delete"]
    record = right_record(case)
    del record["sessions"][0]["responses"][3:]
    record["sessions"][0]["exit"] = None
    record["candidate_error"] = FAULT
    verdict = grade(case, record)
    assert (verdict.status, verdict.reason, verdict.error) == (AGENT_ERROR, "TimeLimit", "no answer in time")


def test_a_wrong_answer_before_the_break_decides() -> None:
    case = CASES["read-write-delete"]
    record = right_record(case)
    record["sessions"][0]["responses"] = [{"ok": True}]
    record["candidate_error"] = FAULT
    assert grade(case, record).status == FAILED


@settings(max_examples=300)
@given(any_case, JSON | st.fixed_dictionaries({"sessions": st.lists(JSON | st.fixed_dictionaries(
    {"responses": JSON, "exit": JSON}), max_size=3), "candidate_error": JSON}))  # fmt: skip
def test_no_record_makes_the_grader_raise_or_pass_by_chance(case: Case, record: Any) -> None:
    verdict = grade(case, record)
    assert not verdict.passed
    assert verdict.to_json() == grade(case, record).to_json()


def test_a_response_nested_beyond_any_parser_is_wrong_and_no_accident() -> None:
    deep: Any = None
    for _ in range(100_000):
        deep = [deep]
    record = right_record(CASES["read-write-delete"])
    record["sessions"][0]["responses"][0] = deep
    assert grade(CASES["read-write-delete"], record).status == FAILED


@given(any_case)
def test_grading_leaves_case_and_record_as_they_are(case: Case) -> None:
    record = right_record(case)
    before = copy.deepcopy((dict(case.content), record))
    grade(case, record)
    assert (dict(case.content), record) == before
