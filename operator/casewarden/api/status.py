"""The status of an EvalRun: what the operator writes and what people and programs read. Its size has a bound."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .common import ApiModel, CaseId, DecimalFraction, Seed
from .conditions import Condition

__all__ = [
    "AttemptCounts",
    "BaselineResult",
    "Bounds",
    "CaseCounts",
    "DetectableEffect",
    "DimensionScore",
    "EvalRunStatus",
    "Evidence",
    "Failure",
    "Fingerprints",
    "Flip",
    "Floor",
    "Interval",
    "LedgerReference",
    "ModelUsage",
    "PlanReference",
    "Regrade",
    "RegradeChange",
    "Statistics",
    "Usage",
]

_Count = Annotated[int, Field(ge=0)]
_Time = Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})]
_Word = Annotated[str, Field(max_length=64)]


class CaseCounts(ApiModel):
    """Where the cases are; a case of two seeds and three repeats counts six times. All but excluded sum to total."""

    total: _Count = Field(description="Cases that the plan has, times repeats, without the excluded ones.")
    excluded: _Count = Field(
        default=0, description="Cases that this version of the pack leaves out because they are broken."
    )
    pending: _Count = Field(description="Cases that have no verdict and no pod.")
    running: _Count = Field(description="Cases that have a pod and no verdict yet.")
    passed: _Count = Field(description="Cases in which every check is true.")
    failed: _Count = Field(description="Cases in which some check is false.")
    agent_errors: _Count = Field(
        description="Cases that the candidate broke: it crashed, overran a limit or broke the protocol. They are "
        "assessed."
    )
    environment_errors: _Count = Field(
        description="Cases that could not be assessed although they were tried again. With any of them there is no "
        "score."
    )


class AttemptCounts(ApiModel):
    """How often a case was started. Whatever is run again is counted and shown."""

    total: _Count = Field(description="Attempts that have ended.")
    environment_retries: _Count = Field(description="Attempts that ended in an environment error.")
    interruptions: _Count = Field(description="Attempts that were interrupted: pods that were deleted.")
    suspended: _Count = Field(default=0, description="Attempts that were stopped because the run was suspended.")


class DimensionScore(ApiModel):
    """What one dimension of the task came to."""

    weight: DecimalFraction = Field(description="Weight of the dimension in the score.")
    passed: _Count = Field(description="Checks of the dimension that are true.")
    assessed: _Count = Field(description="Checks of the dimension that are true or false.")
    total: _Count = Field(description="Cases that check the dimension.")
    score: DecimalFraction | None = Field(
        default=None, description="passed / total, once every case of the dimension has been assessed."
    )


class Interval(ApiModel):
    """How sure the score is."""

    estimand: Literal["families", "instances"] = Field(
        description="What the interval is about: families of cases that might have been others, or only their seeds."
    )
    low: DecimalFraction = Field(description="Lower bound.")
    high: DecimalFraction = Field(description="Upper bound.")
    method: _Word = Field(description="How the bounds were computed.")
    families: _Count = Field(description="How many families of cases they rest on.")


class Floor(ApiModel):
    """Scores that need no skill, for comparison, from the task's latest audit."""

    null_agent: DecimalFraction | None = Field(default=None, description="Score of an agent that does nothing.")
    reference: DecimalFraction | None = Field(default=None, description="Score of the pack's reference.")
    audit: Annotated[str, Field(max_length=253)] | None = Field(default=None, description="Name of the AuditRun.")


class Fingerprints(ApiModel):
    """What must be equal for two scores to be comparable."""

    task: Annotated[str, Field(max_length=253)] | None = Field(default=None, description="The task and its version.")
    contract: _Word | None = Field(default=None, description="Digest of the task's contract page.")
    cases: _Word | None = Field(default=None, description="Digest of the full content of every planned case.")
    grader: _Word | None = Field(default=None, description="Digest of all that grades.")
    params: _Word | None = Field(default=None, description="Digest of the parameters of the pack.")
    candidate: _Word | None = Field(
        default=None, description="Digest of the candidate: its files, command and environment."
    )
    conditions: _Word | None = Field(
        default=None, description="Digest of the conditions: limits, resources, the boundary's profile and the like."
    )
    images: Annotated[dict[str, Annotated[str, Field(max_length=512)]], Field(max_length=16)] = Field(
        default_factory=dict, description="Images of the pods' containers, by container, as the node resolved them."
    )


class ModelUsage(ApiModel):
    """What one model used."""

    prompt_tokens: _Count = Field(description="Tokens read.")
    completion_tokens: _Count = Field(description="Tokens written.")
    model_calls: _Count = Field(description="Calls answered.")
    source: Literal["counted", "reported", "estimated"] = Field(description="Where the numbers come from.")
    cost: Annotated[str, Field(max_length=32)] | None = Field(
        default=None, description="What it cost by the endpoint's price. Absent where the endpoint has none."
    )


