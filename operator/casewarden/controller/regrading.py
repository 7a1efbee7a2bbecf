"""``spec.regradeOf``: a run that plays no case, but has the records of a finished one graded again.

Its rows are that run's, attempt by attempt, with new verdicts where there is a record; so everything behind it (score,
status, evidence) is a run's like any other's.
"""

from __future__ import annotations

from typing import Any

from casewarden.api.conditions import ConditionType, is_true
from casewarden.api.evalrun import EvalRun, EvalRunSpec
from casewarden.api.manifest import ManifestError, parse
from casewarden.api.plan import Plan
from casewarden.api.reasons import RunReason
from casewarden.controller.ended import Ended, guarded
from casewarden.controller.grading import Grading
from casewarden.controller.hands import Hands
from casewarden.controller.ledger import LedgerBroken, LedgerMoved
from casewarden.controller.services import Services
from casewarden.controller.state import Original, RunState
from casewarden.core.bundle_check import strict_json
from casewarden.core.evidence import PLAN, RESULTS, RUN, root_digest, row_of_result
from casewarden.core.model import FinishRun
from casewarden.core.regrade import differing_cases, differing_specs, regrade_status, regraded_rows
from casewarden.core.run_conditions import Why
from casewarden.core.scoring import OWN_RULES
from casewarden.ports.kube import EVAL_RUNS, Manifest, NotFound
from casewarden_sdk.canonical import sha256_bytes

__all__ = ["find_original", "fit_original", "regrade"]

_FIELD = "spec.regradeOf.evalRun"
_TRIES = 8


def _refused(message: str) -> Ended:
    return Ended.not_accepted(Why(RunReason.REGRADE_REFUSED, message))


async def find_original(services: Services, state: RunState, spec: EvalRunSpec, hands: Hands) -> Original | None:
    """Return the run that is graded again, held against its status; None for a run that plays its own cases."""
    if spec.regrade_of is None:
        return None
    name = spec.regrade_of.eval_run
    try:
        body = await services.api.get(EVAL_RUNS, state.run.namespace, name)
    except NotFound:
        raise _refused(f"{_FIELD}: {name}: there is no such run in the namespace") from None
    status: dict[str, Any] = body.get("status") or {}
    digest = (status.get("evidence") or {}).get("digest")
    if not is_true(status.get("conditions") or (), ConditionType.COMPLETE) or digest is None:
        raise _refused(f"{_FIELD}: {name}: it is not complete: apply this run when it is, or name another")
    if of := (body["spec"].get("regradeOf") or {}).get("evalRun"):
        raise _refused(f"{_FIELD}: {name}: it graded the records of {of} again and has none of its own: name {of}")
    if body["metadata"]["uid"] == state.run.uid:
        raise _refused(f"{_FIELD}: {name}: it is this very run")
    if differ := differing_specs(spec, _spec_of(body)):
        raise _refused(f"{_FIELD}: {name}: spec.{differ[0]} is another there, and its records are of that: copy it")
    uid = body["metadata"]["uid"]

    async def read(path: str) -> bytes:
        return await hands.evidence(lambda: services.evidence.get_file(uid, path)) or b""

    document, plan, results = await read(RUN), await read(PLAN), await read(RESULTS)
    if root_digest(document) != digest:
        raise Ended.failed(RunReason.GRADING_FAILED, f"the evidence of {name} is not what its status says")
    told = strict_json(document)
    if told["plan_sha256"] != sha256_bytes(plan) or told["results_sha256"] != sha256_bytes(results):
        raise Ended.failed(RunReason.GRADING_FAILED, f"the evidence of {name} does not hold together: it was changed")
    return Original(
        name=name,
        uid=uid,
        digest=digest,
        plan=Plan.model_validate(strict_json(plan)),
        rows=tuple(row_of_result(strict_json(line)) for line in results.splitlines()),
        status=status,
    )


def _spec_of(body: Manifest) -> EvalRunSpec:
    try:
        resource = parse({**body, "kind": EVAL_RUNS.name, "apiVersion": EVAL_RUNS.api_version})
    except ManifestError as error:
        raise _refused(f"{_FIELD}: {body['metadata']['name']}: it cannot be read: {error}") from None
    assert isinstance(resource, EvalRun)
    return resource.spec


def fit_original(state: RunState, original: Original) -> None:
    """Take over what the candidate was and worked under; ``Ended`` where the plan now is of other cases."""
    plan = state.plan
    assert plan is not None
    if plan.rule in OWN_RULES:
        why = f"it is scored by {plan.rule}, the task's own rule, for runs that were played"
        raise Ended.unplanned(RunReason.REGRADE_REFUSED, f"{_FIELD}: {original.name}: {why}: see casewarden regrade")
    if problem := differing_cases(original.plan, plan.plan):
        raise Ended.unplanned(RunReason.REGRADE_REFUSED, f"{_FIELD}: {original.name}: {problem}")
    prints = original.status.get("fingerprints") or {}
    state.candidate_fingerprint = prints.get("candidate")
    state.conditions_fingerprint = prints.get("conditions")
    state.images = dict(prints.get("images") or {})
    if state.task_image_id:
        state.images["grader"] = state.task_image_id


async def regrade(services: Services, state: RunState, hands: Hands) -> FinishRun:
    """Grade the records, unless the ledger has them, and count what came of it."""
    original, resolved, plan = state.original, state.resolved, state.plan
    assert original is not None
    assert resolved is not None
    assert plan is not None
    services.slots.after(state.run.uid, 0, 0)
    counted = hands.written.get("ledger") or {}
    for _ in range(_TRIES):
        try:
            await state.ledger.load()
            state.ledger.check(counted.get("rows", 0), counted.get("digest", ""))
            if len(state.ledger.rows) < len(original.rows):
                await state.ledger.write(await _grade(services, state, hands))
        except LedgerMoved:
            await services.clock.sleep(0.2)
            continue
        except LedgerBroken as error:
            raise Ended.failed(RunReason.LEDGER_LOST, str(error)) from None
        break
    else:
        raise Ended.failed(RunReason.LEDGER_LOST, "somebody else changes the run's ledger all the time")
    before = original.status
    state.regrade = regrade_status(
        name=original.name, digest=original.digest, plan=original.plan, score=before.get("score"),
        before=original.rows, after=state.ledger.rows,
    )  # fmt: skip
    changed = state.regrade["changed"]
    message = f"{state.regrade['graded']} records were graded again, {changed or 'no'} verdicts changed"
    return FinishRun(True, RunReason.COMPLETED, message)


async def _grade(services: Services, state: RunState, hands: Hands) -> Any:
    original, resolved, plan = state.original, state.resolved, state.plan
    assert original is not None
    assert resolved is not None
    assert plan is not None
    if not any(row.kind == "verdict" and row.digest is not None for row in original.rows):
        return original.rows
    grading = Grading(services, state, hands, resolved, [(original.uid, original.digest)])
    grades = await guarded(grading.grade())
    if grades.grader != plan.plan.fingerprints.grader:
        message = f"the grader {grades.grader} is not the one that was planned, {plan.plan.fingerprints.grader}"
        raise Ended.failed(RunReason.GRADING_FAILED, message)
    try:
        return regraded_rows(original.rows, original.uid, grades, plan.plan)
    except ValueError as error:
        raise Ended.failed(RunReason.GRADING_FAILED, str(error)) from None
