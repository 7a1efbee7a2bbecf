"""A run whose records are another's: are its rows that run's, but for verdicts that a grader may change? Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from casewarden.api.plan import Plan
from casewarden.core.bundle_check import Bundle, Decompress, read_bundle
from casewarden.core.evidence import PLAN, RESULTS, RUN, RUN_FILES, EvidenceKey
from casewarden.core.model import LedgerRow
from casewarden.core.regrade import differing_cases, regraded_row
from casewarden.core.verification import Read, Regrade, Verification
from casewarden_sdk.bundle import BundleError, read_sealed
from casewarden_sdk.contract import Verdict

__all__ = ["bundles_of", "check_regraded", "original_of"]


def original_of(run: Mapping[str, Any], result: Verification) -> tuple[str, str, str] | None:
    """Return name, UID and root digest of the run that was graded again; None where ``run.json`` names none."""
    of = run.get("regrade")
    if of is None:
        return None
    if not isinstance(of, dict) or of.keys() != {"name", "uid", "digest"} or not all(map(str, of.values())):
        result.add(RUN, f"names as the run that it graded again {of!r}")
        return None
    named = (run["spec"].get("regradeOf") or {}).get("evalRun")
    if named != of["name"]:
        result.add(RUN, f"graded the records of {of['name']!r}, its spec says {named!r}")
    return str(of["name"]), str(of["uid"]), str(of["digest"])


def check_regraded(
    plan: Plan,
    rows: Collection[LedgerRow],
    original_plan: Plan,
    original_rows: Iterable[LedgerRow],
    bundles: Iterable[tuple[LedgerRow, Bundle]],
    regrade: Regrade | None,
    paths: Collection[str],
    result: Verification,
) -> None:
    """Note where rows are not those of the original, and, if records are graded again, where verdicts differ."""
    for path in sorted(set(paths) - set(RUN_FILES)):
        result.add(path, "is no file of a run whose records are another's")
    if problem := differing_cases(original_plan, plan):
        result.add(RESULTS, problem)
        return
    if plan.fingerprints.cases != original_plan.fingerprints.cases:
        result.add(
            PLAN, f"has the cases {plan.fingerprints.cases}, those played were {original_plan.fingerprints.cases}"
        )
    now, before = {row.key: row for row in rows}, {row.key: row for row in original_rows}
    for key in sorted(now.keys() ^ before.keys()):
        result.add(RESULTS, f"{key} is an attempt of one of the two runs only")
    for key in sorted(now.keys() & before.keys()):
        if _facts(now[key]) != _facts(before[key]):
            result.add(RESULTS, f"{key} is not the attempt that was graded again: {_facts(before[key])!r}")
    planned = {(case.seed, case.id): case for case in plan.cases}
    for row, bundle in bundles:
        found = now.get(row.key)
        if found is None:
            continue
        if regrade is None:
            result.not_regraded += 1
            continue
        try:
            case = planned[row.key.case.seed, row.key.case.case_id]
            again = regraded_row(row, Verdict.from_json(regrade(case, bundle)))
        except Exception as error:  # a grader is foreign code
            result.add(RESULTS, f"{row.key} cannot be graded again: {type(error).__name__}: {error}")
            continue
        result.regraded = (result.regraded or 0) + 1
        if again != found:
            kept, comes = (found.status, found.checks, found.error), (again.status, again.checks, again.error)
            result.add(RESULTS, f"{row.key} graded again is {comes!r}, the results have {kept!r}")


def _facts(row: LedgerRow) -> tuple[Any, ...]:
    """Return what of a row no grader changes: for one without a record that is all."""
    fixed = (row.kind, row.digest, row.seconds, row.pod_uid, row.ended_at)
    if row.kind == "verdict" and row.digest is not None:
        return fixed
    return (*fixed, row.status, row.checks, row.reason, row.error)


def bundles_of(read: Read, rows: Iterable[LedgerRow], decompress: Decompress) -> Iterator[tuple[LedgerRow, Bundle]]:
    """Yield each verdict that has a bundle, with it; what cannot be read is left out: there is a finding for it."""
    for row in sorted(rows, key=lambda item: item.key):
        if row.kind != "verdict" or row.digest is None:
            continue
        try:
            sealed = read_sealed(read(EvidenceKey(row.key.case, "sealed").path()) or b"")
            data = read(EvidenceKey(row.key.case, "bundle", sealed["attempt"]).path())
            yield row, read_bundle(data or b"", decompress)
        except (BundleError, ValueError, UnicodeError):
            continue
