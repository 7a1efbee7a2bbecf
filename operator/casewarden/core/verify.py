"""Recompute a run from its lowest records: every digest, verdict, count and score.

Bundles are compared with the seals, seals with ``results.jsonl``, that with the plan, and the score with what the rows
come to. What is found consistent is *authenticated* only against a digest that was kept elsewhere, the one of the
EvalRun's status: whoever can rewrite a whole folder can rewrite every digest in it. Reads nothing by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from pydantic import ValidationError

from casewarden.api.evalrun import EvalRunSpec
from casewarden.api.plan import Plan, PlanCase
from casewarden.core.bundle_check import Bundle, Decompress, check_bundle, check_sealed_row, read_bundle, strict_json
from casewarden.core.evidence import (
    META,
    PLAN,
    RESULTS,
    RUN,
    RUN_FILES,
    USAGE,
    EvidenceKey,
    json_file,
    meta_document,
    parse_evidence_key,
    root_digest,
    row_of_result,
)
from casewarden.core.intervals import observe_case, shown_interval, shown_statistics
from casewarden.core.model import AttemptKey, CaseKey, LedgerRow
from casewarden.core.regrade import regrade_status
from casewarden.core.scoring import OWN_RULES, RULES, CaseResult, OwnScore, with_own
from casewarden.core.usage import told_by_attempts, usage_problems
from casewarden.core.verification import Folder, Read, Regrade, Verification
from casewarden.core.verify_own import Reaggregate, check_own
from casewarden.core.verify_regrade import bundles_of, check_regraded, original_of
from casewarden.core.verify_rows import check_rows
from casewarden_sdk.bundle import BundleError, read_sealed, unpack_bundle
from casewarden_sdk.canonical import canonical_equal, sha256_bytes, sha256_json

__all__ = ["Regrade", "verify_run"]

_RUN_FIELDS: Final = frozenset(
    {"v", "name", "namespace", "uid", "spec", "seeds", "plan_sha256", "results_sha256", "score"}
)
# A call that nobody waited for may still be counted there after the end of the run.
_IGNORED: Final = frozenset({"gone.json", "overall.json", "runs.jsonl", "error.jsonl", USAGE})


def verify_run(
    read: Read,
    paths: Collection[str],
    decompress: Decompress,
    *,
    status_digest: str | None = None,
    regrade: Regrade | None = None,
    run_folder: Callable[[str], Folder] | None = None,
    reaggregate: Reaggregate | None = None,
) -> Verification:
    """Verify a run. ``read`` gives a file by its path below the run, or None; ``paths`` are all that there are.

    ``status_digest`` is ``status.evidence.digest`` of the EvalRun. ``regrade`` grades a record again, ``reaggregate``
    applies the task's own rule again, where it has one. ``run_folder`` gives the files of another run by its UID: of
    the one whose records this one graded again, if it did.
    """
    result = Verification(regraded=None if regrade is None else 0)
    run = _read_run(read, result, status_digest)
    plan = _read_plan(read, result, run)
    rows = _read_results(read, result, run)
    if run is None or plan is None or rows is None:
        return result
    spec = _spec(run, result)
    if spec is None:
        return result
    planned = {(case.seed, case.id): case for case in plan.cases}
    keys = [CaseKey(case.seed, case.id, repeat) for case in plan.cases for repeat in range(spec.repeats)]
    _check_seeds(run, plan, result)
    counted, problems = check_rows(rows, set(keys), planned, spec)
    for problem in problems:
        result.add(RESULTS, problem)
    result.verdicts = len(counted)
    if "regrade" in run:
        _check_original(run, plan, rows, run_folder, decompress, regrade, paths, result)
    else:
        attempts = {row.key for row in rows}
        contents = _check_cases(read, decompress, counted, attempts, planned, run["uid"], regrade, result)
        _check_case_fingerprint(plan, contents, result)
        _check_inventory(paths, counted, result)
        _check_usage(read, decompress, paths, result)
    own: OwnScore | None = None
    if plan.aggregation in OWN_RULES:
        own = check_own(read, paths, decompress, run, plan, spec, rows, result, reaggregate)
    elif all(key in counted for key in keys):
        with contextlib.suppress(ValueError):  # checks of the wrong width: there is a finding for that row
            observed = [
                observe_case(key, planned[key.seed, key.case_id].dimensions, counted[key].checks) for key in keys
            ]
            result.interval = shown_interval(plan.weights, observed)
            result.statistics = shown_statistics(plan.weights, observed)
    _check_score(run, plan, spec, [_case_result(planned, key, counted.get(key)) for key in keys], own, result)
    return result


def _check_original(
    run: Mapping[str, Any],
    plan: Plan,
    rows: Collection[LedgerRow],
    run_folder: Callable[[str], Folder] | None,
    decompress: Decompress,
    regrade: Regrade | None,
    paths: Collection[str],
    result: Verification,
) -> None:
    """Verify the run whose records these are, and the rows against its."""
    of = original_of(run, result)
    if of is None:
        return
    name, uid, digest = of
    read, its_paths = run_folder(uid) if run_folder is not None else ((lambda path: None), ())
    original = verify_run(read, its_paths, decompress, status_digest=digest)
    for finding in original.findings:
        result.add(f"{uid}/{finding.path}", finding.problem)
    result.bundles += original.bundles
    result.unsealed += original.unsealed
    its_plan, its_rows = _read_plan(read, Verification(), None), _read_results(read, Verification(), None)
    if its_plan is not None and its_rows is not None:
        bundles = bundles_of(read, its_rows, decompress)
        if {row.key for row in its_rows} == {row.key for row in rows}:
            result.original = regrade_status(
                name=name, digest=digest, plan=its_plan, score=original.score.get("score"), before=its_rows, after=rows
            )
        check_regraded(plan, rows, its_plan, its_rows, bundles, regrade, paths, result)


def _document(read: Read, path: str, result: Verification) -> dict[str, Any] | None:
    data = read(path)
    if data is None:
        result.add(path, "is missing" + ("; the run is not over, or was given up" if path == RUN else ""))
        return None
    try:
        document = strict_json(data)
    except ValueError as error:
        result.add(path, f"is no JSON: {error}")
        return None
    if not isinstance(document, dict) or json_file(document) != data:
        result.add(path, "is not a canonical JSON object")
        return None
    return document


def _read_run(read: Read, result: Verification, status_digest: str | None) -> dict[str, Any] | None:
    run = _document(read, RUN, result)
    if run is None:
        return None
    result.digest = root_digest(read(RUN) or b"")
    if status_digest is not None:
        result.authenticated = result.digest == status_digest
        if not result.authenticated:
            result.add(RUN, f"has the digest {result.digest}, the status of the run {status_digest}")
    parts = [run.get("spec"), run.get("score"), run.get("usage", {}), run.get("regrade", {})]
    whole = run.keys() - {"usage", "regrade"} == _RUN_FIELDS and all(isinstance(part, dict) for part in parts)
    if not whole or run["v"] != 1:
        fields = ", ".join(sorted(_RUN_FIELDS))
        result.add(RUN, f"must have v 1 and the fields {fields}, and may have usage and regrade")
        return None
    result.name, result.namespace, result.uid = str(run["name"]), str(run["namespace"]), str(run["uid"])
    result.score = run["score"]
    result.usage = run.get("usage")
    meta = _document(read, META, result)
    if meta not in (None, meta_document(namespace=result.namespace, name=result.name, run_uid=result.uid)):
        result.add(META, "is of another run than run.json")
    return run


def _read_plan(read: Read, result: Verification, run: Mapping[str, Any] | None) -> Plan | None:
    document = _document(read, PLAN, result)
    if document is None:
        return None
    if run is not None and sha256_bytes(read(PLAN) or b"") != run["plan_sha256"]:
        result.add(PLAN, f"has the digest {sha256_bytes(read(PLAN) or b'')}, run.json has {run['plan_sha256']!r}")
    try:
        return Plan.model_validate(document)
    except ValidationError as error:
        result.add(PLAN, f"is no plan: {_first(error)}")
        return None


def _read_results(read: Read, result: Verification, run: Mapping[str, Any] | None) -> list[LedgerRow] | None:
    data = read(RESULTS)
    if data is None:
        result.add(RESULTS, "is missing")
        return None
    if run is not None and sha256_bytes(data) != run["results_sha256"]:
        result.add(RESULTS, f"has the digest {sha256_bytes(data)}, run.json has {run['results_sha256']!r}")
    rows = []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            rows.append(row_of_result(strict_json(line)))
        except (KeyError, TypeError, ValueError) as error:
            result.add(RESULTS, f"line {number} is no row: {error!r}")
            return None
    result.rows = len(rows)
    return rows


def _spec(run: Mapping[str, Any], result: Verification) -> EvalRunSpec | None:
    try:
        return EvalRunSpec.model_validate(run["spec"])
    except ValidationError as error:
        result.add(RUN, f"spec is none: {_first(error)}")
        return None


def _first(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"


def _check_seeds(run: Mapping[str, Any], plan: Plan, result: Verification) -> None:
    if run["seeds"] != plan.seeds:
        result.add(RUN, f"has the seeds {run['seeds']!r}, the plan {plan.seeds!r}")
    asked = run["spec"].get("seeds", {})
    if "values" in asked and asked["values"] != run["seeds"]:
        result.add(RUN, f"has the seeds {run['seeds']!r}, its spec asks for {asked['values']!r}")
    if "random" in asked and asked["random"] != len(run["seeds"]):
        result.add(RUN, f"has {len(run['seeds'])} seeds, its spec asks for {asked['random']}")


def _check_cases(
    read: Read,
    decompress: Decompress,
    counted: Mapping[CaseKey, LedgerRow],
    attempts: Collection[AttemptKey],
    planned: Mapping[tuple[int, str], PlanCase],
    run_uid: str,
    regrade: Regrade | None,
    result: Verification,
) -> dict[tuple[int, str], Mapping[str, Any]]:
    """Check seal and bundle of every verdict; return the cases' contents as far as bundles have them."""
    contents: dict[tuple[int, str], Mapping[str, Any]] = {}
    for case, row in sorted(counted.items()):
        if row.digest is None:
            result.unsealed.append(str(row.key))
            continue
        sealed = _check_seal(read, row, attempts, run_uid, result)
        if sealed is None:
            continue
        path = EvidenceKey(case, "bundle", sealed["attempt"]).path()
        data = read(path)
        if data is None:
            result.add(path, "is missing")
            continue
        result.bundles += 1
        case_of_plan = planned[case.seed, case.case_id]
        try:
            bundle = read_bundle(data, decompress)
        except ValueError as error:
            result.add(path, str(error))
            continue
        for problem in check_bundle(data, bundle, row, sealed, case_of_plan):
            result.add(path, problem)
        contents[case.seed, case.case_id] = bundle.content
        if regrade is not None:
            _regrade(path, bundle, case_of_plan, regrade, result)
    return contents


