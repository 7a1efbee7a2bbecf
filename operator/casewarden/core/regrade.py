"""A finished run's records, graded again by another version of the same pack: what changes, and what score it makes.

Nothing of the run is touched: a regrade is a report. Grading is a function of case and record, so equal graders give
equal verdicts, and every difference is the grader's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from casewarden.api.evalrun import EvalRunSpec
from casewarden.api.plan import Plan
from casewarden.core.agentbench import own_score, read_aggregate
from casewarden.core.bundle_check import SEALED_ERROR_BYTES, Decompress, read_bundle, strict_json
from casewarden.core.evidence import PLAN, RESULTS, RUN, EvidenceKey, row_of_result
from casewarden.core.fingerprints import task_name
from casewarden.core.grades import Grades
from casewarden.core.model import CaseKey, LedgerRow
from casewarden.core.scoring import OWN_RULES, RULES, CaseResult, with_own
from casewarden.core.verification import Read, Regrade
from casewarden.core.verify_own import Reaggregate, outcomes
from casewarden_sdk.canonical import canonical_equal
from casewarden_sdk.contract import Verdict, check_bits
from casewarden_sdk.termination import cut_text

__all__ = [
    "Change",
    "Regraded",
    "differing_cases",
    "differing_specs",
    "regrade_run",
    "regrade_status",
    "regraded_row",
    "regraded_rows",
]  # fmt: skip

_CHANGES: Final = 20
# What decides which records there are and what they are of; a grader may be another, a candidate may not.
_SAME: Final = ("seeds", "select", "repeats", "candidate", "retries", "aggregation")


@dataclass(frozen=True, slots=True)
class Change:
    """A case whose verdict is another; ``before`` and ``after`` are status and checks by dimension."""

    case: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {"case": self.case, "before": dict(self.before), "after": dict(self.after)}


@dataclass(frozen=True, slots=True)
class Regraded:
    """What a regrade came to; scores are score documents. ``kept`` are verdicts without a record, left as they are."""

    graded: int
    kept: int
    changes: Sequence[Change]
    before: Mapping[str, Any]
    after: Mapping[str, Any]


def regrade_run(
    read: Read,
    decompress: Decompress,
    regrade: Regrade,
    *,
    paths: Collection[str] = (),
    reaggregate: Reaggregate | None = None,
) -> Regraded:
    """Grade every record of a finished run again; ``ValueError`` names the file where its evidence cannot be read.

    ``reaggregate`` makes the score of a task that has a rule of its own, of the files that ``paths`` lists; without it
    there is none after.
    """
    run, plan = _json(read, RUN), Plan.model_validate(_json(read, PLAN))
    planned = {(case.seed, case.id): case for case in plan.cases}
    repeats = run["spec"].get("repeats", 1)
    rows = [row_of_result(strict_json(line)) for line in (read(RESULTS) or b"").splitlines()]
    counted: dict[CaseKey, LedgerRow] = {}
    for row in rows:
        if row.kind == "verdict":
            counted.setdefault(row.key.case, row)
    results: dict[CaseKey, CaseResult] = {}
    changes: list[Change] = []
    graded = kept = 0
    for case, row in sorted(counted.items()):
        of_plan = planned[case.seed, case.case_id]
        status, bits = row.status, row.checks
        if row.digest is None:
            kept += 1
        else:
            bundle = _bundle(read, case, decompress)
            again = Verdict.from_json(regrade(of_plan, bundle))
            graded += 1
            status, bits = again.status, check_bits(again.checks)
            before, after = _shown(bundle.verdict), _shown(again.to_json())
            if not canonical_equal(before, after):
                changes.append(Change(str(case), before, after))
        results[case] = CaseResult(tuple(of_plan.dimensions), status, bits)
    keys = [CaseKey(case.seed, case.id, repeat) for case in plan.cases for repeat in range(repeats)]
    missing = [CaseResult(tuple(planned[key.seed, key.case_id].dimensions)) for key in keys if key not in results]
    score = RULES[plan.aggregation](plan.weights, [*(results[key] for key in keys if key in results), *missing])
    if plan.aggregation in OWN_RULES and reaggregate is not None:
        spec = EvalRunSpec.model_validate(run["spec"])
        made = [
            {**row, "status": results[key].status}
            for row in outcomes(read, paths, decompress, plan, spec, rows)
            if (key := CaseKey(row["seed"], row["case_id"], row["repeat"])) in results
        ]
        assessed = [row for row in made if row["status"] != "environment_error"]
        own, _ = read_aggregate(reaggregate(assessed), any_assessed=bool(assessed))
        score = with_own(score, own_score(own, {}))
    return Regraded(graded, kept, changes, run["score"], score.to_json())


def differing_specs(spec: EvalRunSpec, original: EvalRunSpec) -> list[str]:
    """Return the fields in which a run asks for other records than the one that it grades again."""
    one, other = spec.to_json(), original.to_json()
    differ = [name for name in _SAME if not canonical_equal(one.get(name), other.get(name))]
    params = (one["task"].get("params") or {}, other["task"].get("params") or {})
    limits = [{**item["limits"], "pendingSeconds": None} for item in (one, other)]
    return [
        *([] if canonical_equal(*params) else ["task.params"]),
        *differ,
        *([] if canonical_equal(*limits) else ["limits"]),
    ]


def differing_cases(original: Plan, plan: Plan) -> str | None:
    """Say why the records of one plan are none of the other's cases, or None where they are."""
    if original.task.id != plan.task.id:
        return f"it is of {original.task.id}, and records are graded by their own task only, not by {plan.task.id}"
    before = {(case.seed, case.id): (case.sha256, sorted(case.dimensions)) for case in original.cases}
    after = {(case.seed, case.id): (case.sha256, sorted(case.dimensions)) for case in plan.cases}
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            version = task_name(plan.task.id, plan.task.version)
            return f"case {key[0]}/{key[1]} of {version} is another than the one that was played: run it anew"
    return None