class Usage(ModelUsage):
    """What the candidate's model used, and apart from it the models that the task asked."""

    models: Annotated[dict[str, ModelUsage], Field(max_length=4)] = Field(
        default_factory=dict, description="What the task's own models used, by role."
    )


class Failure(ApiModel):
    """A case that did not pass."""

    case: CaseId = Field(description="Id of the case.")
    seed: Seed = Field(description="Its seed.")
    repeat: _Count = Field(default=0, description="Its repeat, from 0.")
    status: _Word = Field(description="failed, agent_error or environment_error.")
    reason: _Word | None = Field(default=None, description="What broke, in one word, with the two kinds of error.")
    error: Annotated[str, Field(max_length=300)] | None = Field(
        default=None, description="What was wrong, cut short. `casewarden show` has all of it."
    )


class RegradeChange(ApiModel):
    """A case whose verdict is another than it was."""

    case: CaseId = Field(description="Id of the case.")
    seed: Seed = Field(description="Its seed.")
    repeat: _Count = Field(default=0, description="Its repeat, from 0.")
    before: _Word = Field(description="Its status in the run that was graded again.")
    after: _Word = Field(description="Its status now.")
    dimensions: Annotated[list[_Word], Field(max_length=32)] = Field(
        default_factory=list, description="Dimensions whose check is another."
    )


class Regrade(ApiModel):
    """What grading a finished run's records again came to."""

    eval_run: Annotated[str, Field(max_length=253)] = Field(description="The run whose records were graded.")
    digest: Annotated[str, Field(max_length=71)] = Field(description="Its root digest, which they were held against.")
    task: Annotated[str, Field(max_length=253)] = Field(description="The task and its version that graded it first.")
    grader: _Word = Field(description="Fingerprint of the grader that graded it first.")
    graded: _Count = Field(description="Records that were graded again.")
    kept: _Count = Field(description="Verdicts without a record, which stay as they are.")
    changed: _Count = Field(description="Cases whose status, reason or checks are others.")
    score: DecimalFraction | None = Field(default=None, description="The score before. Absent if there was none.")
    changes: Annotated[list[RegradeChange], Field(max_length=20)] = Field(
        default_factory=list, description="The first 20 of the changed cases."
    )


class BaselineResult(ApiModel):
    """The run beside its baseline: paired by family and seed, tested by flipping signs of the families' means."""

    eval_run: Annotated[str, Field(max_length=253)] = Field(description="The run that it is compared with.")
    problem: Annotated[str, Field(max_length=300)] | None = Field(
        default=None, description="Why there is no comparison. Everything else but the name is absent then."
    )
    score: DecimalFraction | None = Field(default=None, description="The baseline's score.")
    difference: Annotated[str, Field(max_length=16)] | None = Field(
        default=None, description="Mean over families of the difference of their pass rates, from -1 to 1."
    )
    p_value: DecimalFraction | None = Field(
        default=None, description="How likely a difference this large is if none is real; two-sided."
    )
    method: _Word | None = Field(default=None, description="How the p-value was computed.")
    families: _Count | None = Field(default=None, description="Families that both runs have.")
    matched: _Count | None = Field(default=None, description="Pairs of equal cases that both runs assessed.")
    unmatched: _Count | None = Field(default=None, description="Cases that only one of the runs has.")
    regressed: Annotated[list[CaseId], Field(max_length=20)] | None = Field(
        default=None, description="The first 20 families that passed more often in the baseline."
    )
    improved: Annotated[list[CaseId], Field(max_length=20)] | None = Field(
        default=None, description="The first 20 families that pass more often now."
    )


class Bounds(ApiModel):
    """Bounds of a share."""

    low: DecimalFraction = Field(description="Lower bound.")
    high: DecimalFraction = Field(description="Upper bound.")
    method: _Word = Field(description="How the bounds were computed.")


class DetectableEffect(ApiModel):
    """The smallest difference of two such scores that a test finds."""

    effect: DecimalFraction = Field(description="The difference.")
    alpha: DecimalFraction = Field(description="How often the test may find one that is none.")
    power: DecimalFraction = Field(description="How often it finds one that is there.")


class Flip(ApiModel):
    """A family whose cases do not come out the same when they are tried again."""

    case: CaseId = Field(description="The family.")
    rate: DecimalFraction = Field(description="How likely two tries of the same case differ.")