def _check_seal(
    read: Read, row: LedgerRow, attempts: Collection[AttemptKey], run_uid: str, result: Verification
) -> dict[str, Any] | None:
    """Check the seal of a case and return it.

    Its attempt is not the row's own where the attempt's own row had been written before its seal was found.
    """
    path = EvidenceKey(row.key.case, "sealed").path()
    data = read(path)
    if data is None:
        result.add(path, "is missing, and the results count a sealed verdict")
        return None
    try:
        sealed = read_sealed(data)
    except (BundleError, UnicodeError) as error:
        result.add(path, str(error))
        return None
    if json_file(sealed) != data:
        result.add(path, "is not a canonical JSON object")
    for problem in check_sealed_row(sealed, row, run_uid):
        result.add(path, problem)
    if AttemptKey(row.key.case, sealed["attempt"]) not in attempts:
        result.add(path, f"is of attempt {sealed['attempt']}, which the results do not have")
    return sealed


def _regrade(path: str, bundle: Bundle, planned: PlanCase, regrade: Regrade, result: Verification) -> None:
    try:
        again = regrade(planned, bundle)
    except Exception as error:  # a grader is foreign code
        result.add(path, f"cannot be graded again: {type(error).__name__}: {error}")
        return
    result.regraded = (result.regraded or 0) + 1
    kept = {name: bundle.verdict.get(name) for name in again}
    if not canonical_equal(dict(again), kept):
        result.add(path, f"graded again it is {dict(again)!r}, the bundle has {kept!r}")


