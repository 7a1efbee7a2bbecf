"""The judgement of an audit: was the reference right throughout, and was every fault caught in its place? Pure.

A fault is *killed* when its run is valid and some case that ran to its end (status ``failed``; ``agent_error`` only
where the control declares a fault of the protocol) has a false check in the fault's own dimension: a program that only
crashes fails every check and proves nothing of any of them. The *margin* counts families, so that more seeds of the
same case do not widen it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Literal

from casewarden.api.plan import Plan, PlanControl
from casewarden.core.evidence import row_of_result
from casewarden.core.model import LedgerRow
from casewarden.core.scoring import decimal_text
from casewarden_sdk.contract import AGENT_ERROR, FAILED, PASSED

__all__ = ["ControlRun", "ControlVerdict", "Judgement", "Observation", "judge_audit", "observations"]

Kind = Literal["reference", "null", "crash", "forger", "fault"]
SKILL_FREE: Final = ("null", "crash", "forger")


@dataclass(frozen=True, slots=True)
class Observation:
    """An assessed case of a control's run; ``failed`` are the dimensions whose check is false."""

    seed: int
    case_id: str
    repeat: int
    status: str
    failed: frozenset[str]


@dataclass(frozen=True, slots=True)
class ControlRun:
    """A control as the plan declares it, and what its run came to; ``score`` is a decimal, None unless valid."""

    name: str
    kind: Kind
    valid: bool
    resolved: bool = False
    score: str | None = None
    cases: tuple[Observation, ...] = ()
    target: str | None = None
    collateral: frozenset[str] = frozenset()
    protocol_fault: bool = False

    @classmethod
    def of(
        cls, control: PlanControl, *, valid: bool, resolved: bool, score: str | None, cases: Iterable[Observation]
    ) -> ControlRun:
        """Put a control of the plan and its run together."""
        return cls(
            name=control.name,
            kind=control.kind,
            valid=valid,
            resolved=resolved,
            score=score,
            cases=tuple(cases),
            target=control.target,
            collateral=frozenset(control.collateral),
            protocol_fault=control.protocol_fault,
        )


@dataclass(frozen=True, slots=True)
class ControlVerdict:
    """What the audit says of one control.

    ``killed`` and ``margin`` are a fault's, absent where its run is invalid; ``detected_by`` are the families that
    caught it. ``collateral`` are dimensions that it failed beyond what it declares, ``problem`` is why the audit does
    not pass because of it.
    """

    name: str
    kind: Kind
    valid: bool
    score: str | None = None
    target: str | None = None
    killed: bool | None = None
    margin: int | None = None
    detected_by: tuple[str, ...] = ()
    collateral: tuple[str, ...] = ()
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what evidence keeps of it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "valid": self.valid,
            "score": self.score,
            "target": self.target,
            "killed": self.killed,
            "margin": self.margin,
            "detected_by": list(self.detected_by),
            "collateral": list(self.collateral),
            "problem": self.problem,
        }


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an audit came to. ``passed`` and everything below it is absent unless ``valid``."""

    valid: bool
    controls: tuple[ControlVerdict, ...]
    problems: tuple[str, ...] = ()
    passed: bool | None = None
    mutation_score: str | None = None
    killed: int | None = None
    faults: int = 0
    weakest_margin: int | None = None
    reference_score: str | None = None
    reference_flakes: int | None = None
    floors: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the judgement as evidence keeps it."""
        return {
            "valid": self.valid,
            "passed": self.passed,
            "problems": list(self.problems),
            "mutation_score": self.mutation_score,
            "killed": self.killed,
            "faults": self.faults,
            "weakest_margin": self.weakest_margin,
            "reference_score": self.reference_score,
            "reference_flakes": self.reference_flakes,
            "floors": dict(sorted(self.floors.items())),
            "controls": [item.to_json() for item in self.controls],
        }


