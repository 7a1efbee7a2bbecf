"""Events of EvalRuns and AuditRuns: handed on, nothing else. kopf writes nothing to either."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from typing import Any

import kopf

from casewarden.api.names import GROUP, VERSION
from casewarden.controller.registry import Registry
from casewarden.ports.kube import AUDIT_RUNS, EVAL_RUNS

__all__ = ["register"]


def register(handlers: kopf.OperatorRegistry, registry: Registry, stop: Callable[[], Awaitable[None]]) -> None:
    """Register what takes the events of the two kinds, and what is to be stopped at the end."""

    @kopf.on.cleanup(registry=handlers)
    async def on_cleanup(**_: Any) -> None:
        # kopf waits some seconds for tasks that began after it, and those of the runs did.
        await stop()

    @kopf.on.event(GROUP, VERSION, EVAL_RUNS.plural, registry=handlers)
    async def on_eval_run(type: str | None, body: kopf.Body, **_: Any) -> None:
        registry.eval_run(type, copy.deepcopy(dict(body)))

    @kopf.on.event(GROUP, VERSION, AUDIT_RUNS.plural, registry=handlers)
    async def on_audit_run(type: str | None, body: kopf.Body, **_: Any) -> None:
        registry.audit_run(type, copy.deepcopy(dict(body)))
