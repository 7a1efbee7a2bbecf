"""Where a run stands: its cases, the row that settled each, and what they come to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from casewarden.api.plan import Plan
from casewarden.core.fingerprints import task_name
from casewarden.core.model import CaseKey, LedgerRow, PlannedCase, RunPolicy
from casewarden.core.policies.retry import standing
from casewarden.core.scoring import RULES, CaseResult, OwnScore, Score, with_own
from casewarden_sdk.canonical import sha256_json

__all__ = ["PlanFacts", "Tally", "plan_facts", "status_of", "tally"]


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What of a plan the status shows; ``cases`` are in the order in which they start, ``weights`` are decimals."""

    digest: str
    rule: str
    plan: Plan
    cases: tuple[PlannedCase, ...]

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprints that the plan gives."""
        own = self.plan.fingerprints
        task = task_name(self.plan.task.id, self.plan.task.version)
        return {
            "task": task,
            "contract": own.contract,
            "cases": own.cases,
            "grader": own.grader,
            "params": sha256_json(self.plan.params),
        }


def plan_facts(plan: Plan, digest: str) -> PlanFacts:
    """Return what the status needs of a plan whose canonical text has this SHA-256."""
    cases = tuple(
        PlannedCase(case.seed, case.id, tuple(case.dimensions), case.kind, case.sha256) for case in plan.cases
    )
    return PlanFacts(digest, plan.aggregation, plan, cases)


@dataclass(frozen=True, slots=True)
class Tally:
    """The run's cases in the order of the plan, each with the row that settled it, and what they come to."""

    cases: tuple[tuple[CaseKey, PlannedCase], ...]
    settled: Mapping[CaseKey, LedgerRow]
    score: Score

    @property
    def progress(self) -> str:
        """Cases that are done, of all: ``91/105``."""
        return f"{len(self.settled)}/{len(self.cases)}"


def tally(
    plan: PlanFacts, repeats: int, rows: Iterable[LedgerRow], policy: RunPolicy, own: OwnScore | None = None
) -> Tally:
    """Count a run: which row settled each case of the plan, times ``repeats``, and the score of what is there.

    ``own`` is what the pack's own rule made of it, for a rule of that kind.
    """
    by_case: dict[CaseKey, list[LedgerRow]] = defaultdict(list)
    for row in rows:
        by_case[row.key.case].append(row)
    cases = tuple((CaseKey(case.seed, case.case_id, repeat), case) for case in plan.cases for repeat in range(repeats))
    settled: dict[CaseKey, LedgerRow] = {}
    for key, _ in cases:
        found = standing(by_case[key], policy).settled if key in by_case else None
        if found is not None:
            settled[key] = found
    results = [_result(case, settled.get(key)) for key, case in cases]
    return Tally(cases, settled, with_own(RULES[plan.rule](plan.plan.weights, results), own))


def status_of(row: LedgerRow) -> str:
    """Return the verdict's status that a settling row stands for; a spent budget is an environment error."""
    return row.status if row.kind == "verdict" else "environment_error"


def _result(case: PlannedCase, row: LedgerRow | None) -> CaseResult:
    if row is None:
        return CaseResult(case.dimensions)
    if row.kind != "verdict":
        return CaseResult(case.dimensions, "environment_error", "-" * len(case.dimensions))
    return CaseResult(case.dimensions, row.status, row.checks)
