"""A finished run as reports and exports see it: every case with what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from casewarden.core.in_words import beside_the_score
from casewarden.core.intervals import shown_interval, shown_statistics
from casewarden.core.model import CaseKey
from casewarden.core.scoring import OWN_RULES
from casewarden.core.statistics import Observed
from casewarden_sdk.contract import AGENT_ERROR, ENVIRONMENT_ERROR, FAILED, PASSED

__all__ = ["NOT_ASSESSED", "ORDER", "ReportedCase", "ReportedRun", "candidate_of", "reported_run"]

NOT_ASSESSED = "not assessed"
ORDER = (ENVIRONMENT_ERROR, NOT_ASSESSED, AGENT_ERROR, FAILED, PASSED)
"""Statuses, what needs a look first."""


@dataclass(frozen=True, slots=True)
class ReportedCase:
    """One seed, case and repeat. ``attempt`` is the one that counts, ``attempts`` how many there were."""

    key: CaseKey
    status: str
    checks: Mapping[str, bool | None]
    reason: str | None = None
    error: str | None = None
    seconds: float | None = None
    attempt: int | None = None
    attempts: int = 0
    ended_at: float | None = None

    @property
    def is_assessed(self) -> bool:
        """Whether there is a verdict on the candidate."""
        return self.status in (PASSED, FAILED, AGENT_ERROR)


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """A finished run. ``beside`` is what its status has beside the score: interval, statistics, floor, comparisons.

    ``floor`` and ``interval`` are empty where there is none.
    """

    name: str
    namespace: str
    uid: str
    task: str
    candidate: str
    score: Mapping[str, Any]
    fingerprints: Mapping[str, str]
    seeds: Sequence[int]
    spec: Mapping[str, Any]
    digest: str
    cases: tuple[ReportedCase, ...]
    limits: Mapping[str, Any] = field(default_factory=dict)
    excluded: tuple[Mapping[str, Any], ...] = ()
    floor: Mapping[str, Any] = field(default_factory=dict)
    interval: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] | None = None
    """What its models used, as ``run.json`` has it; None where that has nothing of it."""
    beside: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def is_valid(self) -> bool:
        """Whether every case was assessed."""
        return bool(self.score.get("valid"))

    @property
    def families(self) -> list[str]:
        """The ids of the cases, in the plan's order."""
        return list(dict.fromkeys(case.key.case_id for case in self.cases))


def reported_run(
    run: Mapping[str, Any],
    plan: Mapping[str, Any],
    rows: Iterable[Mapping[str, Any]],
    digest: str,
    status: Mapping[str, Any] | None = None,
    usage: Mapping[str, Any] | None = None,
) -> ReportedRun:
    """Put a run together from ``run.json``, ``plan.json``, the rows of ``results.jsonl``, and a status if there is one.

    ``usage`` is ``usage.json`` where there is one; the status knows it, too.

    ``KeyError``, ``TypeError`` or ``ValueError`` where these are not what a run leaves; `casewarden verify` says more.
    """
    spec = run["spec"]
    counted: dict[CaseKey, Mapping[str, Any]] = {}
    attempts: dict[CaseKey, int] = {}
    for row in rows:
        key = CaseKey(int(row["seed"]), str(row["case_id"]), int(row["repeat"]))
        attempts[key] = attempts.get(key, 0) + 1
        if counted.get(key, {}).get("kind") != "verdict":
            counted[key] = row
    cases = [
        _case(CaseKey(planned["seed"], planned["id"], repeat), planned["dimensions"], counted, attempts)
        for planned in plan["cases"]
        for repeat in range(int(spec.get("repeats", 1)))
    ]
    task = plan["task"]
    status = status or _computed(run, plan, cases)
    return ReportedRun(
        name=str(run["name"]),
        namespace=str(run["namespace"]),
        uid=str(run["uid"]),
        task=f"{task['id']}@{task['version']}",
        candidate=candidate_of(spec),
        score=run["score"],
        fingerprints=plan["fingerprints"],
        seeds=tuple(run["seeds"]),
        spec=spec,
        digest=digest,
        cases=tuple(cases),
        limits={**plan["limits"], **_own_limits(spec)},
        excluded=tuple(plan.get("excluded") or ()),
        floor=status.get("floor") or {},
        interval=status.get("scoreInterval") or {},
        beside=tuple(beside_the_score(status)),
        usage=run.get("usage") or usage,
    )


def _computed(run: Mapping[str, Any], plan: Mapping[str, Any], cases: Iterable[ReportedCase]) -> dict[str, Any]:
    """Return what the status of a run without one would have beside its score."""
    if not run["score"].get("valid") or plan.get("aggregation") in OWN_RULES:
        return {}
    weights = {name: Decimal(weight) for name, weight in plan["dimensions"].items()}
    observed = [
        Observed(case.key.seed, case.key.case_id, case.key.repeat, {name: bool(x) for name, x in case.checks.items()})
        for case in cases
    ]
    found = {
        "scoreInterval": shown_interval(weights, observed),
        "statistics": shown_statistics(weights, observed),
    }
    return {name: value for name, value in found.items() if value}


def _own_limits(spec: Mapping[str, Any]) -> dict[str, Any]:
    own = spec.get("limits") or {}
    names = {"case_seconds": "caseSeconds", "actions": "actions", "tokens": "tokens"}
    return {name: own[field_] for name, field_ in names.items() if own.get(field_) is not None}


def _case(
    key: CaseKey,
    dimensions: Sequence[str],
    counted: Mapping[CaseKey, Mapping[str, Any]],
    attempts: Mapping[CaseKey, int],
) -> ReportedCase:
    row = counted.get(key)
    if row is None:
        return ReportedCase(key, NOT_ASSESSED, dict.fromkeys(sorted(dimensions)), attempts=attempts.get(key, 0))
    bits = str(row["checks"]).ljust(len(dimensions), "-")
    checks = {name: {"1": True, "0": False}.get(bit) for name, bit in zip(sorted(dimensions), bits, strict=False)}
    status = str(row["status"]) if row["kind"] in ("verdict", "environment") else NOT_ASSESSED
    seconds = row.get("seconds")
    return ReportedCase(
        key, status, checks, row.get("reason"), row.get("error"),
        None if seconds is None else float(seconds), int(row["attempt"]), attempts[key], row.get("ended_at"),
    )  # fmt: skip


def candidate_of(spec: Mapping[str, Any]) -> str:
    """Say in a few words what was evaluated."""
    candidate = spec.get("candidate") or {}
    parts = []
    if control := candidate.get("control"):
        parts.append(f"control {control}")
    if program := candidate.get("program"):
        workspace = program.get("workspace") or {}
        what = workspace.get("configMap") or workspace.get("digest") or program.get("image") or "its own command"
        parts.append(f"program {what}")
    if server := candidate.get("server"):
        parts.append(f"server {server.get('image')}")
    if model := candidate.get("model"):
        parts.append(f"model {model.get('name')}")
    return ", ".join(parts) or "no candidate"
