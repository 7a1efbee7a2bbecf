"""Recompute an audit from its lowest records: each control's run as ``verify_run`` does, and the judgement anew.

``audit.json`` names each run by its root digest, so the audit's own digest, when known from elsewhere, vouches for
every bundle of every control. Reads nothing by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import ValidationError

from casewarden.api.auditrun import AuditRunSpec
from casewarden.api.plan import Plan, PlanControl
from casewarden.core.audit import ControlRun, judge_audit, observations
from casewarden.core.audit_children import audit_seeds, child_name, chosen_controls
from casewarden.core.bundle_check import Decompress, strict_json
from casewarden.core.evidence import (
    AUDIT,
    META,
    MUTANTS,
    PLAN,
    RESULTS,
    json_file,
    meta_document,
    root_digest,
    row_of_result,
)
from casewarden.core.verification import Folder, Read, Verification
from casewarden.core.verify import Regrade, verify_run
from casewarden.core.verify_mutants import check_mutants
from casewarden_sdk.canonical import canonical_equal, sha256_bytes

__all__ = ["Folder", "verify_audit"]

_FIELDS: Final = frozenset({"v", "name", "namespace", "uid", "spec", "plan_sha256", "runs", "judgement"})
_OWN: Final = frozenset({AUDIT, META, PLAN, MUTANTS})


def verify_audit(
    folder: Folder,
    run_folder: Callable[[str], Folder],
    decompress: Decompress,
    *,
    status_digest: str | None = None,
    regrade: Regrade | None = None,
) -> Verification:
    """Verify an audit. ``run_folder`` gives the files of a run by its UID; the rest is as for ``verify_run``.

    ``score`` of what is returned is the judgement as ``audit.json`` has it.
    """
    read, paths = folder
    result = Verification(regraded=None if regrade is None else 0)
    audit = _read_audit(read, result, status_digest)
    if audit is None:
        return result
    for path in sorted(set(paths) - _OWN):
        result.add(path, "is no file of an audit")
    plan, spec = _plan(read, audit, result), _spec(audit, result)
    if plan is None or spec is None:
        return result
    if plan.seeds != audit_seeds(spec, result.uid):
        result.add(PLAN, f"has the seeds {plan.seeds!r}, the audit's are {audit_seeds(spec, result.uid)!r}")
    listed = {str(item.get("control")): item for item in audit["runs"] if isinstance(item, dict)}
    controls = chosen_controls(plan, spec.controls)
    wanted = [control.name for control in controls]
    if sorted(listed) != sorted(wanted) or len(audit["runs"]) != len(wanted):
        result.add(AUDIT, f"lists the runs of {sorted(listed)}, the audit's controls are {sorted(wanted)}")
        return result
    runs = [
        _control(control, listed[control.name], audit, spec, run_folder, decompress, regrade, result)
        for control in controls
    ]
    judgement = judge_audit(runs, strict=spec.strict)
    by_uid = {str(listed[name]["uid"]): run for name, run in zip(wanted, runs, strict=True)}
    check_mutants(read, audit, plan, spec, judgement, by_uid, run_folder, decompress, regrade, result)
    found = judgement.to_json()
    for name in sorted(found.keys() | audit["judgement"].keys()):
        if not canonical_equal(found.get(name), audit["judgement"].get(name)):
            kept = audit["judgement"].get(name)
            result.add(AUDIT, f"judgement.{name} is {kept!r}; the runs come to {found.get(name)!r}")
    return result


def _read_audit(read: Read, result: Verification, status_digest: str | None) -> dict[str, Any] | None:
    data = read(AUDIT)
    if data is None:
        result.add(AUDIT, "is missing; the audit is not over, or was given up")
        return None
    result.digest = root_digest(data)
    if status_digest is not None:
        result.authenticated = result.digest == status_digest
        if not result.authenticated:
            result.add(AUDIT, f"has the digest {result.digest}, the status of the audit {status_digest}")
    try:
        audit = strict_json(data)
    except ValueError as error:
        result.add(AUDIT, f"is no JSON: {error}")
        return None
    if (
        not isinstance(audit, dict)
        or json_file(audit) != data
        or audit.keys() - {"mutants_sha256"} != _FIELDS
        or audit["v"] != 1
    ):
        result.add(AUDIT, f"must be canonical JSON with v 1 and exactly the fields {', '.join(sorted(_FIELDS))}")
        return None
    kinds = {"spec": dict, "judgement": dict, "runs": list, "name": str, "namespace": str, "uid": str}
    wrong = [name for name, kind in kinds.items() if not isinstance(audit[name], kind)]
    if wrong:
        result.add(AUDIT, f"has {wrong[0]} of the wrong type")
        return None
    result.name, result.namespace, result.uid = audit["name"], audit["namespace"], audit["uid"]
    result.score = audit["judgement"]
    meta = json_file(meta_document(namespace=result.namespace, name=result.name, run_uid=result.uid))
    if read(META) != meta:
        result.add(META, "is missing, or of another audit than audit.json")
    return audit


def _plan(read: Read, audit: Mapping[str, Any], result: Verification) -> Plan | None:
    data = read(PLAN)
    if data is None:
        result.add(PLAN, "is missing")
        return None
    if sha256_bytes(data) != audit["plan_sha256"]:
        result.add(PLAN, f"has the digest {sha256_bytes(data)}, audit.json has {audit['plan_sha256']!r}")
    try:
        return Plan.model_validate(strict_json(data))
    except (ValidationError, ValueError) as error:
        result.add(PLAN, f"is no plan: {str(error).splitlines()[0]}")
        return None


def _spec(audit: Mapping[str, Any], result: Verification) -> AuditRunSpec | None:
    try:
        return AuditRunSpec.model_validate(audit["spec"])
    except ValidationError as error:
        result.add(AUDIT, f"spec is none: {str(error).splitlines()[0]}")
        return None


def _control(
    control: PlanControl,
    listed: Mapping[str, Any],
    audit: Mapping[str, Any],
    spec: AuditRunSpec,
    run_folder: Callable[[str], Folder],
    decompress: Decompress,
    regrade: Regrade | None,
    result: Verification,
) -> ControlRun:
    """Verify the run of a control, and return what it came to by its own rows."""
    uid, digest = str(listed.get("uid")), listed.get("digest")
    nothing = ControlRun.of(control, valid=False, resolved=False, score=None, cases=())
    if digest is None:
        return nothing
    read, paths = run_folder(uid)
    run = verify_run(read, paths, decompress, status_digest=str(digest), regrade=regrade)
    for finding in run.findings:
        result.add(f"{control.name}: {uid}/{finding.path}", finding.problem)
    result.rows, result.verdicts, result.bundles = (
        result.rows + run.rows,
        result.verdicts + run.verdicts,
        result.bundles + run.bundles,
    )
    result.unsealed += [f"{control.name}/{case}" for case in run.unsealed]
    if run.regraded is not None:
        result.regraded = (result.regraded or 0) + run.regraded
    if run.name != listed.get("name") or run.name != child_name(result.name, result.uid, control.name):
        result.add(AUDIT, f"names the run of {control.name} {listed.get('name')!r}, its evidence {run.name!r}")
    plan_data, results = read(PLAN), read(RESULTS)
    if plan_data is None or sha256_bytes(plan_data) != audit["plan_sha256"]:
        result.add(f"{control.name}: {uid}/{PLAN}", "is not the plan of the audit")
        return nothing
    asked = _asked(read)
    repeats = spec.reference_repeats if control.kind == "reference" else 1
    if asked != (control.name, repeats):
        result.add(AUDIT, f"the run of {control.name} was of the control {asked[0]!r}, {asked[1]} times, not {repeats}")
    if not run.score.get("valid"):
        return nothing
    try:
        rows = [row_of_result(strict_json(line)) for line in (results or b"").splitlines()]
        cases = observations(Plan.model_validate(strict_json(plan_data)), rows)
    except (KeyError, TypeError, ValueError):
        return nothing  # there is a finding for these rows
    return ControlRun.of(
        control,
        valid=True,
        resolved=run.score.get("resolved") is True,
        score=None if run.score.get("score") is None else str(run.score["score"]),
        cases=cases,
    )


def _asked(read: Read) -> tuple[Any, Any]:
    try:
        spec = strict_json(read("run.json") or b"null")["spec"]
        return spec["candidate"]["control"], spec.get("repeats", 1)
    except (ValueError, TypeError, KeyError):
        return None, None
