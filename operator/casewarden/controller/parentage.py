"""The runs of an audit: are they what they say, and the plan that they share."""

from __future__ import annotations

from casewarden.api.auditrun import AuditRun
from casewarden.api.conditions import ConditionType, is_true
from casewarden.api.evalrun import EvalRunSpec
from casewarden.api.manifest import ManifestError, parse
from casewarden.api.reasons import RunReason
from casewarden.controller.ended import Ended
from casewarden.controller.hands import Hands
from casewarden.controller.identity import RunIdentity
from casewarden.controller.plans import KeptPlan, load_plan
from casewarden.controller.services import Services
from casewarden.controller.state import RunState
from casewarden.core.audit_children import audit_of, child_manifest, is_genuine
from casewarden.core.run_conditions import Why
from casewarden.ports.kube import AUDIT_RUNS, Manifest, NotFound

__all__ = ["find_parent", "shared_plan"]

_LOOK_SECONDS = 2.0


async def find_parent(services: Services, state: RunState) -> RunIdentity | None:
    """Return the audit that a run belongs to, None for a run of its own; ``Ended`` for one that only says so."""
    claimed = audit_of(state.body)
    if claimed is None:
        return None
    name, uid = claimed
    try:
        body = await services.api.get(AUDIT_RUNS, state.run.namespace, name) if name else None
    except NotFound:
        body = None
    if body is None or body["metadata"]["uid"] != uid or not _is_child(state, body):
        raise Ended.not_accepted(
            Why(
                RunReason.NOT_AN_AUDITS_CHILD,
                f"metadata.ownerReferences: the run says that it belongs to an audit ({name or uid}), and only the "
                "operator makes the runs of an audit: remove owner and labels, or apply an AuditRun",
            )
        )
    return RunIdentity(state.run.namespace, name, uid, "AuditRun")


def _is_child(state: RunState, audit: Manifest) -> bool:
    try:
        resource = parse({**audit, "kind": AUDIT_RUNS.name, "apiVersion": AUDIT_RUNS.api_version})
    except ManifestError:
        return False
    control = ((state.body["spec"].get("candidate") or {}).get("control")) or ""
    if not isinstance(resource, AuditRun) or not control:
        return False
    run = state.run
    meta = audit["metadata"]
    # Only the reference is repeated; which control that is the plan says, so either number is as good for the name.
    return any(
        is_genuine(
            state.body,
            child_manifest(run.namespace, meta["name"], meta["uid"], resource.spec, control, repeats),
            _normal,
        )
        for repeats in {1, resource.spec.reference_repeats}
    )


def _normal(spec: object) -> dict[str, object]:
    return EvalRunSpec.model_validate(spec).to_json()


async def shared_plan(services: Services, state: RunState, audit: RunIdentity, hands: Hands) -> KeptPlan:
    """Return the plan of the audit, once it is there and the audit gives out places."""
    while True:
        try:
            body = await services.api.get(AUDIT_RUNS, audit.namespace, audit.name)
        except NotFound:
            raise Ended.failed(RunReason.CONTROL_FAILED, f"the audit {audit.name} is gone") from None
        status = body.get("status") or {}
        if is_true(status.get("conditions") or (), ConditionType.FINISHED):
            raise Ended.failed(RunReason.CONTROL_FAILED, f"the audit {audit.name} is over")
        digest = (status.get("plan") or {}).get("digest")
        kept = await load_plan(services.api, audit, digest) if digest else None
        if kept is not None and audit.uid in services.shares:
            image = ((status.get("fingerprints") or {}).get("images") or {}).get("task")
            state.task_image_id = image or state.task_image_id
            return kept
        await hands.rest(services.clock.now() + _LOOK_SECONDS)
