"""The AuditRun: a task's grader, tried on programs whose verdicts are known."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from .common import ApiModel, CaseId, DecimalFraction, Seed, ShortName
from .conditions import Condition
from .evalrun import MAX_PARALLELISM, Limits, ObjectMeta, Retries, Seeds, TaskRef
from .podtemplate import PodTemplate
from .status import Evidence, Fingerprints, PlanReference

__all__ = ["AuditRun", "AuditRunSpec", "AuditRunStatus", "ControlResult", "GraderMutants"]

_Word = Annotated[str, Field(max_length=64)]
_Time = Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})]
_Count = Annotated[int, Field(ge=0)]


class AuditRunSpec(ApiModel):
    """What is audited. Fixed once created, but for suspend, parallelism, priority and the TTL."""

    mutable: ClassVar[tuple[str, ...]] = ("suspend", "parallelism", "priority", "ttlSecondsAfterFinished")

    task: TaskRef = Field(description="The task whose grader is audited.")
    seeds: Seeds = Field(
        description="The seeds from which the task's cases are generated; all controls get the same ones."
    )
    controls: Annotated[list[ShortName], Field(max_length=64)] = Field(
        default_factory=list, description="Names of the pack's controls that are run. Default: all."
    )
    strict: bool = Field(
        default=False,
        description="True lets the audit fail too where a fault breaks other dimensions than it declares.",
    )
    grader_mutants: bool = Field(
        default=False,
        description="True has a passed audit grade its records again with one check of the grader dropped or inverted "
        "at a time, and names the mutants that no control notices. No candidate runs again.",
    )
    reference_repeats: int = Field(
        default=3,
        ge=1,
        le=100,
        description="How often each case of the reference is run, to find cases that do not always come out the same.",
    )
    parallelism: int = Field(
        default=10, ge=1, le=MAX_PARALLELISM, description="How many cases of all controls together run at once at most."
    )
    limits: Limits = Field(default_factory=Limits, description="Limits of each case, at most as wide as the pack's.")
    retries: Retries = Field(
        default_factory=Retries, description="How often an attempt without a verdict is made again."
    )
    priority: int = Field(default=0, ge=-1000, le=1000, description="Runs of a higher priority get free slots first.")
    pod_template: PodTemplate = Field(
        default_factory=PodTemplate, description="Where and how the audit's pods are scheduled."
    )
    suspend: bool = Field(default=False, description="True stops the audit until it is false again.")
    active_deadline_seconds: Annotated[int, Field(ge=1, le=31_536_000)] | None = Field(
        default=None, description="Seconds after the start at which an unfinished audit fails. Default: none."
    )
    ttl_seconds_after_finished: Annotated[int, Field(ge=0, le=315_360_000)] | None = Field(
        default=None,
        description="Seconds after its end at which the audit is deleted; its evidence is kept. Default: never.",
    )


class ControlResult(ApiModel):
    """What one control came to."""

    name: ShortName = Field(description="Name of the control.")
    kind: Literal["reference", "null", "crash", "forger", "fault"] = Field(description="What sort of control it is.")
    target: _Word | None = Field(default=None, description="The dimension that a fault was planted in.")
    killed: bool | None = Field(default=None, description="Whether the fault was caught in its dimension.")
    margin: _Count | None = Field(default=None, description="How many different cases caught it.")
    detected_by: Annotated[list[CaseId], Field(max_length=20)] | None = Field(
        default=None, description="The first 20 families of cases that caught it."
    )
    collateral: Annotated[list[_Word], Field(max_length=32)] | None = Field(
        default=None, description="Dimensions that it broke beyond what it declares."
    )
    problem: Annotated[str, Field(max_length=300)] | None = Field(
        default=None, description="Why the audit does not pass because of it."
    )
    score: DecimalFraction | None = Field(default=None, description="Score of the control's run.")
    valid: bool | None = Field(default=None, description="Whether the control's run is valid.")
    eval_run: Annotated[str, Field(max_length=253)] | None = Field(
        default=None, description="Name of the control's run."
    )


class GraderMutants(ApiModel):
    """What became of the grader's mutants: a check that can go unnoticed is one that no control tests."""

    total: _Count = Field(description="Mutants: two for each check that the pack lists.")
    noticed: _Count = Field(description="Mutants with which the audit would not have passed.")
    unnoticed: Annotated[list[Annotated[str, Field(max_length=80)]], Field(max_length=20)] = Field(
        default_factory=list,
        description="The first 20 mutants that no control notices, as CHECK:dropped or CHECK:inverted.",
    )


class AuditRunStatus(ApiModel):
    """What the audit has come to so far."""

    observed_generation: int | None = Field(
        default=None, description="Generation of the spec that the status is about."
    )
    conditions: list[Condition] = Field(
        default_factory=list,
        max_length=16,
        description="State of the audit. Passed tells whether the reference passed and every fault was caught.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    )
    start_time: _Time | None = Field(default=None, description="When the audit was first seen.")
    completion_time: _Time | None = Field(default=None, description="When the audit was over.")
    seeds: Annotated[list[Seed], Field(max_length=256)] | None = Field(
        default=None, description="The audit's seeds, drawn ones included."
    )
    plan: PlanReference | None = Field(default=None, description="What was planned, for all controls.")
    progress: _Word | None = Field(default=None, description="Cases that are done, of all.")
    valid: bool | None = Field(default=None, description="Whether every control's run is valid.")
    passed: bool | None = Field(
        default=None,
        description="Whether the reference resolved every case and every fault was caught. Absent unless valid.",
    )
    mutation_score: DecimalFraction | None = Field(default=None, description="Share of the faults that were caught.")
    killed: _Word | None = Field(default=None, description="Faults that were caught, of all.")
    weakest_margin: _Count | None = Field(
        default=None, description="The fewest different cases that caught one of the faults."
    )
    floors: Annotated[dict[str, DecimalFraction], Field(max_length=16)] | None = Field(
        default=None, description="Scores of the agents that need no skill, by control."
    )
    reference_score: DecimalFraction | None = Field(default=None, description="Score of the reference.")
    reference_flakes: _Count | None = Field(
        default=None, description="Cases of the reference that did not always come out the same."
    )
    controls: Annotated[list[ControlResult], Field(max_length=64)] | None = Field(
        default=None, description="What each control came to."
    )
    grader_mutants: GraderMutants | None = Field(
        default=None, description="What became of the grader's mutants. Absent unless asked for, and the audit passed."
    )
    fingerprints: Fingerprints | None = Field(default=None, description="What the audit is about.")
    evidence: Evidence | None = Field(default=None, description="Where everything is that was kept of the audit.")


class AuditRun(ApiModel):
    """An audit of a task's grader: its reference must pass, and every planted fault must be caught in its place."""

    model_config = ConfigDict(extra="forbid")

    api_version: Literal["casewarden.dev/v1alpha1"]
    kind: Literal["AuditRun"]
    metadata: ObjectMeta
    spec: AuditRunSpec = Field(description="What is audited, and how.")
    status: dict[str, Any] | None = None
