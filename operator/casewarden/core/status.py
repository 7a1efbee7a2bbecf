"""The whole status of an EvalRun, built anew from what is known; nothing is ever added to an old one.

Only three things are taken over from the status before: when conditions last changed, when the run started, and, once
it is finished, everything. The size has a bound whatever a candidate prints, so that no run can outgrow its object.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from casewarden.api.conditions import ConditionType, is_true
from casewarden.core.gate import Audited
from casewarden.core.intervals import observe_case, shown_interval, shown_statistics
from casewarden.core.model import CaseKey, FinishRun, LedgerRow, RunPolicy
from casewarden.core.run_conditions import Why, run_conditions, valid_score
from casewarden.core.scoring import OWN_RULES, OwnScore
from casewarden.core.tally import PlanFacts, Tally, plan_facts, status_of, tally
from casewarden_sdk.termination import cut_text

__all__ = [
    "Goal",
    "PlanFacts",
    "StatusInput",
    "Why",
    "build_status",
    "duration_text",
    "plan_facts",
    "time_text",
]

MAX_FAILURES: Final = 20
MAX_FAILURE_BYTES: Final = 300
# As many as the schema has room for.
MAX_IMAGES: Final = 16


@dataclass(frozen=True, slots=True)
class Goal:
    """What a score must reach to have passed; empty means that every case must pass."""

    score: str | None = None
    dimensions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StatusInput:
    """All that a status is made of. Times are seconds since the epoch.

    ``refused`` is why the spec is not accepted, ``plan_problem`` why there is no plan, ``wait`` why no more pods start
    now; each is None where there is none. ``running`` are cases with a living pod. ``end`` is set once the run is over,
    as it must be whenever ``refused`` or ``plan_problem`` is. ``images`` are those that ran, by container. ``ledger``
    is ``status.ledger`` as the ledger says it. ``own`` is what the pack's own rule made of the run.
    """

    generation: int
    now: float
    policy: RunPolicy
    previous: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    repeats: int = 1
    goal: Goal = field(default_factory=Goal)
    refused: Why | None = None
    plan_problem: Why | None = None
    plan: PlanFacts | None = None
    rows: tuple[LedgerRow, ...] = ()
    running: Set[CaseKey] = frozenset()
    wait: Why | None = None
    end: FinishRun | None = None
    candidate_fingerprint: str | None = None
    conditions_fingerprint: str | None = None
    images: Mapping[str, str] = field(default_factory=dict)
    ledger: Mapping[str, Any] | None = None
    evidence_uri: str | None = None
    evidence_digest: str | None = None
    audited: Audited | None = None
    usage: Mapping[str, Any] | None = None
    baseline: Mapping[str, Any] | None = None
    regrade: Mapping[str, Any] | None = None
    own: OwnScore | None = None


def time_text(seconds: float) -> str:
    """Write a time as the API does, ``2026-11-30T17:51:00Z``."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def duration_text(seconds: float) -> str:
    """Write a duration in its two largest units, ``2m13s``."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2]) or "0s"


def build_status(facts: StatusInput) -> dict[str, Any]:
    """Return the status document. A finished run's stays as it is, but for its generation and evidence."""
    if is_true(facts.previous.get("conditions", ()), ConditionType.FINISHED):
        return _finished_before(facts)
    counted = tally(facts.plan, facts.repeats, facts.rows, facts.policy, facts.own) if facts.plan is not None else None
    started = facts.previous.get("startTime") or time_text(facts.now)
    status: dict[str, Any] = {"observedGeneration": facts.generation, "startTime": started}
    if facts.seeds:
        status["seeds"] = list(facts.seeds)
    if counted is not None and facts.plan is not None:
        status |= _counts(facts, facts.plan, counted)
    if facts.end is not None:
        status |= _verdict(facts, counted, started)
    if facts.audited is not None and facts.audited.floor:
        status["floor"] = dict(facts.audited.floor)
    if facts.ledger is not None:
        status["ledger"] = dict(facts.ledger)
    for name, document in (("baseline", facts.baseline), ("regrade", facts.regrade)):
        if document is not None:
            status[name] = dict(document)
    status["fingerprints"] = _fingerprints(facts)
    status["conditions"] = run_conditions(facts, counted, time_text(facts.now))
    if facts.usage is not None:
        status["usage"] = dict(facts.usage)
    return {**status, **_evidence(facts)}


def _finished_before(facts: StatusInput) -> dict[str, Any]:
    conditions = [{**item, "observedGeneration": facts.generation} for item in facts.previous["conditions"]]
    return {**facts.previous, "observedGeneration": facts.generation, "conditions": conditions, **_evidence(facts)}


