"""The EvalRun: one candidate, evaluated once on the cases of one task. Descriptions here are its documentation."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from .candidate import Candidate
from .common import (
    DIMENSION,
    ROLE,
    ApiModel,
    CaseId,
    DecimalFraction,
    FreeObject,
    Image,
    Keys,
    ObjectName,
    Rule,
    RuleName,
    Seed,
    Shape,
    ShortName,
)
from .podtemplate import PodTemplate

__all__ = [
    "Audit",
    "Baseline",
    "Budget",
    "EvalRun",
    "EvalRunSpec",
    "Limits",
    "ObjectMeta",
    "RegradeOf",
    "Retries",
    "Seeds",
    "Select",
    "TaskModel",
    "TaskRef",
    "Threshold",
]

MAX_SEEDS = 256
MAX_PARALLELISM = 1000


_MONEY = Shape(
    r"^(0\.[0-9]*[1-9][0-9]*|[1-9][0-9]{0,8}(\.[0-9]{1,8})?)$", 'give money above 0 as a decimal in quotes: "2.5"', 20
)


class ObjectMeta(ApiModel):
    """What is read of a resource's metadata; the API server has more and checks it."""

    model_config = ConfigDict(extra="ignore")

    name: ObjectName
    namespace: str = "default"
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class TaskModel(ApiModel):
    """A model that the task itself asks, behind one of the endpoints that the administrator has set up."""

    endpoint: ShortName = Field(
        description="Name of an endpoint of the operator's configuration. Its address and key stay with the relay."
    )
    name: str = Field(min_length=1, max_length=253, description="Name of the model, as the endpoint knows it.")
    parameters: FreeObject | None = Field(
        default=None, description="Parameters that are sent with every request, over those of the pack."
    )


class TaskRef(ApiModel):
    """The task that is worked on."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.name) != has(self.image)",
            "give exactly one of name (a task of the operator's catalogue) and image (a task image that the catalogue "
            "allows)",
            lambda self: (self.name is None) != (self.image is None),
        ),
    )

    name: ShortName | None = Field(
        default=None,
        description="Name of a task pack of the operator's catalogue, such as durable-kv. Exactly one of name and "
        "image is set.",
    )
    image: Image | None = Field(
        default=None,
        description="A task image of your own. The operator runs only those that its administrator's allow-list has.",
    )
    params: FreeObject | None = Field(
        default=None,
        description="Parameters of the pack, such as the size of its cases. The pack checks them when the run is "
        "planned.",
    )
    models: Annotated[dict[str, TaskModel], Field(max_length=4), Keys(ROLE)] = Field(
        default_factory=dict,
        description="Models that the task asks, such as a judge or a simulated user, by the role that the pack gives "
        "them. What they use is counted apart from the candidate's, and no failure of theirs is the candidate's.",
    )


class Seeds(ApiModel):
    """The seeds from which cases are generated. Exactly one of its fields is set."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.values) != has(self.random)",
            "give exactly one of values (the seeds themselves) and random (how many to draw)",
            lambda self: (self.values is None) != (self.random is None),
        ),
        Rule(
            "!has(self.values) || self.values.all(a, self.values.exists_one(b, a == b))",
            "the seed is there twice: keep one (repeats says how often each case is run)",
            lambda self: self.values is None or len(set(self.values)) == len(self.values),
            ".values",
            value_cel="self.values.filter(a, self.values.indexOf(a) != self.values.lastIndexOf(a))[0]",
            value=lambda self: str(next(seed for seed in self.values if self.values.count(seed) > 1)),
        ),
    )

    values: Annotated[list[Seed], Field(min_length=1, max_length=MAX_SEEDS)] | None = Field(
        default=None, description="The seeds themselves, all different. The same seed always gives the same cases."
    )
    random: Annotated[int, Field(ge=1, le=MAX_SEEDS)] | None = Field(
        default=None,
        description="How many seeds are drawn when the run starts. They are shown in the status, so the run can be "
        "repeated.",
    )


class Select(ApiModel):
    """Which of the task's cases are run."""

    families: list[CaseId] = Field(
        default_factory=list,
        max_length=1000,
        description="Case ids to run. Default: all. A choice that leaves a dimension of the task without any check is "
        "refused.",
    )


class Limits(ApiModel):
    """What the candidate may use in one case. Limits of a run may be tighter than the pack's and never wider."""

    case_seconds: Annotated[int, Field(ge=1, le=86400)] | None = Field(
        default=None,
        description="Seconds of wall time for one case, from the candidate's first start. Default: the pack's.",
    )
    actions: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="How many times the candidate may be asked in one case. Default: the pack's."
    )
    tokens: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = Field(
        default=None,
        description="Tokens that the candidate's model may read and write in one case. Default: the pack's.",
    )
    pending_seconds: int = Field(
        default=900,
        ge=1,
        le=86400,
        description="Seconds that a pod may wait for a node, for an image or for its containers to start before the "
        "run fails.",
    )


class Budget(ApiModel):
    """What the candidate's model may use in the whole run, attempts that are made again included."""

    tokens: Annotated[int, Field(ge=1, le=1_000_000_000_000)] | None = Field(
        default=None, description="Tokens that it may read and write."
    )
    model_calls: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = Field(
        default=None, description="Calls that it may answer."
    )
    cost: Annotated[str, _MONEY] | None = Field(
        default=None,
        description="Money that it may cost, by the endpoint's price and in its currency, as a decimal in quotes.",
    )


