"""The whole status of an AuditRun, built anew from what is known of its children; its size has a bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from casewarden.api.conditions import AUDIT_CONDITIONS, ConditionStatus, ConditionType, is_true, set_condition
from casewarden.api.plan import PlanControl
from casewarden.api.reasons import RunReason
from casewarden.core.audit import Judgement
from casewarden.core.model import FinishRun
from casewarden.core.mutants import MutantVerdict, mutants_status
from casewarden.core.run_conditions import MAX_MESSAGE_BYTES, Why
from casewarden.core.status import time_text
from casewarden.core.tally import PlanFacts
from casewarden_sdk.termination import cut_text

__all__ = ["AuditInput", "build_audit_status"]

_FAMILIES: Final = 20


@dataclass(frozen=True, slots=True)
class AuditInput:
    """All that an audit's status is made of; ``children`` are the runs' bodies by the name of their control."""

    generation: int
    now: float
    suspend: bool
    previous: Mapping[str, Any] = field(default_factory=dict)
    seeds: Sequence[int] = ()
    refused: Why | None = None
    plan_problem: Why | None = None
    plan: PlanFacts | None = None
    controls: Sequence[PlanControl] = ()
    reference_repeats: int = 1
    children: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    wait: Why | None = None
    judgement: Judgement | None = None
    mutants: Sequence[MutantVerdict] = ()
    end: FinishRun | None = None
    images: Mapping[str, str] = field(default_factory=dict)
    evidence_uri: str | None = None
    evidence_digest: str | None = None


def build_audit_status(facts: AuditInput) -> dict[str, Any]:
    """Return the status document; that of a finished audit stays as it is."""
    if is_true(facts.previous.get("conditions", ()), ConditionType.FINISHED):
        conditions = [{**item, "observedGeneration": facts.generation} for item in facts.previous["conditions"]]
        return {**facts.previous, "observedGeneration": facts.generation, "conditions": conditions}
    now = time_text(facts.now)
    status: dict[str, Any] = {
        "observedGeneration": facts.generation,
        "startTime": facts.previous.get("startTime") or now,
    }
    if facts.seeds:
        status["seeds"] = list(facts.seeds)
    if facts.plan is not None:
        status |= {"plan": {"digest": facts.plan.digest}, "progress": _progress(facts, facts.plan)}
        status["controls"] = [_row(facts, control) for control in facts.controls]
    status["fingerprints"] = _fingerprints(facts)
    if facts.end is not None:
        status |= {"completionTime": now, "valid": False}
        if facts.judgement is not None and facts.end.complete:
            status |= _verdict(facts.judgement)
            if facts.mutants:
                status["graderMutants"] = mutants_status(facts.mutants)
    evidence = {"uri": facts.evidence_uri, "digest": facts.evidence_digest}
    if known := {name: value for name, value in evidence.items() if value is not None}:
        status["evidence"] = known
    status["conditions"] = _conditions(facts, str(status.get("progress", "")), now)
    return status


def _progress(facts: AuditInput, plan: PlanFacts) -> str:
    total = done = 0
    for control in facts.controls:
        repeats = facts.reference_repeats if control.kind == "reference" else 1
        total += len(plan.cases) * repeats
        counts = (facts.children.get(control.name, {}).get("status") or {}).get("cases") or {}
        done += counts.get("total", 0) - counts.get("pending", 0) - counts.get("running", 0)
    return f"{done}/{total}"


def _row(facts: AuditInput, control: PlanControl) -> dict[str, Any]:
    row: dict[str, Any] = {"name": control.name, "kind": control.kind}
    if control.target is not None:
        row["target"] = control.target
    child = facts.children.get(control.name)
    if child is not None:
        row["evalRun"] = child["metadata"]["name"]
        for name in ("valid", "score"):
            if (value := (child.get("status") or {}).get(name)) is not None:
                row[name] = value
    verdict = (
        next((item for item in facts.judgement.controls if item.name == control.name), None)
        if (facts.judgement is not None)
        else None
    )
    if verdict is not None:
        counted = {"killed": verdict.killed, "margin": verdict.margin}
        row |= {name: value for name, value in counted.items() if value is not None}
        if verdict.collateral:
            row["collateral"] = list(verdict.collateral)
        if verdict.detected_by:
            row["detectedBy"] = list(verdict.detected_by)[:_FAMILIES]
        if verdict.problem:
            row["problem"] = cut_text(verdict.problem, 300)
    return row


def _fingerprints(facts: AuditInput) -> dict[str, Any]:
    known: dict[str, Any] = dict(facts.plan.fingerprints) if facts.plan is not None else {}
    found = {
        digest
        for child in facts.children.values()
        if (digest := ((child.get("status") or {}).get("fingerprints") or {}).get("conditions"))
    }
    # All controls work under the conditions of their audit; where they did not, no run's can be equal to them.
    if len(found) == 1:
        known["conditions"] = found.pop()
    if facts.images:
        known["images"] = dict(sorted(facts.images.items()))
    return known


def _verdict(judgement: Judgement) -> dict[str, Any]:
    if not judgement.valid:
        return {"valid": False}
    shown: dict[str, Any] = {
        "valid": True,
        "passed": judgement.passed,
        "killed": f"{judgement.killed}/{judgement.faults}",
        "mutationScore": judgement.mutation_score,
        "weakestMargin": judgement.weakest_margin,
        "floors": dict(sorted(judgement.floors.items())),
        "referenceScore": judgement.reference_score,
        "referenceFlakes": judgement.reference_flakes,
    }
    return {name: value for name, value in shown.items() if value is not None}


_Judged = tuple[ConditionStatus, Why]


def _conditions(facts: AuditInput, progress: str, now: str) -> list[dict[str, Any]]:
    state, end = _state(facts, progress), facts.end
    suspended = facts.suspend and end is None
    judged: dict[ConditionType, _Judged] = {
        ConditionType.ACCEPTED: ("False", facts.refused)
        if facts.refused
        else ("True", Why(RunReason.ACCEPTED, "the spec can be run")),
        ConditionType.PLANNED: _planned(facts),
        ConditionType.SUSPENDED: ("True", Why(RunReason.SUSPENDED, "spec.suspend is true"))
        if suspended
        else ("False", Why(RunReason.NOT_SUSPENDED)),
        ConditionType.FINISHED: ("True" if end is not None else "False", state),
        ConditionType.COMPLETE: ("True" if end is not None and end.complete else "False", state),
        ConditionType.FAILED: ("True" if end is not None and not end.complete else "False", state),
        ConditionType.PASSED: _passed(facts),
    }
    conditions: list[dict[str, Any]] = [dict(item) for item in facts.previous.get("conditions", ())]
    for type_ in AUDIT_CONDITIONS:
        status, why = judged[type_]
        message = cut_text(why.message[:MAX_MESSAGE_BYTES], MAX_MESSAGE_BYTES) or ""
        conditions = set_condition(conditions, type_, status, why.reason, message, now, facts.generation)
    return conditions


def _state(facts: AuditInput, progress: str) -> Why:
    if facts.end is not None:
        return Why(facts.end.reason, facts.end.message)
    if facts.suspend:
        return Why(RunReason.SUSPENDED, "spec.suspend is true; set it to false to go on")
    if facts.wait is not None:
        return facts.wait
    if facts.plan is None:
        return Why(RunReason.PLANNING, "the task is being asked for its plan")
    return Why(RunReason.RUNNING, f"{progress} cases of {len(facts.controls)} controls are done")


def _planned(facts: AuditInput) -> _Judged:
    if facts.plan_problem is not None:
        return "False", facts.plan_problem
    if facts.plan is not None:
        return "True", Why(RunReason.PLANNED, f"{len(facts.controls)} controls, {len(facts.plan.cases)} cases each")
    if facts.refused is not None:
        return "False", facts.refused
    if facts.end is not None:
        return "False", Why(facts.end.reason, facts.end.message)
    return "Unknown", Why(RunReason.PLANNING, "the task is being asked for its plan")


def _passed(facts: AuditInput) -> _Judged:
    judgement, end = facts.judgement, facts.end
    if end is None:
        return "Unknown", Why(RunReason.NO_VALID_SCORE, "the audit is not over")
    if not end.complete or judgement is None or not judgement.valid:
        said = "; ".join(judgement.problems) if judgement is not None else end.message
        return "Unknown", Why(RunReason.NO_VALID_SCORE, said or "the audit is not valid")
    if judgement.passed:
        return "True", Why(
            RunReason.AUDIT_PASSED,
            f"the reference is right throughout and {judgement.killed} of {judgement.faults} faults are caught, "
            f"the weakest by {judgement.weakest_margin} families",
        )
    return "False", Why(RunReason.AUDIT_NOT_PASSED, "; ".join(judgement.problems))
