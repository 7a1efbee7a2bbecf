"""The pod that plans a run: the task image, twice at once, so that a plan that depends on chance shows itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from casewarden.api.names import plan_pod_name
from casewarden.api.podtemplate import PodTemplate
from casewarden.core import containers as c
from casewarden.core.network import Owner
from casewarden.core.verb_container import verb_container, verb_volumes
from casewarden_sdk.canonical import canonical

__all__ = ["PLAN", "PLAN_AGAIN", "PlanContext", "plan_pod"]

Manifest = dict[str, Any]
PLAN: Final = "plan"
PLAN_AGAIN: Final = "plan-again"


@dataclass(frozen=True, slots=True)
class PlanContext:
    """What a plan is asked for. ``pending_seconds`` and ``plan_seconds`` bound how long the pod may take in all."""

    owner: Owner
    namespace: str
    task_image: str
    task_command: tuple[str, ...]
    seeds: tuple[int, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    datasets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    families: tuple[str, ...] = ()
    template: PodTemplate = field(default_factory=PodTemplate)
    pending_seconds: float = 900.0
    plan_seconds: float = 120.0


def plan_pod(context: PlanContext, attempt: int) -> Manifest:
    """Return the manifest of the pod that plans, in its ``attempt``-th try."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": c.metadata(
            name=plan_pod_name(context.owner.name, context.owner.uid, attempt),
            namespace=context.namespace,
            owner=context.owner,
            role="plan",
            network="none",
            template=context.template,
            annotations={},
        ),
        "spec": {
            **c.template_spec(context.template),
            "activeDeadlineSeconds": int(context.pending_seconds + context.plan_seconds),
            "hostname": "plan",
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [_container(context, PLAN), _container(context, PLAN_AGAIN)],
            "volumes": verb_volumes(context, (PLAN, PLAN_AGAIN)),
        },
    }


def _container(context: PlanContext, name: str) -> Manifest:
    asked = {"seeds": list(context.seeds), "params": dict(context.params), "families": list(context.families)}
    return verb_container(context, "plan", name, env=c.env("CASEWARDEN_PLAN", canonical(asked)))
