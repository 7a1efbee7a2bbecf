"""The pod that makes a score by the task's own rule: the task image, with what all cases came to on a volume."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from casewarden.api.names import aggregate_pod_name
from casewarden.core import containers as c
from casewarden.core.pod_context import PodContext
from casewarden.core.verb_container import verb_container, verb_volumes

__all__ = ["AGGREGATE", "aggregate_pod"]

Manifest = dict[str, Any]
AGGREGATE: Final = "aggregate"
_OUTPUTS: Final = "/casewarden/outputs"
_SECONDS: Final = 300


def aggregate_pod(context: PodContext, config_maps: Sequence[str], attempt: int) -> Manifest:
    """Return the manifest of the pod, in its ``attempt``-th try; ``config_maps`` hold the parts of its input."""
    sources = [
        {"configMap": {"name": name, "items": [{"key": "outputs", "path": f"{number:04d}"}]}}
        for number, name in enumerate(config_maps)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": c.metadata(
            name=aggregate_pod_name(context.owner.name, context.owner.uid, attempt),
            namespace=context.namespace,
            owner=context.owner,
            role=AGGREGATE,
            network="none",
            template=context.template,
            annotations={},
        ),
        "spec": {
            **c.template_spec(context.template),
            "activeDeadlineSeconds": int(context.pending_seconds + _SECONDS),
            "hostname": AGGREGATE,
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                verb_container(
                    context,
                    AGGREGATE,
                    AGGREGATE,
                    env=c.env("CASEWARDEN_OUTPUTS", _OUTPUTS),
                    mounts=[c.mount("outputs", _OUTPUTS, read_only=True)],
                    memory_limit="1Gi",
                )
            ],
            "volumes": [
                {"name": "outputs", "projected": {"sources": sources}},
                *verb_volumes(context, (AGGREGATE,)),
            ],
        },
    }