def regraded_row(row: LedgerRow, verdict: Verdict) -> LedgerRow:
    """Return a row with a new verdict; everything else of it is a fact about the attempt, and stays.

    A row whose verdict is the same stays as it is: its error may have been cut shorter on its way than here.
    """
    bits = check_bits(verdict.checks)
    if (row.status, row.checks, row.reason) == (verdict.status, bits, verdict.reason):
        return row
    error = cut_text(verdict.error, SEALED_ERROR_BYTES)
    return replace(row, status=verdict.status, checks=bits, reason=verdict.reason, error=error)


def regraded_rows(rows: Iterable[LedgerRow], run_uid: str, grades: Grades, plan: Plan) -> tuple[LedgerRow, ...]:
    """Return the rows of a run with new verdicts; ``ValueError`` where a record was not graded, or is another."""
    dimensions = {(case.seed, case.id): set(case.dimensions) for case in plan.cases}
    found = []
    for row in rows:
        if row.kind != "verdict" or row.digest is None:
            found.append(row)
            continue
        case = row.key.case
        digest, verdict = grades.verdicts.get((run_uid, case), ("", None))
        if verdict is None or digest != row.digest:
            raise ValueError(f"the record of {case} was not graded, or is not the one that the results count")
        if verdict.case_id != case.case_id or set(verdict.checks) != dimensions[case.seed, case.case_id]:
            raise ValueError(f"the verdict of {case} is of {verdict.case_id} with checks {sorted(verdict.checks)}")
        found.append(regraded_row(row, verdict))
    return tuple(found)


def regrade_status(
    *,
    name: str,
    digest: str,
    plan: Plan,
    score: str | None,
    before: Iterable[LedgerRow],
    after: Iterable[LedgerRow],
) -> dict[str, Any]:
    """Return ``status.regrade``: what changed against the run ``name``, whose plan and rows these are."""
    dimensions = {(case.seed, case.id): sorted(case.dimensions) for case in plan.cases}
    new = {row.key: row for row in after}
    verdicts = sorted((row for row in before if row.kind == "verdict"), key=lambda row: row.key)
    changed = [
        (row, new[row.key])
        for row in verdicts
        if (row.status, row.checks, row.reason) != (new[row.key].status, new[row.key].checks, new[row.key].reason)
    ]
    changes = []
    for old, now in changed[:_CHANGES]:
        case = old.key.case
        bits = zip(dimensions[case.seed, case.case_id], old.checks, now.checks, strict=True)
        changes.append(
            {
                "case": case.case_id,
                "seed": case.seed,
                "repeat": case.repeat,
                "before": old.status,
                "after": now.status,
                "dimensions": [name for name, one, other in bits if one != other],
            }
        )
    return {
        "evalRun": name,
        "digest": digest,
        "task": task_name(plan.task.id, plan.task.version),
        "grader": plan.fingerprints.grader,
        "graded": sum(row.digest is not None for row in verdicts),
        "kept": sum(row.digest is None for row in verdicts),
        "changed": len(changed),
        **({} if score is None else {"score": score}),
        "changes": changes,
    }


def _shown(verdict: Mapping[str, Any]) -> dict[str, Any]:
    return {name: verdict.get(name) for name in ("status", "checks", "error", "reason", "metrics")}


def _json(read: Read, path: str) -> Any:
    data = read(path)
    if data is None:
        raise ValueError(f"{path} is missing; the run is not over, or was given up")
    return strict_json(data)


def _bundle(read: Read, case: CaseKey, decompress: Decompress) -> Any:
    sealed = _json(read, EvidenceKey(case, "sealed").path())
    path = EvidenceKey(case, "bundle", sealed["attempt"]).path()
    data = read(path)
    if data is None:
        raise ValueError(f"{path} is missing")
    try:
        return read_bundle(data, decompress)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
