"""From a spec to cases that can start: accepted, seeds drawn, planned, files fixed, pods described.

Each part looks first at what an earlier operator has left, so that nothing is drawn, planned or copied twice.
"""

from __future__ import annotations

from casewarden.api.catalogue import Catalogue, CatalogueTask
from casewarden.api.evalrun import EvalRun, EvalRunSpec
from casewarden.api.manifest import ManifestError, parse
from casewarden.api.plan import Plan
from casewarden.api.reasons import RunReason
from casewarden.controller.baseline import find_baseline
from casewarden.controller.bootstrap import bootstrap
from casewarden.controller.closing import open_evidence
from casewarden.controller.ended import Ended, guarded
from casewarden.controller.gate import pass_gate
from casewarden.controller.hands import Hands
from casewarden.controller.parentage import find_parent, shared_plan
from casewarden.controller.planning import Planning
from casewarden.controller.plans import KeptPlan, load_plan
from casewarden.controller.pod_context import candidate_digest, conditions_digest, context_of
from casewarden.controller.regrading import find_original, fit_original
from casewarden.controller.services import Services
from casewarden.controller.state import RunState
from casewarden.controller.workspaces import NoWorkspace, Snapshot, take_snapshot
from casewarden.core.run_conditions import Why
from casewarden.core.seeds import ENTROPY_BYTES, draw_seeds
from casewarden.core.tally import plan_facts
from casewarden.core.validate import check_plan, check_spec, summary

__all__ = ["prepare", "task_of"]


async def prepare(services: Services, state: RunState, hands: Hands) -> None:
    """Fill ``state`` up to the context of its pods; ``Ended`` where the run cannot be run."""
    known = (hands.written.get("plan") or {}).get("digest")
    # A run that is planned has been accepted: what the catalogue says by now is for runs to come.
    spec = state.spec = _accepted(state, None if known else services.catalogue)
    state.audit = await find_parent(services, state)
    state.original = await find_original(services, state, spec, hands)
    state.seeds = _seeds(services, state, spec, hands)
    # Seeds are in the status before anything is made of them: drawn again they would be others.
    await hands.report()
    state.phase = "planning"
    run = state.run
    await guarded(bootstrap(services.api, run.namespace, run.owner, services.network))
    if spec.candidate.control is None and state.snapshot is None and state.original is None:
        state.snapshot = await _snapshot(services, state, spec, hands, None)
    planning = Planning(services, state, hands)
    if state.audit is not None:
        kept: KeptPlan | None = await shared_plan(services, state, state.audit, hands)
    else:
        kept = await load_plan(services.api, run, known) if known else None
    if kept is None:
        kept = await guarded(planning.plan(task_of(services, spec), known))
        if why := summary(check_plan(spec, state.seeds, kept.plan, services.catalogue)):
            raise Ended.unplanned(why.reason, why.message)
    state.plan, state.plan_text, state.wait = plan_facts(kept.plan, kept.sha256), kept.text, None
    state.resolved = kept.resolved
    await planning.clear()
    if state.original is not None:
        fit_original(state, state.original)
    else:
        if state.snapshot is None:
            state.snapshot = await _snapshot(services, state, spec, hands, kept.plan)
        await _describe(services, state, spec, kept, state.snapshot, hands)
    await find_baseline(services, state)
    await hands.evidence(lambda: open_evidence(services.evidence, state))
    if state.audit is None:
        await pass_gate(services, state, spec, hands)


def _accepted(state: RunState, catalogue: Catalogue | None) -> EvalRunSpec:
    try:
        resource = parse(state.body)
    except ManifestError as error:
        why = summary(error.problems) or Why(RunReason.INVALID_SPEC, str(error))
        raise Ended.not_accepted(why) from None
    if not isinstance(resource, EvalRun):
        raise Ended.not_accepted(Why(RunReason.INVALID_SPEC, "this is no EvalRun"))
    if why_not := summary(check_spec(resource.spec, catalogue, resource.metadata.namespace)):
        raise Ended.not_accepted(why_not)
    return resource.spec


def _seeds(services: Services, state: RunState, spec: EvalRunSpec, hands: Hands) -> tuple[int, ...]:
    if known := hands.written.get("seeds") or state.seeds:
        return tuple(known)
    if state.original is not None:
        return tuple(state.original.plan.seeds)
    if spec.seeds.values is not None:
        return tuple(spec.seeds.values)
    return tuple(draw_seeds(spec.seeds.random or 1, services.entropy(ENTROPY_BYTES)))


def task_of(services: Services, spec: EvalRunSpec) -> CatalogueTask:
    """Return the task of a spec that was accepted."""
    task = services.catalogue.task(spec.task.name, spec.task.image)
    if task is None:
        raise Ended.failed(RunReason.UNKNOWN_TASK, "the catalogue no longer has the run's task")
    return task


async def _snapshot(
    services: Services, state: RunState, spec: EvalRunSpec, hands: Hands, plan: Plan | None
) -> Snapshot:
    """Fix the candidate's files; a ConfigMap that is applied right after the run is waited for."""
    give_up, run = services.clock.now() + services.tuning.workspace_patience, state.run
    while True:
        try:
            found = await guarded(
                hands.evidence(lambda: take_snapshot(services.api, services.evidence, run, spec, plan))
            )
        except NoWorkspace as error:
            if services.clock.now() >= give_up:
                raise Ended.failed(RunReason.WORKSPACE_MISSING, error.why.message) from None
            state.wait = error.why
            await hands.rest(services.clock.now() + 1.0)
            continue
        state.wait = None
        return found


async def _describe(
    services: Services,
    state: RunState,
    spec: EvalRunSpec,
    kept: KeptPlan,
    snapshot: Snapshot,
    hands: Hands,
) -> None:
    """Fix what all pods of the run share."""
    known = (hands.written.get("fingerprints") or {}).get("images") or {}
    state.images = {**known, **state.images}
    if state.task_image_id:
        state.images["task"] = state.task_image_id
    address = await services.relay_address()
    state.context = context_of(state.run, spec, kept.plan, kept.resolved, services.catalogue, snapshot, address)
    state.candidate_fingerprint = candidate_digest(spec, kept.plan, snapshot)
    state.conditions_fingerprint = conditions_digest(state.context)
