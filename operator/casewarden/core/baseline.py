"""A run beside an earlier one: may they be compared, and what comes of it. Pure; the command line says the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from casewarden.core.bundle_check import strict_json
from casewarden.core.evidence import row_of_result
from casewarden.core.intervals import observe_case
from casewarden.core.statistics import Comparison, Observed, compare_runs
from casewarden_sdk.canonical import sha256_bytes
from casewarden_sdk.termination import cut_text

__all__ = ["METHOD", "CaseDigests", "baseline_status", "compare", "differing", "no_comparison", "observed_in"]

METHOD: Final = "sign-flip test on family means"
_FAMILIES: Final = 20
_PROBLEM_BYTES: Final = 300
# Not the cases: other seeds make other ones. Each pair's own case is compared instead.
_EQUAL: Final = ("task", "contract", "grader", "params", "conditions")
CaseDigests = Mapping[tuple[int, str], str]
"""What was asked in each case, by seed and case: the SHA-256 of its content."""


def differing(prints: Mapping[str, Any], others: Mapping[str, Any]) -> list[str]:
    """Return which fingerprints keep two runs from being compared."""
    return [name for name in _EQUAL if prints.get(name) != others.get(name)]


def observed_in(run: bytes, plan: bytes, results: bytes) -> tuple[list[Observed], CaseDigests]:
    """Return the assessed cases of a run's files; ``ValueError`` where these do not hold together."""
    told = strict_json(run)
    if told["plan_sha256"] != sha256_bytes(plan) or told["results_sha256"] != sha256_bytes(results):
        raise ValueError("its evidence does not hold together")
    cases = {(case["seed"], case["id"]): case for case in strict_json(plan)["cases"]}
    found = []
    for line in results.splitlines():
        row = row_of_result(strict_json(line))
        case = row.key.case
        observed = observe_case(case, cases[case.seed, case.case_id]["dimensions"], row.checks)
        if row.kind == "verdict" and observed is not None:
            found.append(observed)
    return found, {key: str(case["sha256"]) for key, case in cases.items()}


def compare(
    run: Iterable[Observed], cases: CaseDigests, baseline: Iterable[Observed], baseline_cases: CaseDigests
) -> Comparison:
    """Compare two runs in the cases that are equal; all others count as unmatched."""
    both = {key for key, digest in cases.items() if baseline_cases.get(key) == digest}
    ours, theirs = list(run), list(baseline)
    alone = {(item.seed, item.family) for item in ours} ^ {(item.seed, item.family) for item in theirs}
    others = {(item.seed, item.family) for item in ours} - alone - both
    result = compare_runs(
        [item for item in ours if (item.seed, item.family) in both],
        [item for item in theirs if (item.seed, item.family) in both],
    )
    # A case that both have by name and that asks something else is one without a counterpart on either side.
    unmatched = len(alone) + 2 * len(others)
    return Comparison(
        families=result.families, matched=result.matched, unmatched=unmatched, difference=result.difference,
        p_value=result.p_value, regressed=result.regressed, improved=result.improved,
    )  # fmt: skip


def no_comparison(name: str, problem: str) -> dict[str, Any]:
    """Return ``status.baseline`` where there is no comparison, and why."""
    return {"evalRun": name, "problem": cut_text(problem, _PROBLEM_BYTES) or problem[:1]}


def baseline_status(name: str, score: str | None, result: Comparison) -> dict[str, Any]:
    """Return ``status.baseline``; its size has a bound."""
    status: dict[str, Any] = {
        "evalRun": name,
        "difference": _decimal(result.difference),
        "families": result.families,
        "matched": result.matched,
        "unmatched": result.unmatched,
        "regressed": list(result.regressed)[:_FAMILIES],
        "improved": list(result.improved)[:_FAMILIES],
    }
    if score is not None:
        status["score"] = score
    if result.p_value is not None:
        status |= {"pValue": _decimal(result.p_value), "method": METHOD}
    return status


def _decimal(value: float) -> str:
    text = format(Decimal(f"{value:.6f}").normalize(), "f")
    return "0" if text in ("-0", "0") else text
