"""What a run task knows of its run, and the status that comes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from casewarden.api.conditions import ConditionType
from casewarden.api.evalrun import EvalRunSpec
from casewarden.api.plan import Plan
from casewarden.controller.identity import RunIdentity
from casewarden.controller.ledger import Ledger
from casewarden.controller.plans import Resolved
from casewarden.controller.workspaces import Snapshot
from casewarden.core.gate import Audited
from casewarden.core.model import CaseKey, FinishRun, LedgerRow, PlannedCase, RunPolicy
from casewarden.core.pods import PodContext
from casewarden.core.run_conditions import Why
from casewarden.core.scoring import OwnScore
from casewarden.core.status import Goal, StatusInput, build_status
from casewarden.core.tally import PlanFacts
from casewarden.core.usage import status_usage
from casewarden.ports.kube import Manifest

__all__ = ["Original", "RunState", "active_since"]

_NO_SPEC = RunPolicy(1, 0, 0, 0.0, suspend=False, deadline=None)


@dataclass(frozen=True, slots=True)
class Original:
    """A finished run whose records are graded again: its plan and rows, held against ``digest``, and its status."""

    name: str
    uid: str
    digest: str
    plan: Plan
    rows: tuple[LedgerRow, ...]
    status: Mapping[str, Any]


@dataclass
class RunState:
    """A run as its task sees it; everything but ``body`` is made by the task's phases."""

    body: Manifest
    ledger: Ledger
    spec: EvalRunSpec | None = None
    phase: str = "accepting"
    seeds: tuple[int, ...] = ()
    refused: Why | None = None
    plan_problem: Why | None = None
    plan: PlanFacts | None = None
    plan_text: str = ""
    task_image_id: str = ""
    snapshot: Snapshot | None = None
    context: PodContext | None = None
    candidate_fingerprint: str | None = None
    conditions_fingerprint: str | None = None
    images: dict[str, str] = field(default_factory=dict)
    running: frozenset[CaseKey] = frozenset()
    wait: Why | None = None
    end: FinishRun | None = None
    evidence_digest: str | None = None
    audit: RunIdentity | None = None
    audited: Audited | None = None
    usage: dict[str, Any] | None = None
    resolved: Resolved | None = None
    original: Original | None = None
    regrade: dict[str, Any] | None = None
    baseline: dict[str, Any] | None = None
    own: OwnScore | None = None

    @property
    def run(self) -> RunIdentity:
        """Whose run this is."""
        return RunIdentity.of(self.body)

    @property
    def cases(self) -> tuple[CaseKey, ...]:
        """Every case, times repeats, in the order in which they start."""
        if self.plan is None or self.spec is None:
            return ()
        return tuple(
            CaseKey(case.seed, case.case_id, repeat) for case in self.plan.cases for repeat in range(self.spec.repeats)
        )

    @property
    def planned(self) -> dict[tuple[int, str], PlannedCase]:
        """The plan by seed and case."""
        return {(case.seed, case.case_id): case for case in self.plan.cases} if self.plan is not None else {}

    def policy(self, started: float | None) -> RunPolicy:
        """Return what of the spec decides now; its deadline counts from ``started``, when the run began or went on."""
        spec = self.spec
        if spec is None:
            return _NO_SPEC
        seconds = spec.active_deadline_seconds
        return RunPolicy(
            parallelism=spec.parallelism,
            environment_retries=spec.retries.environment,
            interruption_retries=spec.retries.interruptions,
            pending_seconds=float(spec.limits.pending_seconds),
            suspend=spec.suspend,
            deadline=started + seconds if started is not None and seconds is not None and not spec.suspend else None,
            keep_pods=spec.keep_pods,
        )

    def status(self, previous: Mapping[str, Any], now: float) -> dict[str, Any]:
        """Return the whole status; ``previous`` is what the API server has."""
        spec = self.spec
        goal = Goal()
        if spec is not None and spec.threshold is not None:
            goal = Goal(spec.threshold.score, spec.threshold.dimensions)
        status = build_status(
            StatusInput(
                generation=self.body["metadata"].get("generation", 0),
                now=now,
                policy=self.policy(active_since(previous)),
                previous=previous,
                seeds=self.seeds,
                repeats=spec.repeats if spec is not None else 1,
                goal=goal,
                refused=self.refused,
                plan_problem=self.plan_problem,
                plan=self.plan,
                rows=tuple(self.ledger.rows),
                running=self.running,
                wait=self.wait,
                end=self.end,
                candidate_fingerprint=self.candidate_fingerprint,
                conditions_fingerprint=self.conditions_fingerprint,
                images=self.images,
                evidence_uri=f"runs/{self.run.uid}" if self.plan is not None else None,
                evidence_digest=self.evidence_digest,
                audited=self.audited,
                baseline=self.baseline,
                regrade=self.regrade,
                usage=None if self.usage is None else status_usage(self.usage),
                own=self.own,
            )
        )
        if self.ledger.rows:
            status["ledger"] = self._ledger()
        return status

    def _ledger(self) -> dict[str, Any]:
        kinds = Counter(row.kind for row in self.ledger.rows)
        return {
            "rows": len(self.ledger.rows),
            "verdicts": kinds["verdict"],
            "environment": kinds["environment"],
            "interruptions": kinds["interruption"],
            "digest": self.ledger.digest,
        }


def active_since(status: Mapping[str, Any]) -> float | None:
    """Return since when a status's run may work, in seconds since the epoch; None while it may not.

    As a Job's, its clock stops while it is suspended and starts anew when it is resumed.
    """
    text = status.get("startTime")
    if not text:
        return None
    moments = [text]
    for item in status.get("conditions") or ():
        if item["type"] == ConditionType.SUSPENDED:
            if item["status"] == "True":
                return None
            moments.append(item["lastTransitionTime"])
    return max(datetime.fromisoformat(moment).timestamp() for moment in moments)
