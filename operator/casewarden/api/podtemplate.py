"""What a user may say about the pods of a run; everything else of them is Casewarden's."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from .common import LABEL_KEY, ApiModel, FreeObject, Keys, Label, ObjectName, Quantity
from .names import GROUP, LABEL_MANAGED_BY

__all__ = ["ContainerTemplate", "LocalReference", "PodTemplate", "Resources", "Toleration"]

_LABEL_KEYS = Keys(LABEL_KEY)
_FREE_KEYS = Keys(
    LABEL_KEY,
    (LABEL_MANAGED_BY, f"{GROUP}/"),
    f"{LABEL_MANAGED_BY} and the prefix {GROUP}/ are the operator's: use a prefix of your own",
)
_Quantities = Annotated[dict[str, Quantity], Field(max_length=16)]


class LocalReference(ApiModel):
    """The name of an object of the run's namespace."""

    name: ObjectName = Field(description="Name of the object.")


class Toleration(ApiModel):
    """A taint that the run's pods tolerate."""

    key: str | None = Field(default=None, max_length=317, description="Key of the taint. Default: every key.")
    operator: Literal["Exists", "Equal"] | None = Field(
        default=None,
        description="Whether the taint must have the value too (Equal, the default) or only the key (Exists).",
    )
    value: str | None = Field(default=None, max_length=63, description="Value of the taint.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="Effect of the taint. Default: every effect."
    )
    toleration_seconds: Annotated[int, Field(ge=0, le=86400)] | None = Field(
        default=None, description="How many seconds a NoExecute taint is tolerated. Default: for ever."
    )


class Resources(ApiModel):
    """Requests and limits of a container."""

    requests: _Quantities = Field(
        default_factory=dict, description="What the container is sure to get, by resource: cpu, memory, nvidia.com/gpu."
    )
    limits: _Quantities = Field(
        default_factory=dict,
        description="What the container may use at most, by resource. Memory requests are set to the limit, so that "
        "no candidate can bring a node under pressure.",
    )


class ContainerTemplate(ApiModel):
    """What may be changed of one of the pod's containers."""

    resources: Resources | None = Field(
        default=None,
        description="Resources of the container. Default: the pack's. They are part of the run's conditions.",
    )


class PodTemplate(ApiModel):
    """Where and how the run's pods are scheduled."""

    node_selector: Annotated[dict[str, Label], Field(max_length=64), _LABEL_KEYS] = Field(
        default_factory=dict, description="Labels that a node must have to run the run's pods."
    )
    tolerations: list[Toleration] = Field(
        default_factory=list, max_length=16, description="Taints that the run's pods tolerate."
    )
    affinity: FreeObject | None = Field(
        default=None, description="Affinity of the run's pods, as in any pod (`kubectl explain pod.spec.affinity`)."
    )
    runtime_class_name: ObjectName | None = Field(
        default=None, description="RuntimeClass of the run's pods, such as gvisor or kata."
    )
    image_pull_secrets: list[LocalReference] = Field(
        default_factory=list, max_length=8, description="Secrets of the run's namespace with which images are pulled."
    )
    priority_class_name: ObjectName | None = Field(default=None, description="PriorityClass of the run's pods.")
    labels: Annotated[dict[str, Label], Field(max_length=64), _FREE_KEYS] = Field(
        default_factory=dict, description="Labels that the run's pods get beside the operator's."
    )
    annotations: Annotated[dict[str, Annotated[str, Field(max_length=1024)]], Field(max_length=64), _FREE_KEYS] = Field(
        default_factory=dict, description="Annotations that the run's pods get beside the operator's."
    )
    candidate: ContainerTemplate | None = Field(default=None, description="Changes of the candidate's container.")
    task: ContainerTemplate | None = Field(default=None, description="Changes of the task's container.")