def _counts(facts: StatusInput, plan: PlanFacts, counted: Tally) -> dict[str, Any]:
    total, done = len(counted.cases), len(counted.settled)
    by_status = Counter(status_of(row) for row in counted.settled.values())
    running = sum(1 for key, _ in counted.cases if key in facts.running and key not in counted.settled)
    by_kind = Counter(row.kind for row in facts.rows)
    lost = sum(1 for row in counted.settled.values() if row.kind == "environment")
    return {
        "plan": {"digest": plan.digest},
        "cases": {
            "total": total,
            "excluded": len(plan.plan.excluded) * facts.repeats,
            "pending": total - done - running,
            "running": running,
            "passed": by_status["passed"],
            "failed": by_status["failed"],
            "agentErrors": by_status["agent_error"],
            "environmentErrors": by_status["environment_error"],
        },
        "attempts": {
            "total": len(facts.rows),
            # The one that spent the budget was not followed by another.
            "environmentRetries": by_kind["environment"] - lost,
            "interruptions": by_kind["interruption"],
            "suspended": by_kind["suspended"],
        },
        "progress": counted.progress,
        "assessed": f"{counted.score.assessed}/{total}",
        "errors": by_status["agent_error"] + by_status["environment_error"],
        "dimensions": {name: result.to_json() for name, result in sorted(counted.score.dimensions.items())},
        "failures": list(_failures(counted)),
    }


def _failures(counted: Tally) -> Iterator[dict[str, Any]]:
    shown = 0
    for key, _ in counted.cases:
        row = counted.settled.get(key)
        if row is None or row.status == "passed":
            continue
        yield _failure(key, row)
        shown += 1
        if shown == MAX_FAILURES:
            return


def _failure(key: CaseKey, row: LedgerRow) -> dict[str, Any]:
    """Describe a case in at most 300 bytes of JSON; the error gets what its names leave."""
    entry: dict[str, Any] = {"case": key.case_id, "seed": key.seed, "repeat": key.repeat, "status": status_of(row)}
    if row.reason:
        entry["reason"] = row.reason
    if not row.error:
        return entry
    # A case's own error may be a megabyte long: cut it before anything walks over it.
    error = cut_text(row.error[:MAX_FAILURE_BYTES], MAX_FAILURE_BYTES) or ""
    while error and len(json.dumps({**entry, "error": error}, ensure_ascii=False).encode()) > MAX_FAILURE_BYTES:
        error = error[:-1]
    return {**entry, "error": error} if error else entry


def _verdict(facts: StatusInput, counted: Tally | None, started: str) -> dict[str, Any]:
    """Return what only a finished run has; a score only where every case was assessed."""
    begun = datetime.fromisoformat(started).timestamp()
    over: dict[str, Any] = {
        "completionTime": time_text(facts.now),
        "duration": duration_text(facts.now - begun),
        "valid": False,
        "resolved": False,
    }
    score = valid_score(facts, counted)
    if score is not None:
        over |= {"valid": True, "resolved": score.resolved, "score": score.score, "passRate": score.pass_rate}
        over |= _statistics(facts, counted)
    return over


def _statistics(facts: StatusInput, counted: Tally | None) -> dict[str, Any]:
    if counted is None or facts.plan is None or facts.plan.rule in OWN_RULES:
        return {}
    observed = [
        observe_case(key, case.dimensions, counted.settled[key].checks)
        for key, case in counted.cases
        if key in counted.settled
    ]
    weights = facts.plan.plan.weights
    shown = {
        "scoreInterval": shown_interval(weights, observed),
        "statistics": shown_statistics(weights, observed),
    }
    return {name: value for name, value in shown.items() if value}


def _fingerprints(facts: StatusInput) -> dict[str, Any]:
    known: dict[str, Any] = dict(facts.plan.fingerprints) if facts.plan is not None else {}
    if facts.candidate_fingerprint is not None:
        known["candidate"] = facts.candidate_fingerprint
    if facts.conditions_fingerprint is not None:
        known["conditions"] = facts.conditions_fingerprint
    if facts.images:
        known["images"] = dict(sorted(facts.images.items())[:MAX_IMAGES])
    return known


def _evidence(facts: StatusInput) -> dict[str, Any]:
    evidence = {"uri": facts.evidence_uri, "digest": facts.evidence_digest}
    known = {name: value for name, value in evidence.items() if value is not None}
    return {"evidence": known} if known else {}