class Retries(ApiModel):
    """How often a case is tried again when an attempt came to no verdict; what a candidate did is not tried again."""

    environment: int = Field(
        default=2,
        ge=0,
        le=10,
        description="Further attempts after environment errors, such as a lost node, for each case. A case that has "
        "spent them is an environment error, and the run has no score.",
    )
    interruptions: int = Field(
        default=5,
        ge=0,
        le=100,
        description="Further attempts after interruptions, such as a pod that somebody deleted, for each case.",
    )


class Threshold(ApiModel):
    """What a score must reach for the condition Passed. Without a threshold every case must pass."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.score) || (has(self.dimensions) && self.dimensions.size() > 0)",
            "the threshold is empty: give score, dimensions or both",
            lambda self: self.score is not None or bool(self.dimensions),
            reason="FieldValueRequired",
        ),
    )

    score: DecimalFraction | None = Field(
        default=None, description='Lowest score of the run that passes, as a decimal in quotes: "0.8".'
    )
    dimensions: Annotated[dict[str, DecimalFraction], Field(max_length=64), Keys(DIMENSION)] = Field(
        default_factory=dict, description="Lowest score that passes for each dimension that is named here."
    )


class Baseline(ApiModel):
    """The run that this one is compared with."""

    eval_run: ObjectName = Field(description="Name of an EvalRun of the same namespace.")


class RegradeOf(ApiModel):
    """The finished run whose records are graded again; no candidate runs."""

    eval_run: ObjectName = Field(description="Name of a finished EvalRun of the same namespace.")


class Audit(ApiModel):
    """What must be known of the grader before its scores count."""

    policy: Literal["Ignore", "Warn", "Require"] = Field(
        default="Ignore",
        description="What happens without a passed audit of this task: nothing (Ignore), a warning (Warn), or no case "
        "starts until there is one (Require). The condition Audited says which audit there is in any case.",
    )
    max_age_hours: int = Field(default=720, ge=1, le=87600, description="Hours after which an audit no longer counts.")


class EvalRunSpec(ApiModel):
    """What is to be evaluated, and how. Fixed once created, but for suspend, parallelism, priority and the TTL."""

    mutable: ClassVar[tuple[str, ...]] = ("suspend", "parallelism", "priority", "ttlSecondsAfterFinished")

    task: TaskRef = Field(description="The task that the candidate works on.")
    seeds: Seeds = Field(description="The seeds from which the task's cases are generated.")
    select: Select = Field(default_factory=Select, description="Which of the task's cases are run. Default: all.")
    repeats: int = Field(default=1, ge=1, le=100, description="How often each case of each seed is run.")
    candidate: Candidate = Field(
        description="What is evaluated: at most one of program, server and control, with or without a model."
    )
    parallelism: int = Field(
        default=10,
        ge=1,
        le=MAX_PARALLELISM,
        description="How many cases run at once at most. It may be changed while the run is going on.",
    )
    limits: Limits = Field(default_factory=Limits, description="Limits of each case, at most as wide as the pack's.")
    budget: Budget | None = Field(
        default=None, description="What the candidate's model may use in the whole run. Default: no bound."
    )
    retries: Retries = Field(
        default_factory=Retries, description="How often an attempt without a verdict is made again."
    )
    aggregation: RuleName | None = Field(
        default=None,
        description="Rule that makes a score of the verdicts, such as weighted-dimensions/v1. Default: the pack's own.",
    )
    threshold: Threshold | None = Field(
        default=None, description="What the score must reach for the condition Passed. Default: every case must pass."
    )
    baseline: Baseline | None = Field(default=None, description="An earlier run that this one is compared with.")
    regrade_of: RegradeOf | None = Field(
        default=None,
        description="A finished run whose records are graded again by this task, in place of running the candidate. "
        "Seeds, cases, candidate, limits and retries must be that run's; only the grader may be another.",
    )
    audit: Audit = Field(default_factory=Audit, description="Whether the task's grader must have been audited.")
    priority: int = Field(
        default=0,
        ge=-1000,
        le=1000,
        description="Runs of a higher priority get free slots first. It may be changed while the run is going on.",
    )
    pod_template: PodTemplate = Field(
        default_factory=PodTemplate, description="Where and how the run's pods are scheduled."
    )
    keep_pods: Literal["Never", "OnFailure"] = Field(
        default="Never",
        description="Which finished pods are kept for a look: none, or those of cases that did not pass. Evidence is "
        "kept in either case.",
    )
    suspend: bool = Field(
        default=False,
        description="True stops the run: its pods are deleted and no new ones are made until it is false again. What "
        "was assessed stays assessed.",
    )
    active_deadline_seconds: Annotated[int, Field(ge=1, le=31_536_000)] | None = Field(
        default=None,
        description="Seconds after the start at which an unfinished run fails. Suspending a run stops this clock, and "
        "resuming it starts the clock anew, as with a Job. Default: none.",
    )
    ttl_seconds_after_finished: Annotated[int, Field(ge=0, le=315_360_000)] | None = Field(
        default=None,
        description="Seconds after its end at which the run is deleted with its pods; its evidence is kept. Default: "
        "never. It may be changed at any time.",
    )


class EvalRun(ApiModel):
    """One evaluation of one candidate on the cases of one task: a pod for each case, evidence of each, and a score.

    ``status`` is left as it was stored: an older operator may have written it (``status.EvalRunStatus`` describes it).
    """

    model_config = ConfigDict(extra="forbid")

    api_version: Literal["casewarden.dev/v1alpha1"]
    kind: Literal["EvalRun"]
    metadata: ObjectMeta
    spec: EvalRunSpec = Field(description="What is to be evaluated, and how.")
    status: dict[str, Any] | None = None
