"""The paper's overall score over finished runs: five published rows, its parts, and what it is silent about."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from casewarden.core.model import CaseKey
from casewarden.reporting.agentbench import ENVIRONMENTS, agentbench_report, overall_score
from casewarden.reporting.run import ReportedCase, ReportedRun

# Scores of the paper's table in the order of the environments, its printed overall score, and that with one place more.
PUBLISHED = {
    "gpt-4": ("42.4 32.0 58.8 74.5 16.6 78.0 61.1 29.0", "4.01", "4.007"),
    "claude-2": ("18.1 27.3 41.3 55.5 8.4 54.0 61.4 0.0", "2.49", "2.491"),
    "gpt-3.5-turbo": ("32.6 36.7 25.9 33.7 10.5 16.0 64.1 20.0", "2.32", "2.320"),
    "codellama-34b": ("2.8 14.0 23.5 8.4 0.7 4.0 52.1 20.0", "0.96", "0.957"),
    "oasst-12b": ("1.4 0.0 0.0 0.0 0.0 0.0 0.3 1.0", "0.03", "0.028"),
}


def places(value: Any, digits: str) -> str:
    return str((Decimal(value.numerator) / Decimal(value.denominator)).quantize(Decimal(digits)))


@pytest.mark.parametrize("model", PUBLISHED)
def test_a_published_row_comes_to_its_published_overall_score(model: str) -> None:
    row, printed, exact = PUBLISHED[model]
    scores = dict(zip([item.short for item in ENVIRONMENTS], map(Decimal, row.split()), strict=True))
    assert (places(overall_score(scores), "0.01"), places(overall_score(scores), "0.001")) == (printed, exact)


def a_run(task: str, score: str | None, *, samples: int = 2, params: Any = None, model: str = "m") -> ReportedRun:
    cases = tuple(ReportedCase(CaseKey(0, str(number), 0), "passed", {"success": True}) for number in range(samples))
    spec = {"task": {"name": task, "params": params or {}}, "candidate": {"model": {"name": model}}}
    kept = {"valid": score is not None, **({} if score is None else {"score": score})}
    return ReportedRun("r-" + task, "ns", task, f"{task}@1.0.0", model, kept, {}, (0,), spec, "", cases)


def test_eight_runs_have_an_overall_score_with_its_parts() -> None:
    row = PUBLISHED["gpt-4"][0].split()
    runs = [
        a_run(item.task, str(Decimal(score) / 100), samples=item.samples,
              params={"dataset": "agentbench", **item.standard})
        for item, score in zip(ENVIRONMENTS, row, strict=True)
    ]  # fmt: skip
    (found,) = agentbench_report(runs)["candidates"]
    assert found["overall"].startswith("4.007")
    assert (found["missing"], found["not_on_published_data"]) == ([], [])
    assert sum(Decimal(item["part"]) for item in found["environments"]) == pytest.approx(Decimal(found["overall"]))
    assert found["environments"][0]["score"] == "42.4"


def test_what_was_not_run_or_not_on_published_data_is_said() -> None:
    runs = [
        a_run("agentbench-os", "0.5"),
        a_run("agentbench-db", "0.25", samples=60, params={"dataset": "agentbench"}),
        a_run("agentbench-kg", None),
        a_run("agentbench-dcg", "1", samples=20),
    ]
    (found,) = agentbench_report(runs)["candidates"]
    assert found["overall"] is None
    assert found["missing"] == ["KG", "LTP", "HH", "WS", "WB"]
    assert found["not_on_published_data"] == ["OS", "DB"]
    data = {row["environment"]: row["data"] for row in found["environments"]}
    assert data["OS"] == "the pack's own data set, 2 samples"
    assert data["DB"] == "data set agentbench, 60 samples; the published split has 300"
    assert data["KG"].startswith("no valid score")
    assert data["DCG"] == "dealt games, the standard split, 20 samples"
    assert data["LTP"] == "not run"


def test_candidates_are_told_apart_and_two_runs_of_one_environment_refused() -> None:
    runs = [a_run("agentbench-os", "0.5"), a_run("agentbench-os", "0.6", model="n")]
    assert [item["candidate"] for item in agentbench_report(runs)["candidates"]] == ["m", "n"]
    with pytest.raises(ValueError, match="are both of OS"):
        agentbench_report([a_run("agentbench-os", "0.5"), a_run("agentbench-os", "0.6")])
    with pytest.raises(ValueError, match="none of AgentBench's environments"):
        agentbench_report([a_run("durable-kv", "1")])
