"""Before the first case: the audit that vouches for the grader, looked for, warned of or waited for."""

from __future__ import annotations

import logging
from typing import Any

from casewarden.api.conditions import ConditionType
from casewarden.api.evalrun import EvalRunSpec
from casewarden.controller.events import Announcement
from casewarden.controller.hands import Hands
from casewarden.controller.services import Services
from casewarden.controller.state import RunState
from casewarden.core.gate import ENOUGH_REPEATS, Audited, Needed, judge_audits
from casewarden.core.run_conditions import Why
from casewarden.ports.kube import AUDIT_RUNS, KubeError, list_all

__all__ = ["pass_gate"]

log = logging.getLogger(__name__)
_LOOK_SECONDS = 30.0


async def pass_gate(services: Services, state: RunState, spec: EvalRunSpec, hands: Hands) -> None:
    """Return when the run may start its cases; ``state.audited`` says which audit vouches for them, if any does."""
    conditions: list[dict[str, Any]] = hands.written.get("conditions") or []
    before = next((item for item in conditions if item["type"] == ConditionType.AUDITED), dict[str, Any]())
    if before.get("status") == "True":
        # It has passed the gate: an audit that has aged or gone since is no reason to stop in the middle.
        why = Why(before["reason"], before["message"])
        state.audited = Audited("True", why, hands.written.get("floor") or {})
        return
    while True:
        try:
            state.audited = await _look(services, state, spec)
        except KubeError as error:
            if spec.audit.policy == "Require":
                raise
            log.warning("run %s: audits cannot be listed: %s", state.run, error)
            return
        why = state.audited.why
        if spec.audit.policy != "Require" or state.audited.status == "True":
            if spec.audit.policy == "Warn" and state.audited.status != "True" and before.get("reason") != why.reason:
                services.announcer.post(state.body, Announcement("Warning", why.reason, why.message))
            state.wait = None
            return
        state.wait = Why(why.reason, f"{why.message}; apply an AuditRun of the task, or set spec.audit.policy to Warn")
        await hands.rest(services.clock.now() + _LOOK_SECONDS)


async def _look(services: Services, state: RunState, spec: EvalRunSpec) -> Audited:
    if state.plan is None:
        raise RuntimeError("a run is held at the gate before it is planned")
    needed = Needed(
        fingerprints={**state.plan.fingerprints, "conditions": state.conditions_fingerprint or ""},
        controls=frozenset(control.name for control in state.plan.plan.controls),
        max_age_seconds=spec.audit.max_age_hours * 3600.0,
        repeats=min(spec.repeats, ENOUGH_REPEATS),
    )
    audits = await list_all(services.api, AUDIT_RUNS, state.run.namespace)
    return judge_audits(audits, needed, services.clock.now())
