"""A finished run's records, graded again by another version of the same pack: what changes, and what score it makes.

Nothing of the run is touched: a regrade is a report. Grading is a function of case and record, so equal graders give
equal verdicts, and every difference is the grader's.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casewarden.api.evalrun import EvalRunSpec
from casewarden.api.plan import Plan
from casewarden.core.agentbench import own_score
from casewarden.core.bundle_check import Decompress, read_bundle, strict_json
from casewarden.core.evidence import PLAN, RESULTS, RUN, EvidenceKey, row_of_result
from casewarden.core.model import CaseKey, LedgerRow
from casewarden.core.scoring import OWN_RULES, RULES, CaseResult, with_own
from casewarden.core.verification import Read
from casewarden.core.verify import Regrade
from casewarden.core.verify_own import Reaggregate, outcomes
from casewarden_sdk.canonical import canonical_equal
from casewarden_sdk.contract import Verdict, check_bits

__all__ = ["Change", "Regraded", "regrade_run"]


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
        answered = reaggregate([row for row in made if row["status"] != "environment_error"])
        score = with_own(score, own_score(answered["score"], {}))
    return Regraded(graded, kept, changes, run["score"], score.to_json())


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
