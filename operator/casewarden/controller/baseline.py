"""``spec.baseline``: at the end of a run, the run that it is compared with, by the evidence of both."""

from __future__ import annotations

from typing import Any

from casewarden.api.conditions import ConditionType, is_true
from casewarden.controller.hands import Hands
from casewarden.controller.services import Services
from casewarden.controller.state import RunState
from casewarden.core.baseline import baseline_status, compare, differing, no_comparison, observed_in
from casewarden.core.evidence import PLAN, RESULTS, RUN, root_digest
from casewarden.core.intervals import observe_case
from casewarden.core.statistics import Observed
from casewarden.core.tally import tally
from casewarden.ports.kube import EVAL_RUNS, Manifest, NotFound

__all__ = ["compare_with_baseline", "find_baseline"]


async def find_baseline(services: Services, state: RunState) -> Manifest | None:
    """Return the run of ``spec.baseline``; ``state.baseline`` says where there is none."""
    if state.spec is None or state.spec.baseline is None:
        return None
    name = state.spec.baseline.eval_run
    try:
        found = await services.api.get(EVAL_RUNS, state.run.namespace, name)
    except NotFound:
        found = None
    if found is None or found["metadata"]["uid"] == state.run.uid:
        why = "there is no EvalRun of that name in the namespace" if found is None else "it is this very run"
        state.baseline = no_comparison(name, f"{why}: see spec.baseline.evalRun, or use casewarden compare")
        return None
    return found


async def compare_with_baseline(services: Services, state: RunState, hands: Hands) -> None:
    """Fill ``state.baseline`` for a run that is over and valid; why there is no comparison is said there too."""
    found = await find_baseline(services, state)
    if found is None or state.spec is None or state.plan is None:
        return
    name, status = found["metadata"]["name"], found.get("status") or {}
    problem = _problem(state, status)
    if problem is None:
        try:
            state.baseline = await _compare(services, state, hands, found)
            return
        except (ValueError, KeyError, TypeError) as error:
            problem = f"its evidence cannot be read: {error}"
    state.baseline = no_comparison(name, problem)


def _problem(state: RunState, status: dict[str, Any]) -> str | None:
    if not is_true(status.get("conditions") or (), ConditionType.FINISHED):
        return "it is not over; casewarden compare does it when it is"
    if status.get("valid") is not True or not (status.get("evidence") or {}).get("digest"):
        return "it has no valid score"
    if state.plan is None:
        return "this run has no plan"
    prints = {**state.plan.fingerprints, "conditions": state.conditions_fingerprint}
    differ = differing(prints, status.get("fingerprints") or {})
    return f"it differs in {', '.join(differ)}, so that the scores cannot be compared" if differ else None


async def _compare(services: Services, state: RunState, hands: Hands, baseline: Manifest) -> dict[str, Any]:
    uid, status = baseline["metadata"]["uid"], baseline["status"]

    async def read(path: str) -> bytes:
        return await hands.evidence(lambda: services.evidence.get_file(uid, path)) or b""

    files = [await read(path) for path in (RUN, PLAN, RESULTS)]
    if root_digest(files[0]) != status["evidence"]["digest"]:
        raise ValueError("it is not what its status says; see casewarden verify")
    theirs, their_cases = observed_in(*files)
    ours = _own(state)
    cases = {(case.seed, case.case_id): case.sha256 for case in (state.plan.cases if state.plan else ())}
    return baseline_status(baseline["metadata"]["name"], status.get("score"), compare(ours, cases, theirs, their_cases))


def _own(state: RunState) -> list[Observed]:
    if state.plan is None or state.spec is None:
        return []
    counted = tally(state.plan, state.spec.repeats, state.ledger.rows, state.policy(None))
    found = (observe_case(key, case.dimensions, counted.settled[key].checks) for key, case in counted.cases)
    return [item for item in found if item is not None]
