"""The plan: what a task image says that it will run (``docs/internals/wire.md``, 6).

Reading a plan checks all that a plan can be refused for without knowing the run, so that everything behind this module
may rely on it: weights sum to 1, each dimension is checked for each seed, no case is there twice, controls make sense.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from .common import (
    Argument,
    CaseId,
    DecimalFraction,
    DimensionName,
    FreeObject,
    Image,
    RuleName,
    Seed,
    Sha256,
    ShortName,
    WireModel,
)

__all__ = [
    "CaseKind",
    "ContractPage",
    "Environment",
    "ExcludedCase",
    "Plan",
    "PlanCandidate",
    "PlanCase",
    "PlanControl",
    "PlanFingerprints",
    "PlanLimits",
    "PlanTask",
]

MAX_CASES = 20_000
MAX_DIMENSIONS = 32


def _float(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


_Seconds = Annotated[float, BeforeValidator(_float), Field(gt=0, le=86400, allow_inf_nan=False)]
_Whole = Annotated[int, Field(ge=1, le=1 << 40)]


class PlanTask(WireModel):
    """Which task it is."""

    id: ShortName
    version: Annotated[str, Field(min_length=1, max_length=64)]
    description: Annotated[str, Field(max_length=4096)] = ""


class ContractPage(WireModel):
    """The page that fixes what candidates are promised."""

    sha256: Sha256
    bytes: Annotated[int, Field(ge=0)]


class PlanLimits(WireModel):
    """What a candidate may use in one case; the fields of the SDK's ``Limits``. Seconds are wall time."""

    case_seconds: _Seconds = 120.0
    response_seconds: _Seconds = 20.0
    start_seconds: _Seconds = 30.0
    actions: _Whole | None = None
    tokens: _Whole | None = None
    output_bytes: _Whole = 1 << 20
    request_bytes: _Whole = 8192
    processes: _Whole = 64
    memory_mib: _Whole = 256
    state_mib: _Whole = 64
    tmp_mib: _Whole = 16


class PlanCandidate(WireModel):
    """Where a program candidate runs when the run names no image: an alias of the catalogue or a full reference."""

    image: Image


class Environment(WireModel):
    """A container that the agent acts upon."""

    name: ShortName
    image: Image
    profile: Literal["restricted", "baseline"] = "restricted"
    memory_mib: _Whole = 256
    argv: Annotated[list[Argument], Field(min_length=1, max_length=64)] | None = None


class CaseKind(WireModel):
    """The containers that a class of cases needs."""

    candidate: PlanCandidate | None = None
    environments: Annotated[list[Environment], Field(max_length=4)] = Field(default_factory=list)


class PlanCase(WireModel):
    """One piece of work. ``sha256`` is over its full content."""

    seed: Seed
    id: CaseId
    dimensions: Annotated[list[DimensionName], Field(min_length=1, max_length=MAX_DIMENSIONS)]
    kind: ShortName = "default"
    sha256: Sha256


class ExcludedCase(WireModel):
    """A case that this version of the pack leaves out, and why."""

    seed: Seed
    id: CaseId
    reason: Annotated[str, Field(min_length=1, max_length=1024)]


class PlanControl(WireModel):
    """A program with a known verdict; ``files`` is its workspace, flat names to text."""

    name: ShortName
    kind: Literal["reference", "null", "crash", "forger", "fault"]
    target: DimensionName | None = None
    collateral: list[DimensionName] = Field(default_factory=list)
    protocol_fault: bool = False
    argv: Annotated[list[Argument], Field(min_length=1, max_length=64)] | None = None
    files: Annotated[dict[str, str], Field(min_length=1, max_length=64)]


class PlanFingerprints(WireModel):
    """What of the plan must be equal for two scores to be comparable."""

    grader: Sha256
    cases: Sha256
    contract: Sha256


