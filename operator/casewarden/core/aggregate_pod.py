"""The pod that makes a score by the task's own rule: the task image, with what all cases came to on a volume."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from casewarden.api.names import aggregate_pod_name
from casewarden.core import containers as c
from casewarden.core import datasets as data
from casewarden.core.pod_context import PodContext

__all__ = ["AGGREGATE", "aggregate_pod"]

Manifest = dict[str, Any]
AGGREGATE: Final = "aggregate"
_OUTPUTS: Final = "/casewarden/outputs"
_TMP_MIB: Final = 64
_SECONDS: Final = 300


def aggregate_pod(context: PodContext, config_maps: Sequence[str], attempt: int) -> Manifest:
    """Return the manifest of the pod, in its ``attempt``-th try; ``config_maps`` hold the parts of its input."""
    command = (*context.task_command, AGGREGATE)
    run = {"command": c.command(command)} if context.task_command else {"args": [AGGREGATE]}
    template = context.template.task
    default = c.resources(cpu="50m", memory="64Mi", memory_limit="1Gi")
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
                {
                    "name": AGGREGATE,
                    "image": context.task_image,
                    "imagePullPolicy": "IfNotPresent",
                    **run,
                    "env": [c.env("CASEWARDEN_OUTPUTS", _OUTPUTS), *data.environment(context.datasets)],
                    "resources": c.override(default, template.resources if template else None),
                    "securityContext": c.restricted(c.TASK_UID),
                    "terminationMessagePolicy": "File",
                    "volumeMounts": [
                        c.mount("outputs", _OUTPUTS, read_only=True),
                        c.mount("aggregate-tmp", "/tmp"),  # noqa: S108
                        *data.mounts(context.datasets, context.params),
                    ],
                }
            ],
            "volumes": [
                {"name": "outputs", "projected": {"sources": sources}},
                c.memory_volume("aggregate-tmp", _TMP_MIB),
                *data.volumes(context.datasets, context.params),
            ],
        },
    }