def judge_audit(runs: Sequence[ControlRun], *, strict: bool = False) -> Judgement:
    """Judge an audit by the runs of its controls; ``strict`` lets undeclared collateral fail it."""
    verdicts = tuple(_judge(run) for run in runs)
    faults = [item for item in verdicts if item.kind == "fault"]
    invalid = [item.name for item in verdicts if not item.valid]
    if invalid or not runs:
        problem = f"the runs of these controls are not valid: {', '.join(invalid)}" if runs else "there are no controls"
        return Judgement(False, verdicts, (problem,), faults=len(faults))
    killed = sum(item.killed is True for item in faults)
    problems = [f"{item.name}: {item.problem}" for item in verdicts if item.problem]
    problems += _missing(runs) + _forged(runs)
    if strict:
        problems += [
            f"{item.name}: fails {', '.join(item.collateral)} too, which it does not declare"
            for item in verdicts
            if item.collateral
        ]
    references = [run for run in runs if run.kind == "reference"]
    return Judgement(
        valid=True,
        controls=verdicts,
        problems=tuple(problems),
        passed=not problems,
        mutation_score=decimal_text(Fraction(killed, len(faults))) if faults else None,
        killed=killed,
        faults=len(faults),
        weakest_margin=min((item.margin for item in faults if item.margin is not None), default=None),
        reference_score=min((run.score for run in references if run.score is not None), key=Fraction, default=None),
        reference_flakes=sum(_flakes(run) for run in references) if references else None,
        floors={run.name: run.score for run in runs if run.kind in SKILL_FREE and run.score is not None},
    )


def _judge(run: ControlRun) -> ControlVerdict:
    if not run.valid:
        return ControlVerdict(run.name, run.kind, False, target=run.target)
    if run.kind != "fault" or run.target is None:
        return ControlVerdict(run.name, run.kind, True, run.score, problem=_problem(run))
    counted = (FAILED, AGENT_ERROR) if run.protocol_fault else (FAILED,)
    caught = {case.case_id for case in run.cases if case.status in counted and run.target in case.failed}
    elsewhere = {name for case in run.cases if case.status in counted for name in case.failed}
    return ControlVerdict(
        name=run.name,
        kind=run.kind,
        valid=True,
        score=run.score,
        target=run.target,
        killed=bool(caught),
        margin=len(caught),
        detected_by=tuple(sorted(caught)),
        collateral=tuple(sorted(elsewhere - run.collateral - {run.target})),
        problem=None if caught else _not_caught(run),
    )


def _not_caught(run: ControlRun) -> str:
    broken = sum(case.status == AGENT_ERROR for case in run.cases)
    if broken and not run.protocol_fault:
        return f"is not caught in {run.target}: it broke in {broken} cases instead of running"
    return f"is not caught in {run.target}: no case that it ran to the end fails there"


def _problem(run: ControlRun) -> str | None:
    if run.kind == "reference":
        wrong = sorted({case.case_id for case in run.cases if case.status != PASSED})
        return None if run.resolved else f"the reference does not resolve {', '.join(wrong[:5]) or 'every case'}"
    resolved = sorted({case.case_id for case in run.cases if case.status == PASSED})
    return f"resolves {', '.join(resolved[:5])} without any skill" if resolved else None


def _missing(runs: Sequence[ControlRun]) -> list[str]:
    kinds = {run.kind for run in runs}
    wanted = {"reference": "no reference", "fault": "no fault", "null": "no null agent", "crash": "no crashing agent"}
    wanted["forger"] = "no forger"
    return [f"{what} was run: an audit without one shows nothing" for kind, what in wanted.items() if kind not in kinds]


def _forged(runs: Sequence[ControlRun]) -> list[str]:
    """A forger that earns more than doing nothing does has found a grader that believes what it is told."""
    nothing = max((Fraction(run.score) for run in runs if run.kind == "null" and run.score), default=None)
    return [
        f"{run.name}: scores {run.score}, more than the null agent"
        for run in runs
        if run.kind == "forger" and run.score is not None and nothing is not None and Fraction(run.score) > nothing
    ]


def _flakes(run: ControlRun) -> int:
    """Count cases whose repeats did not come out the same."""
    seen: dict[tuple[int, str], set[tuple[str, frozenset[str]]]] = defaultdict(set)
    for case in run.cases:
        seen[case.seed, case.case_id].add((case.status, case.failed))
    return sum(len(outcomes) > 1 for outcomes in seen.values())


def observations(plan: Plan, results: Iterable[LedgerRow | dict[str, Any]]) -> tuple[Observation, ...]:
    """Return the assessed cases among a run's rows, or lines of ``results.jsonl``."""
    dimensions = {(case.seed, case.id): sorted(case.dimensions) for case in plan.cases}
    found = []
    for item in results:
        row = item if isinstance(item, LedgerRow) else row_of_result(item)
        if row.kind != "verdict":
            continue
        case = row.key.case
        names = dimensions[case.seed, case.case_id]
        failed = frozenset(name for name, bit in zip(names, row.checks, strict=True) if bit == "0")
        found.append(Observation(case.seed, case.case_id, case.repeat, row.status, failed))
    return tuple(found)