class Statistics(ApiModel):
    """What can be said beside the score. What there is too little of to say is absent."""

    pass_rate_interval: Bounds | None = Field(
        default=None, description="How sure the pass rate is. Absent unless each family was observed exactly once."
    )
    pass_at: Annotated[dict[str, DecimalFraction], Field(max_length=8)] | None = Field(
        default=None, description="By k: how likely one of k tries passes. Absent for k above the number of repeats."
    )
    pass_all: Annotated[dict[str, DecimalFraction], Field(max_length=8)] | None = Field(
        default=None, description="By k: how likely all of k tries pass (pass^k). Absent as passAt is."
    )
    flip_rate: DecimalFraction | None = Field(
        default=None, description="Mean over families of how likely two tries differ. Absent without repeats."
    )
    flips: Annotated[list[Flip], Field(max_length=20)] | None = Field(
        default=None, description="The 20 families that differ most between tries, those that never do left out."
    )
    detectable_effect: DetectableEffect | None = Field(
        default=None,
        description="The smallest difference to another such score that would be found. Absent without "
        "an interval for families.",
    )


class PlanReference(ApiModel):
    """What was planned."""

    digest: _Word = Field(description="SHA-256 of the plan.")


class LedgerReference(ApiModel):
    """What the run has counted: by it a ledger that somebody deleted or changed is noticed."""

    rows: _Count = Field(description="Attempts that the ledger has.")
    verdicts: _Count = Field(description="Those of them that came to a verdict.")
    environment: _Count = Field(description="Those that ended in an environment error.")
    interruptions: _Count = Field(description="Those that were interrupted.")
    digest: _Word = Field(description="SHA-256 over these rows, in the order in which they were written.")


class Evidence(ApiModel):
    """Where everything is that was kept of the run."""

    uri: Annotated[str, Field(max_length=512)] | None = Field(
        default=None, description="Place of the run in the store."
    )
    digest: Annotated[str, Field(max_length=71)] | None = Field(
        default=None, description="Digest over all of it; `casewarden verify` checks against it."
    )


class EvalRunStatus(ApiModel):
    """What the run has come to so far."""

    observed_generation: int | None = Field(
        default=None, description="Generation of the spec that the status is about."
    )
    conditions: list[Condition] = Field(
        default_factory=list,
        max_length=16,
        description="State of the run. Finished tells that it is over, Complete that every case was run, Failed that "
        "it was given up, Passed whether the candidate reached the threshold (Unknown without a valid score).",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    seeds: Annotated[list[Seed], Field(max_length=256)] | None = Field(
        default=None, description="The run's seeds, drawn ones included."
    )
    start_time: _Time | None = Field(default=None, description="When the run was first seen.")
    completion_time: _Time | None = Field(default=None, description="When the run was over.")
    duration: _Word | None = Field(default=None, description="Time from start to end, once the run is over.")
    plan: PlanReference | None = Field(default=None, description="What was planned.")
    ledger: LedgerReference | None = Field(default=None, description="What the run has counted so far.")
    cases: CaseCounts | None = Field(default=None, description="Where the cases are.")
    attempts: AttemptCounts | None = Field(default=None, description="How often cases were started.")
    progress: _Word | None = Field(default=None, description="Cases that are done, of all.")
    assessed: _Word | None = Field(default=None, description="Cases that have been assessed, of all.")
    errors: _Count | None = Field(default=None, description="Cases that ended in an agent or environment error.")
    valid: bool | None = Field(
        default=None, description="Whether every case was assessed. Absent while the run is going on."
    )
    resolved: bool | None = Field(
        default=None, description="Whether the run is valid and every case passed. Absent while the run is going on."
    )
    score: DecimalFraction | None = Field(
        default=None, description="The score, from 0 to 1. Absent unless the run is valid: there is no false zero."
    )
    score_interval: Interval | None = Field(
        default=None, description="How sure the score is. Absent where there are too few families of cases."
    )
    statistics: Statistics | None = Field(
        default=None, description="What can be said beside the score. Absent unless the run is valid."
    )
    pass_rate: DecimalFraction | None = Field(
        default=None, description="Share of the cases that passed. Absent unless the run is valid."
    )
    dimensions: Annotated[dict[str, DimensionScore], Field(max_length=64)] | None = Field(
        default=None, description="What each dimension of the task came to."
    )
    floor: Floor | None = Field(default=None, description="Scores that need no skill, for comparison.")
    baseline: BaselineResult | None = Field(default=None, description="The run beside the one of spec.baseline.")
    regrade: Regrade | None = Field(
        default=None, description="What changed against the run of spec.regradeOf, whose records were graded again."
    )
    fingerprints: Fingerprints | None = Field(
        default=None, description="What must be equal for two scores to be comparable."
    )
    usage: Usage | None = Field(default=None, description="What the candidate's model used.")
    failures: Annotated[list[Failure], Field(max_length=20)] | None = Field(
        default=None, description="The first 20 cases that did not pass, in the order of the plan."
    )
    evidence: Evidence | None = Field(default=None, description="Where everything is that was kept of the run.")