def _check_case_fingerprint(
    plan: Plan, contents: Mapping[tuple[int, str], Mapping[str, Any]], result: Verification
) -> None:
    if all((case.seed, case.id) in contents for case in plan.cases):
        found = sha256_json([{"seed": case.seed, **contents[case.seed, case.id]} for case in plan.cases])
        if found != plan.fingerprints.cases:
            result.add(PLAN, f"has the fingerprint {plan.fingerprints.cases} for its cases, which come to {found}")


def _check_inventory(paths: Collection[str], counted: Mapping[CaseKey, LedgerRow], result: Verification) -> None:
    for path in sorted(paths):
        if path in RUN_FILES or path in _IGNORED:
            continue
        key = parse_evidence_key(path)
        if key is None:
            result.add(path, "is no file of a run")
        elif key.kind == "sealed" and (key.case not in counted or counted[key.case].digest is None):
            result.add(path, "is a sealed verdict that the results do not count")


def _check_usage(read: Read, decompress: Decompress, paths: Collection[str], result: Verification) -> None:
    """Hold what the run says that its models used against every bundle that there is, whole or partial."""
    found: dict[AttemptKey, Mapping[str, Any]] = {}
    keys = [
        key for path in paths if (key := parse_evidence_key(path)) is not None and key.kind in ("bundle", "partial")
    ]
    # Where an attempt has both, the whole one, which comes last, has all that the other has.
    for key in sorted(keys, key=lambda key: key.kind, reverse=True):
        with contextlib.suppress(ValueError):  # what a verdict rests on has its finding already
            files = unpack_bundle(read(key.path()) or b"", decompress)
            attempt = strict_json(files.get("attempt.json", b"{}"))
            if isinstance(attempt, dict):
                found[AttemptKey(key.case, key.attempt or 0)] = attempt
    told = told_by_attempts(found.values())
    if result.usage is None:
        if any(counts["model_calls"] for counts in told.values()):
            result.notes.append("what its models used in all is not known: the relay could not tell at its end")
        return
    for problem in usage_problems(result.usage, told):
        result.add(RUN, problem)
    result.calls_in_bundles = sum(counts["model_calls"] for counts in told.values())


def _case_result(planned: Mapping[tuple[int, str], PlanCase], key: CaseKey, row: LedgerRow | None) -> CaseResult:
    dimensions = tuple(planned[key.seed, key.case_id].dimensions)
    return CaseResult(dimensions) if row is None else CaseResult(dimensions, row.status, row.checks)


def _check_score(
    run: Mapping[str, Any],
    plan: Plan,
    spec: EvalRunSpec,
    results: list[CaseResult],
    own: OwnScore | None,
    result: Verification,
) -> None:
    name = spec.aggregation or plan.aggregation
    rule = RULES.get(name)
    if rule is None:
        result.add(RUN, f"is scored by {name!r}, which this version does not know")
        return
    try:
        score = with_own(rule(plan.weights, results), own).to_json()
    except ValueError:
        return  # checks of the wrong width: there is a finding for that row
    for field_name in sorted(score.keys() | run["score"].keys()):
        found, kept = score.get(field_name), run["score"].get(field_name)
        if not canonical_equal(found, kept):
            result.add(RUN, f"score.{field_name} is {kept!r}; the results come to {found!r}")
