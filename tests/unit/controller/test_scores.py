"""The scores that dashboards see: of runs that are there, as their status says, and never too many."""

from __future__ import annotations

from typing import Any

import pytest

from casewarden.controller.scores import Scores, candidate_name
from casewarden.ports.metrics import RecordedMetrics


def run(name: str, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"uid": f"uid-{name}", "name": name, "namespace": "evals"},
        "spec": {"task": {"name": "durable-kv"}, "candidate": {"control": "reference"}},
        "status": {"completionTime": "2026-11-30T12:00:00Z", "assessed": "10/10", **status},
    }


def shown(scores: Scores) -> dict[tuple[str, ...], float]:
    metrics = RecordedMetrics()
    scores.measure(metrics)
    return metrics.gauges


OF = ("candidate=reference", "namespace=evals", "run=a", "task=durable-kv")


def test_a_finished_run_is_shown_by_score_dimensions_interval_and_floor() -> None:
    scores = Scores()
    scores.saw(
        run(
            "a",
            score="0.5",
            dimensions={"basic": {"score": "1"}, "crash": {}},
            scoreInterval={"low": "0.4", "high": "0.6"},
            floor={"nullAgent": "0", "reference": "1"},
        )
    )
    assert shown(scores) == {
        ("casewarden_run_score", *OF): 0.5,
        ("casewarden_run_assessed_ratio", *OF): 1.0,
        ("casewarden_run_dimension_score", OF[0], "dimension=basic", *OF[1:]): 1.0,
        ("casewarden_run_score_bound", "bound=low", *OF): 0.4,
        ("casewarden_run_score_bound", "bound=high", *OF): 0.6,
        ("casewarden_run_score_floor", OF[0], "control=null_agent", *OF[1:]): 0.0,
        ("casewarden_run_score_floor", OF[0], "control=reference", *OF[1:]): 1.0,
        ("casewarden_run_scores_not_shown",): 0,
    }


def test_what_a_runs_models_used_is_shown_with_the_tasks_own_apart() -> None:
    scores, sums = Scores(), {"promptTokens": 5, "completionTokens": 2, "modelCalls": 1, "source": "reported"}
    scores.saw(run("a", usage={**sums, "cost": "0.5", "models": {"judge": sums, "user": sums}}))
    found = {key: value for key, value in shown(scores).items() if "casewarden_run_model" in key[0]}
    assert found == {
        ("casewarden_run_model_calls", "asked_by=candidate", *OF): 1,
        ("casewarden_run_model_tokens", "asked_by=candidate", OF[0], "kind=prompt", *OF[1:]): 5,
        ("casewarden_run_model_tokens", "asked_by=candidate", OF[0], "kind=completion", *OF[1:]): 2,
        ("casewarden_run_model_cost", "asked_by=candidate", *OF): 0.5,
        ("casewarden_run_model_calls", "asked_by=task", *OF): 2,
        ("casewarden_run_model_tokens", "asked_by=task", OF[0], "kind=prompt", *OF[1:]): 10,
        ("casewarden_run_model_tokens", "asked_by=task", OF[0], "kind=completion", *OF[1:]): 4,
    }


def test_an_invalid_run_has_no_score_and_no_false_zero() -> None:
    scores = Scores()
    scores.saw(run("a", assessed="9/10", valid=False, dimensions={"basic": {"score": "1"}}))
    assert shown(scores) == {("casewarden_run_assessed_ratio", *OF): 0.9, ("casewarden_run_scores_not_shown",): 0}


def test_a_run_that_goes_on_is_not_shown() -> None:
    scores = Scores()
    scores.saw(run("a", completionTime=None))
    assert shown(scores) == {("casewarden_run_scores_not_shown",): 0}


def test_the_series_go_with_the_run() -> None:
    scores = Scores()
    scores.saw(run("a", score="1"))
    scores.gone("uid-a")
    assert shown(scores) == {("casewarden_run_scores_not_shown",): 0}


def test_the_newest_runs_are_shown_and_the_others_counted() -> None:
    scores = Scores(limit=2)
    for number in range(5):
        scores.saw(run(f"r{number}", score="1", completionTime=f"2026-11-30T12:00:0{number}Z"))
    figures = shown(scores)
    names = {label for key in figures for label in key if label.startswith("run=")}
    assert names == {"run=r3", "run=r4"}
    assert figures["casewarden_run_scores_not_shown",] == 3


@pytest.mark.parametrize(
    ("candidate", "name"),
    [
        ({"control": "null-agent"}, "null-agent"),
        ({"program": {"workspace": {"configMap": "mine"}, "image": "i"}}, "mine"),
        ({"program": {"workspace": {"digest": "sha256:0123456789abcdef"}}}, "0123456789ab"),
        ({"program": {"image": "r.example/a:1"}, "model": {"name": "qwen3"}}, "qwen3"),
        ({"server": {"image": "r.example/s:1"}}, "r.example/s:1"),
        ({"program": {"argv": ["x"]}}, "program"),
        ({"server": {"image": "r" * 500}}, "r" * 80),
    ],
)
def test_a_candidate_is_called_by_what_says_most(candidate: dict[str, Any], name: str) -> None:
    assert candidate_name({"candidate": candidate}) == name
