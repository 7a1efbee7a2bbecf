"""The mutants of an audit's grader, judged anew from what each of them is said to change; and that, graded again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from casewarden.api.auditrun import AuditRunSpec
from casewarden.api.plan import Plan, PlanCase
from casewarden.core.audit import ControlRun, Judgement
from casewarden.core.bundle_check import Bundle, Decompress, strict_json
from casewarden.core.evidence import MUTANTS, RESULTS, row_of_result
from casewarden.core.grades import MutantGrades, Of
from casewarden.core.model import LedgerRow
from casewarden.core.mutants import judge_mutants, mutants_status, read_mutants, wanted_mutants
from casewarden.core.verification import Folder, Read, Regrade, Verification
from casewarden.core.verify_regrade import bundles_of
from casewarden_sdk.canonical import canonical_equal, sha256_bytes
from casewarden_sdk.checks import mutated
from casewarden_sdk.contract import Verdict, check_bits

__all__ = ["check_mutants"]


def check_mutants(
    read: Read,
    audit: Mapping[str, Any],
    plan: Plan,
    spec: AuditRunSpec,
    judgement: Judgement,
    runs: Mapping[str, ControlRun],
    run_folder: Callable[[str], Folder],
    decompress: Decompress,
    regrade: Regrade | None,
    result: Verification,
) -> None:
    """Note what of ``mutants.jsonl`` is not so; ``result.mutants`` is what the status has to say of it."""
    data, told = read(MUTANTS), audit.get("mutants_sha256")
    wanted = spec.grader_mutants and judgement.passed is True
    if not wanted:
        if data is not None or told is not None:
            result.add(MUTANTS, "is there, and the audit has no mutants: it did not pass, or was not asked for them")
        return
    if data is None:
        result.add(MUTANTS, "is missing, and the audit was asked for the mutants of its grader")
        return
    if sha256_bytes(data) != told:
        result.add(MUTANTS, f"has the digest {sha256_bytes(data)}, audit.json has {told!r}")
    try:
        lines = [strict_json(line) for line in data.splitlines()]
        mutants = read_mutants(lines)
        verdicts = judge_mutants(plan, runs, mutants, strict=spec.strict)
    except (KeyError, TypeError, ValueError) as error:
        result.add(MUTANTS, f"cannot be read: {type(error).__name__}: {error}")
        return
    found = [(item.check, item.mutation, item.grader) for item in mutants]
    if found != wanted_mutants(plan):
        result.add(
            MUTANTS, f"has {len(found)} mutants, which are not those of the pack's checks: {', '.join(plan.checks)}"
        )
    for line, verdict in zip(lines, verdicts, strict=True):
        again = verdict.to_json()
        for name in sorted(again.keys() | line.keys()):
            if not canonical_equal(again.get(name), line.get(name)):
                problem = f"{verdict.grades.name}: {name} is {line.get(name)!r}; it comes to {again.get(name)!r}"
                result.add(MUTANTS, problem)
    result.mutants = mutants_status(verdicts)
    if regrade is not None:
        _grade_again(mutants, plan, list(runs), run_folder, decompress, regrade, result)


def _grade_again(
    mutants: tuple[MutantGrades, ...],
    plan: Plan,
    uids: list[str],
    run_folder: Callable[[str], Folder],
    decompress: Decompress,
    regrade: Regrade,
    result: Verification,
) -> None:
    planned = {(case.seed, case.id): case for case in plan.cases}
    for uid in uids:
        read, _ = run_folder(uid)
        try:
            rows = [row_of_result(strict_json(line)) for line in (read(RESULTS) or b"").splitlines()]
        except (KeyError, TypeError, ValueError):
            continue  # there is a finding for these rows
        for row, bundle in bundles_of(read, rows, decompress):
            case = planned.get((row.key.case.seed, row.key.case.case_id))
            if case is not None:
                _compare(mutants, (uid, row.key.case), row, case, bundle, regrade, result)


def _compare(
    mutants: tuple[MutantGrades, ...],
    of: Of,
    row: LedgerRow,
    case: PlanCase,
    bundle: Bundle,
    regrade: Regrade,
    result: Verification,
) -> None:
    for mutant in mutants:
        try:
            with mutated(mutant.check, mutant.mutation):
                verdict = Verdict.from_json(regrade(case, bundle))
            comes = (verdict.status, check_bits(verdict.checks))
        except Exception:  # a mutated grader may do anything; it leaves the record unassessed then
            comes = ("environment_error", "-" * len(case.dimensions))
        kept = mutant.changes.get(of, (row.status, row.checks))
        if comes != kept:
            result.add(MUTANTS, f"{mutant.name}: {of[0]}/{of[1]} graded again is {comes!r}, the file has {kept!r}")
