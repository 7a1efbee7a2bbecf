"""``agentbench-oa/v1``: the main metrics of AgentBench's environments, and the paper's overall score of a candidate.

The overall score is a report over runs, with its parts, and never a run's score: the mean over the eight environments
of the score, on a scale of 0 to 100, over the environment's weight. It is absent while an environment is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from casewarden.core.scoring import decimal_text
from casewarden.reporting.run import ReportedRun
from casewarden_sdk.canonical import canonical

__all__ = ["ENVIRONMENTS", "Environment", "agentbench_report", "overall_score"]

RULE: Final = "agentbench-oa/v1"


@dataclass(frozen=True, slots=True)
class Environment:
    """One of the eight: its pack, its main metric, its weight in the paper, and how many samples the paper's split has.

    ``standard`` are the parameters that ask for that split.
    """

    short: str
    task: str
    metric: str
    weight: str
    samples: int
    standard: Mapping[str, Any]


ENVIRONMENTS: Final = (
    Environment("OS", "agentbench-os", "success rate", "10.8", 144, {"split": "std"}),
    Environment(
        "DB", "agentbench-db", "mean of three accuracies", "13.0", 300, {"dataFile": "data/dbbench/standard.jsonl"}
    ),
    Environment("KG", "agentbench-kg", "F1", "13.9", 150, {"split": "std"}),
    Environment("DCG", "agentbench-dcg", "0.7 win rate + 0.3 damage", "12.0", 20, {"split": "std"}),
    Environment("LTP", "agentbench-ltp", "game progress", "3.5", 50, {"split": "std"}),
    Environment("HH", "agentbench-alfworld", "success rate", "13.0", 50, {"split": "std"}),
    Environment("WS", "agentbench-webshop", "mean reward", "30.7", 200, {"split": "std"}),
    Environment("WB", "agentbench-mind2web", "step success rate", "11.6", 177, {"split": "std"}),
)
_BY_TASK: Final = {item.task: item for item in ENVIRONMENTS}
# The games are dealt, not read.
_WITHOUT_DATA: Final = frozenset({"agentbench-dcg"})
# Packs whose split, where a run names none, is the published one.
_STANDARD_BY_DEFAULT: Final = frozenset({"agentbench-dcg", "agentbench-ltp", "agentbench-webshop"})


def overall_score(scores: Mapping[str, Decimal | Fraction]) -> Fraction:
    """Return the paper's overall score of the scores of all eight, 0 to 100, by the environments' short names."""
    parts = (Fraction(scores[item.short]) / Fraction(item.weight) for item in ENVIRONMENTS)
    return sum(parts, Fraction(0)) / len(ENVIRONMENTS)


def agentbench_report(runs: Sequence[ReportedRun]) -> dict[str, Any]:
    """Return the report over finished runs, by candidate.

    ``ValueError`` for a run that is of none of the environments, and for two of one environment and candidate.
    """
    groups: dict[str, list[ReportedRun]] = {}
    for run in runs:
        if run.task.partition("@")[0] not in _BY_TASK:
            known = ", ".join(_BY_TASK)
            raise ValueError(f"{run.title} is of {run.task}, none of AgentBench's environments ({known}): leave it out")
        groups.setdefault(canonical(run.spec["candidate"]), []).append(run)
    return {"rule": RULE, "candidates": [_candidate(found) for found in groups.values()]}


def _candidate(runs: Sequence[ReportedRun]) -> dict[str, Any]:
    rows, scores = [], {}
    by_environment: dict[str, ReportedRun] = {}
    for run in runs:
        environment = _BY_TASK[run.task.partition("@")[0]]
        if (other := by_environment.setdefault(environment.short, run)) is not run:
            raise ValueError(f"{other.title} and {run.title} are both of {environment.short}: give one of them")
    for environment in ENVIRONMENTS:
        found = by_environment.get(environment.short)
        rows.append(_row(environment, found))
        if found is not None and found.is_valid:
            scores[environment.short] = Fraction(str(found.score["score"])) * 100
    missing = [item.short for item in ENVIRONMENTS if item.short not in scores]
    not_published = [row["environment"] for row in rows if row["environment"] in scores and not row["published"]]
    return {
        "candidate": runs[0].candidate,
        "environments": rows,
        "overall": None if missing else decimal_text(overall_score(scores)),
        "missing": missing,
        "not_on_published_data": not_published,
    }


def _row(environment: Environment, run: ReportedRun | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "environment": environment.short,
        "metric": environment.metric,
        "weight": environment.weight,
        "run": None,
        "score": None,
        "part": None,
        "published": False,
        "data": "not run",
    }
    if run is None:
        return row
    row["run"] = run.title
    row["published"], row["data"] = _data_of(environment, run)
    if run.is_valid:
        score = Fraction(str(run.score["score"])) * 100
        row |= {"score": decimal_text(score), "part": decimal_text(score / Fraction(environment.weight) / 8)}
    else:
        row["data"] = f"no valid score; {row['data']}"
    return row


def _data_of(environment: Environment, run: ReportedRun) -> tuple[bool, str]:
    """Tell whether a run was on the paper's split, as far as a run can know, and what it was on in words."""
    task = run.spec["task"]
    params = task.get("params") or {}
    samples = len({case.key.case_id for case in run.cases})
    counted = f"{samples} samples"
    if run.excluded:
        counted += f", {len(run.excluded)} excluded as broken"
    if params.get("dataset") is None and environment.task not in _WITHOUT_DATA:
        return False, f"the pack's own data set, {counted}"
    given = {"split": "std", **params} if environment.task in _STANDARD_BY_DEFAULT else params
    asked = all(given.get(name) == value for name, value in environment.standard.items())
    name = f"data set {params['dataset']}" if params.get("dataset") is not None else "dealt games"
    if asked and samples == environment.samples:
        return True, f"{name}, the standard split, {counted}"
    return False, f"{name}, {counted}; the published split has {environment.samples}"
