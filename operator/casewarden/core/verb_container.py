"""The container in which a task image answers one of its verbs outside a case: plan, grade, aggregate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from casewarden.api.podtemplate import PodTemplate
from casewarden.core import containers as c
from casewarden.core import datasets as data

__all__ = ["VerbContext", "verb_container", "verb_volumes"]

Manifest = dict[str, Any]
_TMP_MIB: Final = 64


class VerbContext(Protocol):
    """What of a pod's context is the task's."""

    @property
    def task_image(self) -> str:
        """The image that answers."""

    @property
    def task_command(self) -> tuple[str, ...]:
        """What is run before the verb; the image's own entry point where it is empty."""

    @property
    def params(self) -> Mapping[str, Any]:
        """The task's parameters, which may name data sets."""

    @property
    def datasets(self) -> Mapping[str, Mapping[str, Any]]:
        """The data sets that there are, by name."""

    @property
    def template(self) -> PodTemplate:
        """The run's pod template."""


def verb_container(
    context: VerbContext,
    verb: str,
    name: str,
    *,
    env: Manifest,
    mounts: Sequence[Manifest] = (),
    memory_limit: str = "512Mi",
) -> Manifest:
    """Return the container ``name`` that answers ``verb``; ``env`` and ``mounts`` are what it is asked by."""
    run = {"command": c.command((*context.task_command, verb))} if context.task_command else {"args": [verb]}
    template = context.template.task
    default = c.resources(cpu="50m", memory="64Mi", memory_limit=memory_limit)
    return {
        "name": name,
        "image": context.task_image,
        "imagePullPolicy": "IfNotPresent",
        **run,
        "env": [env, *data.environment(context.datasets)],
        "resources": c.override(default, template.resources if template else None),
        "securityContext": c.restricted(c.TASK_UID),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            *mounts,
            c.mount(f"{name}-tmp", "/tmp"),  # noqa: S108
            *data.mounts(context.datasets, context.params),
        ],
    }


def verb_volumes(context: VerbContext, names: Sequence[str]) -> list[Manifest]:
    """Return the volumes that the containers ``names`` of a pod mount of themselves."""
    return [
        *(c.memory_volume(f"{name}-tmp", _TMP_MIB) for name in names),
        *data.volumes(context.datasets, context.params),
    ]
