"""The status: whole, consistent with the ledger, without false zeros, and of a bounded size."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewarden.api.plan import Plan
from casewarden.api.status import EvalRunStatus
from casewarden.core.model import AttemptKey, CaseKey, FinishRun, LedgerRow, RunPolicy
from casewarden.core.policies.retry import standing
from casewarden.core.status import (
    Goal,
    StatusInput,
    Why,
    build_status,
    duration_text,
    plan_facts,
    time_text,
)
from casewarden_sdk.canonical import canonical, sha256_json
from casewarden_sdk.plan import build_plan
from casewarden_tasks import durable_kv, support_routing

POLICY = RunPolicy(
    parallelism=2, environment_retries=1, interruption_retries=2, pending_seconds=900, suspend=False, deadline=None
)
_document = json.loads(canonical(build_plan(support_routing.PACK, [17], {})))
PLAN = plan_facts(Plan.model_validate(_document), sha256_json(_document))
CASES = [CaseKey(case.seed, case.case_id, 0) for case in PLAN.cases]
_big = json.loads(canonical(build_plan(durable_kv.PACK, list(range(100)), {})))
BIG_PLAN = plan_facts(Plan.model_validate(_big), sha256_json(_big))

NEW = StatusInput(generation=1, now=1000.0, policy=POLICY)
PLANNED = dataclasses.replace(NEW, plan=PLAN, seeds=(17,), now=1010.0)
COMPLETED = FinishRun(True, "Completed", "all 4 cases are done")


def row(
    case: CaseKey, attempt: int = 1, status: str = "passed", kind: Any = "verdict", error: str | None = None
) -> LedgerRow:
    """A row as the ledger has it; the first check fails where not every one is true."""
    checks = {"passed": "11111", "failed": "01111", "agent_error": "00000"}.get(status, "-----")
    reason = {"agent_error": "Exited", "environment_error": "NodeLost"}.get(status)
    return LedgerRow(AttemptKey(case, attempt), kind, status, checks, reason, error)


def lost(case: CaseKey, attempt: int, kind: Any = "environment") -> LedgerRow:
    return row(case, attempt, "environment_error", kind)


def condition(status: dict[str, Any], type_: str) -> tuple[str, str]:
    (found,) = [item for item in status["conditions"] if item["type"] == type_]
    return found["status"], found["reason"]


def states(status: dict[str, Any]) -> dict[str, str]:
    return {item["type"]: item["status"] for item in status["conditions"]}


def test_a_run_that_was_just_seen_has_every_condition_and_no_numbers() -> None:
    status = build_status(NEW)
    assert states(status) == {
        "Accepted": "True", "Planned": "Unknown", "Suspended": "False", "Finished": "False", "Complete": "False",
        "Failed": "False", "Passed": "Unknown", "Audited": "Unknown",
    }  # fmt: skip
    assert status["startTime"] == "1970-01-01T00:16:40Z"
    assert not {"score", "valid", "resolved", "passRate", "cases", "completionTime"} & set(status)


def test_a_running_run_shows_where_its_cases_are_and_no_score() -> None:
    rows = (row(CASES[0]), row(CASES[1], status="failed", error="wrong queue"), lost(CASES[2], 1))
    status = build_status(dataclasses.replace(PLANNED, rows=rows, running=frozenset({CASES[2], CASES[1]})))
    assert status["cases"] == {
        "total": 4, "excluded": 0, "pending": 1, "running": 1, "passed": 1, "failed": 1, "agentErrors": 0,
        "environmentErrors": 0,
    }  # fmt: skip
    assert status["attempts"] == {"total": 3, "environmentRetries": 1, "interruptions": 0, "suspended": 0}
    assert (status["progress"], status["assessed"], status["errors"]) == ("2/4", "2/4", 0)
    assert condition(status, "Finished") == ("False", "Running")
    assert condition(status, "Passed") == ("Unknown", "NoValidScore")
    assert not {"score", "valid", "resolved", "passRate"} & set(status)
    assert "score" not in status["dimensions"]["routing"]
    assert status["failures"] == [
        {"case": CASES[1].case_id, "seed": 17, "repeat": 0, "status": "failed", "error": "wrong queue"}
    ]


def test_a_complete_run_has_its_score_and_what_it_rests_on() -> None:
    rows = (*(row(case) for case in CASES[:3]), row(CASES[3], status="failed"))
    status = build_status(
        dataclasses.replace(
            PLANNED, rows=rows, end=COMPLETED, now=1133.0, previous=build_status(NEW), candidate_fingerprint="c" * 64,
            conditions_fingerprint="d" * 64, images={"task": "t@sha256:0", "candidate": "c:1"},
            evidence_uri="runs/u", evidence_digest="sha256:" + "e" * 64, ledger={"rows": 4},
        )
    )  # fmt: skip
    assert (status["valid"], status["resolved"], status["score"], status["passRate"]) == (True, False, "0.95", "0.75")
    assert status["dimensions"]["closure"] == {"weight": "0.2", "passed": 3, "assessed": 4, "total": 4, "score": "0.75"}
    assert (status["duration"], status["completionTime"]) == ("2m13s", "1970-01-01T00:18:53Z")
    assert status["fingerprints"] == {
        "task": "support-routing@0.1.0", "contract": _document["contract"]["sha256"],
        "cases": _document["fingerprints"]["cases"], "grader": _document["fingerprints"]["grader"],
            "params": sha256_json({}),
        "candidate": "c" * 64, "conditions": "d" * 64, "images": {"candidate": "c:1", "task": "t@sha256:0"},
    }  # fmt: skip
    assert status["plan"] == {"digest": PLAN.digest}
    assert status["evidence"] == {"uri": "runs/u", "digest": "sha256:" + "e" * 64}
    assert status["ledger"] == {"rows": 4}
    assert condition(status, "Complete") == ("True", "Completed")
    assert condition(status, "Failed") == ("False", "Completed")
    assert condition(status, "Passed") == ("False", "NotResolved")


def test_every_case_passed_is_resolved() -> None:
    status = build_status(dataclasses.replace(PLANNED, rows=tuple(row(case) for case in CASES), end=COMPLETED))
    assert (status["score"], status["resolved"], status["failures"]) == ("1", True, [])
    assert condition(status, "Passed") == ("True", "Resolved")


@pytest.mark.parametrize(
    ("goal", "passed"),
    [
        (Goal("0.95"), ("True", "ThresholdMet")),
        (Goal("0.96"), ("False", "ThresholdNotMet")),
        (Goal(None, {"scope": "1"}), ("True", "ThresholdMet")),
        (Goal("0.5", {"closure": "0.8"}), ("False", "ThresholdNotMet")),
    ],
)
def test_a_threshold_decides_instead_of_every_case(goal: Goal, passed: tuple[str, str]) -> None:
    rows = (*(row(case) for case in CASES[:3]), row(CASES[3], status="failed"))
    status = build_status(dataclasses.replace(PLANNED, rows=rows, end=COMPLETED, goal=goal))
    assert condition(status, "Passed") == passed


def test_an_invalid_run_is_complete_and_has_no_score() -> None:
    rows = (*(row(case) for case in CASES[:3]), lost(CASES[3], 1), lost(CASES[3], 2))
    status = build_status(dataclasses.replace(PLANNED, rows=rows, end=COMPLETED, goal=Goal("0")))
    assert (status["valid"], status["resolved"]) == (False, False)
    assert "score" not in status
    assert "passRate" not in status
    assert status["cases"]["environmentErrors"] == 1
    assert status["attempts"] == {"total": 5, "environmentRetries": 1, "interruptions": 0, "suspended": 0}
    assert condition(status, "Complete") == ("True", "Completed")
    assert condition(status, "Passed") == ("Unknown", "NoValidScore")


def test_a_failed_run_has_no_score_though_every_case_was_assessed() -> None:
    end = FinishRun(False, "DeadlineExceeded", "too late")
    status = build_status(dataclasses.replace(PLANNED, rows=tuple(row(case) for case in CASES), end=end))
    assert (status["valid"], condition(status, "Failed")) == (False, ("True", "DeadlineExceeded"))
    assert "score" not in status
    assert condition(status, "Complete") == ("False", "DeadlineExceeded")


def test_interruptions_and_suspensions_are_counted_apart() -> None:
    rows = (lost(CASES[0], 1, "interruption"), lost(CASES[0], 2, "suspended"), row(CASES[0], 3))
    status = build_status(dataclasses.replace(PLANNED, rows=rows))
    assert status["attempts"] == {"total": 3, "environmentRetries": 0, "interruptions": 1, "suspended": 1}
    assert status["cases"]["passed"] == 1


def test_a_case_that_was_interrupted_too_often_is_an_environment_error() -> None:
    rows = tuple(lost(CASES[0], number, "interruption") for number in (1, 2, 3))
    status = build_status(dataclasses.replace(PLANNED, rows=rows))
    assert (status["cases"]["environmentErrors"], status["progress"], status["assessed"]) == (1, "1/4", "0/4")
    assert status["failures"][0]["status"] == "environment_error"


def test_a_refused_run_says_so_in_every_place_that_one_may_wait_for() -> None:
    why = Why("NotYet", "spec.candidate.model: not supported by this version")
    status = build_status(dataclasses.replace(NEW, refused=why, end=FinishRun(False, why.reason, why.message)))
    assert {name: condition(status, name) for name in ("Accepted", "Planned", "Finished", "Complete", "Failed")} == {
        "Accepted": ("False", "NotYet"), "Planned": ("False", "NotYet"), "Finished": ("True", "NotYet"),
        "Complete": ("False", "NotYet"), "Failed": ("True", "NotYet"),
    }  # fmt: skip
    assert status["valid"] is False
    assert "score" not in status


def test_a_plan_that_was_refused_leaves_the_spec_accepted() -> None:
    why = Why("PlanRefused", "spec.select.families: no family")
    status = build_status(dataclasses.replace(NEW, plan_problem=why, end=FinishRun(False, why.reason, why.message)))
    assert (condition(status, "Accepted"), condition(status, "Planned")) == (
        ("True", "Accepted"),
        ("False", "PlanRefused"),
    )


def test_a_wait_and_a_suspension_are_told_where_people_look() -> None:
    waiting = build_status(dataclasses.replace(PLANNED, wait=Why("QuotaExceeded", "the quota is full")))
    assert condition(waiting, "Finished") == ("False", "QuotaExceeded")
    stopped = build_status(dataclasses.replace(PLANNED, policy=dataclasses.replace(POLICY, suspend=True)))
    assert condition(stopped, "Suspended") == ("True", "Suspended")
    assert condition(stopped, "Finished") == ("False", "Suspended")


def test_times_are_taken_over_and_move_only_with_their_condition() -> None:
    first = build_status(NEW)
    second = build_status(dataclasses.replace(PLANNED, now=2000.0, previous=first, generation=2))
    times = {item["type"]: item["lastTransitionTime"] for item in second["conditions"]}
    assert second["startTime"] == first["startTime"]
    assert times["Accepted"] == time_text(1000)
    assert times["Planned"] == time_text(2000)
    assert {item["observedGeneration"] for item in second["conditions"]} == {2}


def test_the_same_facts_give_the_same_status_whenever_they_are_told() -> None:
    facts = dataclasses.replace(PLANNED, rows=(row(CASES[0]),))
    first = build_status(facts)
    assert build_status(dataclasses.replace(facts, now=5000.0, previous=first)) == first


def test_a_finished_run_stays_as_it_is_but_for_its_generation_and_evidence() -> None:
    done = build_status(dataclasses.replace(PLANNED, rows=tuple(row(case) for case in CASES), end=COMPLETED))
    later = dataclasses.replace(
        NEW, now=9e9, generation=3, previous=done, policy=dataclasses.replace(POLICY, suspend=True), evidence_uri="x"
    )
    status = build_status(later)
    changed = {name for name in status if status[name] != done.get(name)}
    assert changed == {"observedGeneration", "conditions", "evidence"}
    assert states(status) == states(done)


def test_repeats_are_cases_of_their_own() -> None:
    rows = tuple(row(dataclasses.replace(case, repeat=repeat)) for case in CASES for repeat in (0, 1, 2))
    status = build_status(dataclasses.replace(PLANNED, repeats=3, rows=rows, end=FinishRun(True, "Completed")))
    assert (status["cases"]["total"], status["cases"]["passed"], status["score"]) == (12, 12, "1")


KINDS = [("verdict", "passed"), ("verdict", "failed"), ("verdict", "agent_error"), ("environment", "environment_error"),
         ("interruption", "environment_error"), ("suspended", "environment_error")]  # fmt: skip
HISTORIES = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(KINDS)), max_size=25)


def _rows(history: list[tuple[int, tuple[str, str]]]) -> tuple[LedgerRow, ...]:
    counts = dict.fromkeys(range(4), 0)
    rows = []
    for index, (kind, status) in history:
        counts[index] += 1
        rows.append(row(CASES[index], counts[index], status, kind))
    return tuple(rows)


@given(HISTORIES, st.sets(st.sampled_from(CASES)), st.booleans())
def test_counts_sum_to_the_total_and_a_score_needs_every_verdict(
    history: list[tuple[int, tuple[str, str]]], running: set[CaseKey], over: bool
) -> None:
    facts = dataclasses.replace(PLANNED, rows=_rows(history), running=running, end=COMPLETED if over else None)
    status = build_status(facts)
    cases = status["cases"]
    assert sum(cases[name] for name in cases if name not in ("total", "excluded")) == cases["total"] == 4
    done = cases["passed"] + cases["failed"] + cases["agentErrors"] + cases["environmentErrors"]
    assert status["progress"] == f"{done}/4"
    assert status["attempts"]["total"] == len(history)
    assert ("score" in status) == (over and done == 4 and cases["environmentErrors"] == 0)
    assert ("score" in status) == (status.get("valid") is True)
    EvalRunStatus.model_validate(status)


def _until_settled(rows: tuple[LedgerRow, ...]) -> tuple[LedgerRow, ...]:
    """Leave out what the step never writes: further attempts of a case that is settled."""
    kept: list[LedgerRow] = []
    for item in rows:
        if standing([other for other in kept if other.key.case == item.key.case], POLICY).settled is None:
            kept.append(item)
    return tuple(kept)


@given(HISTORIES, st.integers(0, 25))
def test_finished_counts_never_fall_as_the_ledger_grows(history: list[tuple[int, tuple[str, str]]], cut: int) -> None:
    rows = _until_settled(_rows(history))
    before = build_status(dataclasses.replace(PLANNED, rows=rows[:cut]))["cases"]
    after = build_status(dataclasses.replace(PLANNED, rows=rows))["cases"]
    for name in ("passed", "failed", "agentErrors", "environmentErrors"):
        assert after[name] >= before[name]


@given(HISTORIES, st.integers(0, 25))
def test_what_is_done_stays_done_even_if_a_verdict_comes_after_the_last_retry(
    history: list[tuple[int, tuple[str, str]]], cut: int
) -> None:
    before, after = (
        build_status(dataclasses.replace(PLANNED, rows=rows))["cases"]
        for rows in (_rows(history)[:cut], _rows(history))
    )
    assert after["pending"] + after["running"] <= before["pending"] + before["running"]
    for name in ("passed", "failed", "agentErrors"):
        assert after[name] >= before[name]


HOSTILE = st.sampled_from(["x", "\x00", "\x1b[2J", "é", "🐍", '"', "\\", "\n", "\ud800", "‮"]).map(
    lambda text: text * (1 << 20)
)


@settings(max_examples=20)
@given(HOSTILE, HOSTILE)
def test_no_candidate_can_make_a_status_grow_or_put_control_characters_into_it(error: str, message: str) -> None:
    cases = [CaseKey(case.seed, case.case_id, 0) for case in BIG_PLAN.cases]
    rows = tuple(LedgerRow(AttemptKey(case, 1), "verdict", "failed", "0", None, error) for case in cases)
    end = FinishRun(False, "CircuitBreaker", message)
    status = build_status(
        dataclasses.replace(PLANNED, plan=BIG_PLAN, seeds=tuple(range(2**53 - 101, 2**53 - 1)), rows=rows, end=end)
    )
    text = json.dumps(status, ensure_ascii=False)
    assert len(text.encode()) < 16 * 1024
    assert len(status["failures"]) == 20
    for failure in status["failures"]:
        assert len(json.dumps(failure, ensure_ascii=False).encode()) <= 300
    assert all(character.isprintable() for item in status["failures"] for character in item.get("error", ""))
    assert all(character.isprintable() for item in status["conditions"] for character in item["message"])


def test_failures_are_the_first_of_the_plan_whatever_order_they_came_in() -> None:
    rows = tuple(row(case, status="failed") for case in reversed(CASES))
    status = build_status(dataclasses.replace(PLANNED, rows=rows))
    assert [item["case"] for item in status["failures"]] == [case.case_id for case in CASES]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.4, "0s"), (59.6, "1m0s"), (133, "2m13s"), (3600, "1h0m"), (90061, "1d1h"), (-5, "0s")],
)
def test_durations_are_told_in_their_two_largest_units(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
