"""Would the audit notice if a check of the grader were gone, or the wrong way round? Pure.

A mutant is *noticed* where the audit, judged over the same records by the mutated grader, does not pass. What goes
unnoticed is a check that no control tests: it may be wrong, and no audit would say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from casewarden.api.plan import Plan
from casewarden.core.audit import ControlRun, Observation, judge_audit
from casewarden.core.evidence import json_file
from casewarden.core.grades import Grades, MutantGrades
from casewarden.core.model import CaseKey
from casewarden.core.scoring import RULES, CaseResult
from casewarden_sdk.checks import mutants_of, mutated_fingerprint

__all__ = [
    "MutantVerdict",
    "check_grades",
    "judge_mutants",
    "mutants_file",
    "mutants_status",
    "read_mutants",
    "wanted_mutants",
]

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class MutantVerdict:
    """What became of a mutant; ``problems`` are why the audit would not pass with it."""

    grades: MutantGrades
    noticed: bool
    problems: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return a line of ``mutants.jsonl``."""
        changes = sorted((run, key, found) for (run, key), found in self.grades.changes.items())
        return {
            "check": self.grades.check,
            "mutation": self.grades.mutation,
            "grader": self.grades.grader,
            "noticed": self.noticed,
            "problems": list(self.problems),
            "changes": [
                {"run": run, "seed": key.seed, "case_id": key.case_id, "repeat": key.repeat, "status": status,
                 "checks": bits}
                for run, key, (status, bits) in changes
            ],
        }  # fmt: skip


def wanted_mutants(plan: Plan) -> list[tuple[str, str, str]]:
    """Return check, mutation and fingerprint of every mutant that a plan's grader has."""
    grader = plan.fingerprints.grader
    return [(check, how, mutated_fingerprint(grader, check, how)) for check, how in mutants_of(plan.checks)]


def judge_mutants(
    plan: Plan, runs: Mapping[str, ControlRun], mutants: Sequence[MutantGrades], *, strict: bool = False
) -> tuple[MutantVerdict, ...]:
    """Judge every mutant over the runs of an audit that passed, by UID; ``ValueError`` for changes of no case."""
    verdicts = []
    for mutant in mutants:
        judgement = judge_audit([_under(plan, uid, run, mutant) for uid, run in runs.items()], strict=strict)
        noticed = judgement.passed is not True
        verdicts.append(MutantVerdict(mutant, noticed, judgement.problems if noticed else ()))
    return tuple(verdicts)


def check_grades(plan: Plan, runs: Mapping[str, ControlRun], grades: Grades) -> None:
    """Require every mutant, and the grader to judge the records as it did; ``ValueError`` says what is off."""
    if grades.grader != plan.fingerprints.grader:
        raise ValueError(f"the grader {grades.grader} is not the audit's, {plan.fingerprints.grader}")
    found = [(item.check, item.mutation, item.grader) for item in grades.mutants]
    if found != wanted_mutants(plan):
        raise ValueError(f"{len(found)} mutants were graded, and the pack's checks have {len(wanted_mutants(plan))}")
    for uid, run in runs.items():
        for case in run.cases:
            key = CaseKey(case.seed, case.case_id, case.repeat)
            _, verdict = grades.verdicts.get((uid, key), ("", None))
            if verdict is None:
                continue  # the operator's own word, which has no record
            failed = frozenset(name for name, holds in verdict.checks.items() if holds is False)
            if (verdict.status, failed) != (case.status, case.failed):
                raise ValueError(f"{run.name}: {key} was {case.status} and is now {verdict.status}: mend the grader")


def _under(plan: Plan, uid: str, run: ControlRun, mutant: MutantGrades) -> ControlRun:
    """Return a control's run as the mutant judges it."""
    changes = {key: found for (of, key), found in mutant.changes.items() if of == uid}
    if not changes:
        return run
    dimensions = {(case.seed, case.id): tuple(sorted(case.dimensions)) for case in plan.cases}
    cases, results = [], []
    for case in run.cases:
        names = dimensions[case.seed, case.case_id]
        status, bits = changes.pop(
            CaseKey(case.seed, case.case_id, case.repeat),
            (case.status, "".join("0" if name in case.failed else "1" for name in names)),
        )
        failed = frozenset(name for name, bit in zip(names, bits, strict=True) if bit == "0")
        cases.append(Observation(case.seed, case.case_id, case.repeat, status, failed))
        results.append(CaseResult(names, status, bits))
    if changes:
        raise ValueError(f"mutant {mutant.name} changes {next(iter(changes))}, which run {uid} does not have")
    score = RULES[plan.aggregation](plan.weights, results)
    return replace(run, valid=score.valid, resolved=score.resolved, score=score.score, cases=tuple(cases))


def mutants_file(verdicts: Sequence[MutantVerdict]) -> bytes:
    """Return ``mutants.jsonl``: a canonical line for each mutant, in the order of the pack's checks."""
    return b"".join(json_file(verdict.to_json()) for verdict in verdicts)


def read_mutants(lines: Sequence[Mapping[str, Any]]) -> tuple[MutantGrades, ...]:
    """Read the gradings back from the lines of the file; ``KeyError``, ``TypeError``, ``ValueError`` for others."""
    return tuple(
        MutantGrades(
            str(line["check"]),
            str(line["mutation"]),
            str(line["grader"]),
            {
                (str(row["run"]), CaseKey(int(row["seed"]), str(row["case_id"]), int(row["repeat"]))): (
                    str(row["status"]),
                    str(row["checks"]),
                )
                for row in line["changes"]
            },
        )
        for line in lines
    )


def mutants_status(verdicts: Sequence[MutantVerdict]) -> dict[str, Any]:
    """Return ``status.graderMutants``; its size has a bound."""
    unnoticed = [verdict.grades.name for verdict in verdicts if not verdict.noticed]
    return {"total": len(verdicts), "noticed": len(verdicts) - len(unnoticed), "unnoticed": unnoticed[:_SHOWN]}
