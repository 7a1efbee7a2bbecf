"""A run as reports see it is what its evidence says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.evidence import finished_run

from casewarden.reporting.run import NOT_ASSESSED, candidate_of, reported_run

FILES = finished_run().files


def parts(**changes: Any) -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    rows = [json.loads(line) for line in FILES["results.jsonl"].splitlines()]
    return json.loads(FILES["run.json"]) | changes, json.loads(FILES["plan.json"]), rows


def test_every_planned_case_is_there_with_its_verdict() -> None:
    found = reported_run(*parts(), "sha256:x")
    assert found.title == "evals/small-run"
    assert found.task == "small@0.1.0"
    assert [(c.key.seed, c.key.case_id, c.status, c.attempts) for c in found.cases] == [
        (17, "add", "passed", 1),
        (17, "restart", "failed", 2),
        (41, "add", "passed", 1),
        (41, "restart", "passed", 1),
    ]
    assert found.cases[1].checks == {"basic": True, "recovery": False}
    assert found.cases[1].attempt == 2
    assert found.families == ["add", "restart"]


def test_a_case_without_a_verdict_is_not_assessed() -> None:
    run, plan, rows = parts()
    left = [row for row in rows if (row["seed"], row["case_id"]) != (41, "add")]
    found = reported_run(run, plan, left, "d")
    assert [c.status for c in found.cases if (c.key.seed, c.key.case_id) == (41, "add")] == [NOT_ASSESSED]


def test_an_environment_error_that_is_left_is_the_status() -> None:
    run, plan, rows = parts()
    left = [row for row in rows if not (row["case_id"] == "restart" and row["kind"] == "verdict")]
    found = reported_run(run, plan, left, "d")
    (case,) = [c for c in found.cases if (c.key.seed, c.key.case_id) == (17, "restart")]
    assert (case.status, case.reason, case.is_assessed) == ("environment_error", "Evicted", False)
    assert set(case.checks.values()) == {None}


def test_floor_and_interval_come_from_the_status_and_limits_from_the_run_before_the_plan() -> None:
    interval = {"low": "0.1", "high": "0.9", "estimand": "families", "method": "t", "families": 9}
    status = {"floor": {"nullAgent": "0"}, "scoreInterval": interval}
    run, plan, rows = parts()
    run["spec"] = {**run["spec"], "limits": {"caseSeconds": 5}}
    found = reported_run(run, plan, rows, "d", status)
    assert (found.floor, found.interval) == (status["floor"], status["scoreInterval"])
    assert found.limits["case_seconds"] == 5
    assert reported_run(*parts(), "d").floor == {}


def test_what_is_no_run_is_refused() -> None:
    run, plan, rows = parts()
    del run["spec"]
    with pytest.raises(KeyError):
        reported_run(run, plan, rows, "d")


@pytest.mark.parametrize(
    ("candidate", "said"),
    [
        ({"control": "null-agent"}, "control null-agent"),
        ({"program": {"workspace": {"configMap": "mine"}}}, "program mine"),
        ({"program": {"argv": ["x"]}, "model": {"name": "qwen3"}}, "program its own command, model qwen3"),
        ({"server": {"image": "s:1"}}, "server s:1"),
        ({}, "no candidate"),
    ],
)
def test_a_candidate_is_named_in_a_few_words(candidate: dict[str, Any], said: str) -> None:
    assert candidate_of({"candidate": candidate}) == said