class Plan(WireModel):
    """All that a task image says before anything runs."""

    v: Literal[1]
    contract_version: Literal["1"]
    task: PlanTask
    contract: ContractPage
    dimensions: Annotated[dict[DimensionName, DecimalFraction], Field(min_length=1, max_length=MAX_DIMENSIONS)]
    aggregation: RuleName
    protocol: Literal["jsonl", "chat"]
    candidates: Annotated[list[Literal["program", "server", "model"]], Field(min_length=1, max_length=3)]
    limits: PlanLimits
    default_argv: Annotated[list[Argument], Field(min_length=1, max_length=64)]
    kinds: Annotated[dict[ShortName, CaseKind], Field(min_length=1, max_length=16)]
    seeds: Annotated[list[Seed], Field(min_length=1, max_length=256)]
    families: Annotated[list[CaseId], Field(min_length=1)]
    params: FreeObject = Field(default_factory=dict)
    cases: Annotated[list[PlanCase], Field(min_length=1, max_length=MAX_CASES)]
    excluded: list[ExcludedCase] = Field(default_factory=list, max_length=MAX_CASES)
    controls: Annotated[list[PlanControl], Field(max_length=64)]
    checks: Annotated[list[ShortName], Field(max_length=256)] = Field(default_factory=list)
    fingerprints: PlanFingerprints
    models: Annotated[dict[ShortName, Annotated[str, Field(min_length=1, max_length=1024)]], Field(max_length=4)] = (
        Field(default_factory=dict)
    )
    """Roles of the models that the driver asks, and what each is for."""
    sdk: Annotated[str, Field(max_length=64)]
    score: Annotated[str, Field(max_length=256)] | None = None
    """Where the score is in what the pack's own rule returns, for a pack that has one."""

    @property
    def weights(self) -> dict[str, Decimal]:
        """Dimensions and their exact weights."""
        return {name: Decimal(weight) for name, weight in self.dimensions.items()}

    def control(self, name: str) -> PlanControl | None:
        """Return the control of that name, or None."""
        return next((control for control in self.controls if control.name == name), None)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for message in _problems(self):
            raise PydanticCustomError("plan", "{text}", {"text": message, "path": ""})
        return self


def _problems(plan: Plan) -> Iterator[str]:
    """Say what is wrong with a plan whose every field is right by itself."""
    total = sum(plan.weights.values(), Decimal(0))
    if total != 1:
        yield f"the weights of the dimensions sum to {total}: make them sum to exactly 1"
    yield from _case_problems(plan)
    yield from _control_problems(plan)
    if plan.fingerprints.contract != plan.contract.sha256:
        yield "contract.sha256 and fingerprints.contract differ: both are the digest of the contract page"


def _case_problems(plan: Plan) -> Iterator[str]:
    counts = Counter((case.seed, case.id) for case in plan.cases)
    for (seed, case_id), count in counts.items():
        if count > 1:
            yield f"case {case_id!r} is there {count} times for seed {seed}: a case id names one case"
    if set(plan.seeds) != {case.seed for case in plan.cases}:
        yield f"the plan has cases for seeds {sorted({case.seed for case in plan.cases})} and names seeds {plan.seeds}"
    for case in plan.cases:
        unknown = sorted(set(case.dimensions) - set(plan.dimensions))
        if unknown:
            yield f"case {case.id!r} checks {unknown}: use dimensions of the task ({', '.join(plan.dimensions)})"
        if case.kind not in plan.kinds:
            yield f"case {case.id!r} is of kind {case.kind!r}: declare it in kinds ({', '.join(plan.kinds)})"
    checked = {(case.seed, name) for case in plan.cases for name in case.dimensions}
    for seed in plan.seeds:
        for name in plan.dimensions:
            if (seed, name) not in checked:
                yield f"no case of seed {seed} checks dimension {name!r}: select families that check every dimension"


def _control_problems(plan: Plan) -> Iterator[str]:
    for name, count in Counter(control.name for control in plan.controls).items():
        if count > 1:
            yield f"control {name!r} is there {count} times: a name names one control"
    for control in plan.controls:
        if (control.kind == "fault") != (control.target is not None):
            yield f"control {control.name!r}: a fault, and only a fault, has a target dimension"
        named = [control.target, *control.collateral] if control.target is not None else control.collateral
        for dimension in named:
            if dimension not in plan.dimensions:
                known = ", ".join(plan.dimensions)
                yield f"control {control.name!r} names {dimension!r}: use dimensions of the task ({known})"
    if not any(control.kind == "fault" for control in plan.controls):
        yield "no fault control is declared: a grader that was never seen to fail a fault proves nothing"
