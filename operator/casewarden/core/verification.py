"""What a verification of a run came to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from casewarden.api.plan import PlanCase
from casewarden.core.bundle_check import Bundle
from casewarden.core.usage import status_usage
from casewarden_sdk.canonical import canonical_equal

__all__ = ["Finding", "Folder", "Read", "Regrade", "Verification", "compare_audit_status", "compare_status"]

Read = Callable[[str], bytes | None]
"""Gives a file by its path below the run, or None where there is none."""
Regrade = Callable[[PlanCase, Bundle], Mapping[str, Any]]
"""Grades a record again."""
Folder = tuple[Read, Collection[str]]
"""How a run's files are read, and which there are."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it must be: which file, and what of it."""

    path: str
    problem: str


@dataclass(slots=True)
class Verification:
    """What a verification came to.

    ``authenticated`` is None when there was no digest to hold the run against. ``unsealed`` are verdicts that the
    operator gave by what it saw of the pod, without a bundle: they rest on its word. ``regraded`` is how many records
    were graded again, None when that was not asked for; ``not_regraded`` are
    verdicts over another run's records that rest on the run's word without that. ``interval`` is the score's,
    ``statistics`` what else a status shows beside it, ``mutants`` and ``original`` (of a regrade) what it shows of
    those, all recomputed. ``usage`` is what the run says that its models used, ``calls_in_bundles`` how many of those
    calls its bundles have. ``notes`` are worth knowing and wrong with nothing.
    """

    findings: list[Finding] = field(default_factory=list)
    name: str = ""
    namespace: str = ""
    uid: str = ""
    digest: str = ""
    authenticated: bool | None = None
    score: Mapping[str, Any] = field(default_factory=dict)
    rows: int = 0
    verdicts: int = 0
    bundles: int = 0
    unsealed: list[str] = field(default_factory=list)
    regraded: int | None = None
    not_regraded: int = 0
    interval: Mapping[str, Any] | None = None
    statistics: Mapping[str, Any] | None = None
    mutants: Mapping[str, Any] | None = None
    original: Mapping[str, Any] | None = None
    usage: Mapping[str, Any] | None = None
    calls_in_bundles: int | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def consistent(self) -> bool:
        """Tell whether everything fits together, and the digest from elsewhere where there was one."""
        return not self.findings

    def add(self, path: str, problem: str) -> None:
        """Note a finding."""
        self.findings.append(Finding(path, problem))


def compare_status(result: Verification, status: Mapping[str, Any]) -> None:
    """Note where the EvalRun's status says something else than the evidence. A failed run's status has no score."""
    conditions = status.get("conditions") or []
    failed = any(item.get("type") == "Failed" and item.get("status") == "True" for item in conditions)
    score = {**result.score, "valid": False, "resolved": False, "score": None, "pass_rate": None}
    score = score if failed else dict(result.score)
    shown = {
        "valid": score.get("valid"),
        "resolved": score.get("resolved"),
        "score": score.get("score"),
        "passRate": score.get("pass_rate"),
        "scoreInterval": result.interval if score.get("valid") else None,
        "statistics": (result.statistics or None) if score.get("valid") else None,
        "regrade": result.original,
    }
    for name in ("scoreInterval", "statistics"):
        if status.get(name) is None:
            del shown[name]  # an earlier version computed none
    for name, value in shown.items():
        if not canonical_equal(status.get(name), value):
            result.add("status", f"{name} is {status.get(name)!r}; the evidence comes to {value!r}")
    if result.usage is not None and not canonical_equal(status.get("usage"), status_usage(result.usage)):
        result.add("status", f"usage is {status.get('usage')!r}; the evidence has {status_usage(result.usage)!r}")
    for name, dimension in (score.get("dimensions") or {}).items():
        kept = (status.get("dimensions") or {}).get(name)
        if not canonical_equal(kept, dimension):
            result.add("status", f"dimensions.{name} is {kept!r}; the evidence comes to {dimension!r}")


def compare_audit_status(result: Verification, status: Mapping[str, Any]) -> None:
    """Note where the AuditRun's status says something else than the evidence."""
    judgement = result.score
    complete = any(
        item.get("type") == "Complete" and item.get("status") == "True" for item in status.get("conditions") or []
    )
    valid = bool(judgement.get("valid")) and complete
    counted = f"{judgement.get('killed')}/{judgement.get('faults')}"
    shown = {
        "valid": valid,
        "passed": judgement.get("passed") if valid else None,
        "killed": counted if valid else None,
        "mutationScore": judgement.get("mutation_score") if valid else None,
        "weakestMargin": judgement.get("weakest_margin") if valid else None,
        "referenceScore": judgement.get("reference_score") if valid else None,
        "referenceFlakes": judgement.get("reference_flakes") if valid else None,
        "floors": judgement.get("floors") if valid else None,
        "graderMutants": result.mutants if valid else None,
    }
    for name, value in shown.items():
        if not canonical_equal(status.get(name), value):
            result.add("status", f"{name} is {status.get(name)!r}; the evidence comes to {value!r}")
    rows = {row.get("name"): row for row in status.get("controls") or []}
    for control in judgement.get("controls") or []:
        row = rows.get(control["name"], {})
        for name in ("killed", "margin"):
            if not canonical_equal(row.get(name), control[name]):
                problem = f"controls.{control['name']}.{name} is {row.get(name)!r}; the evidence has {control[name]!r}"
                result.add("status", problem)
