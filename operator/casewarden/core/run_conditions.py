"""A run's conditions: its state machine as people and ``kubectl wait`` see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from casewarden.api.conditions import ConditionStatus, ConditionType, set_condition
from casewarden.api.reasons import RunReason
from casewarden.core.scoring import Score, meets
from casewarden_sdk.termination import cut_text

if TYPE_CHECKING:
    from casewarden.core.status import StatusInput
    from casewarden.core.tally import Tally

__all__ = ["MAX_MESSAGE_BYTES", "Why", "run_conditions", "valid_score"]

MAX_MESSAGE_BYTES: Final = 600


@dataclass(frozen=True, slots=True)
class Why:
    """A reason for programs and a message for people."""

    reason: str
    message: str = ""


def valid_score(facts: StatusInput, counted: Tally | None) -> Score | None:
    """Return the score of a run that is complete and of which every case was assessed, else None."""
    complete = facts.end is not None and facts.end.complete
    return counted.score if complete and counted is not None and counted.score.valid else None


def run_conditions(facts: StatusInput, counted: Tally | None, now: str) -> list[dict[str, Any]]:
    """Return all conditions; those that did not change keep the time at which they last did."""
    conditions: list[dict[str, Any]] = [dict(item) for item in facts.previous.get("conditions", ())]
    for type_, (status, why) in _judged(facts, counted).items():
        message = cut_text(why.message[:MAX_MESSAGE_BYTES], MAX_MESSAGE_BYTES) or ""
        conditions = set_condition(conditions, type_, status, why.reason, message, now, facts.generation)
    return conditions


_Judged = tuple[ConditionStatus, Why]


def _judged(facts: StatusInput, counted: Tally | None) -> dict[ConditionType, _Judged]:
    state, end = _state(facts, counted), facts.end
    failed = end is not None and not end.complete
    suspended = facts.policy.suspend and end is None
    return {
        ConditionType.ACCEPTED: ("False", facts.refused)
        if facts.refused
        else ("True", Why(RunReason.ACCEPTED, "the spec can be run")),
        ConditionType.PLANNED: _planned(facts, counted),
        ConditionType.SUSPENDED: ("True", Why(RunReason.SUSPENDED, "spec.suspend is true"))
        if suspended
        else ("False", Why(RunReason.NOT_SUSPENDED)),
        ConditionType.FINISHED: ("True" if end is not None else "False", state),
        ConditionType.COMPLETE: ("True" if end is not None and end.complete else "False", state),
        ConditionType.FAILED: ("True" if failed else "False", state),
        ConditionType.PASSED: _passed(facts, counted),
        ConditionType.AUDITED: _audited(facts),
    }


def _audited(facts: StatusInput) -> _Judged:
    if facts.audited is None:
        return "Unknown", Why(RunReason.AUDIT_IGNORED, "no audit was looked for")
    return facts.audited.status, facts.audited.why


def _state(facts: StatusInput, counted: Tally | None) -> Why:
    """Say in one reason where the run is."""
    if facts.end is not None:
        return Why(facts.end.reason, facts.end.message)
    if facts.policy.suspend:
        return Why(RunReason.SUSPENDED, "spec.suspend is true; set it to false to go on")
    if facts.wait is not None:
        return facts.wait
    if counted is None:
        return Why(RunReason.PLANNING, "the task is being asked for its plan")
    return Why(RunReason.RUNNING, f"{counted.progress} cases are done")


def _planned(facts: StatusInput, counted: Tally | None) -> _Judged:
    if facts.plan_problem is not None:
        return "False", facts.plan_problem
    if counted is not None:
        return "True", Why(RunReason.PLANNED, f"{len(counted.cases)} cases are planned")
    if facts.refused is not None:
        return "False", facts.refused
    if facts.end is not None:
        return "False", Why(facts.end.reason, facts.end.message)
    return "Unknown", Why(RunReason.PLANNING, "the task is being asked for its plan")


def _passed(facts: StatusInput, counted: Tally | None) -> _Judged:
    score = valid_score(facts, counted)
    if score is None:
        return "Unknown", Why(
            RunReason.NO_VALID_SCORE, "there is no valid score" if facts.end else "the run is not over"
        )
    if facts.goal.score is None and not facts.goal.dimensions:
        if score.resolved:
            return "True", Why(RunReason.RESOLVED, "every case passed")
        return "False", Why(RunReason.NOT_RESOLVED, f"{score.total - score.passed} of {score.total} cases did not pass")
    short = meets(score, facts.goal.score, facts.goal.dimensions)
    if short:
        return "False", Why(RunReason.THRESHOLD_NOT_MET, "; ".join(short))
    return "True", Why(RunReason.THRESHOLD_MET, f"score {score.score} reaches the threshold")
