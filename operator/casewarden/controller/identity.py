"""Whose objects these are: names, labels and owner of what is made for a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from casewarden.api.names import LABEL_MANAGED_BY, LABEL_ROLE, LABEL_RUN_UID, MANAGER, config_map_name
from casewarden.core.network import Owner
from casewarden.ports.kube import Manifest

__all__ = ["RunIdentity"]


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """A run or an audit by namespace, name and UID; only the UID tells it from an earlier one of its name."""

    namespace: str
    name: str
    uid: str
    kind: Literal["EvalRun", "AuditRun"] = "EvalRun"

    @classmethod
    def of(cls, body: Manifest) -> RunIdentity:
        """Read it from a resource."""
        meta = body["metadata"]
        kind: Literal["EvalRun", "AuditRun"] = "AuditRun" if body.get("kind") == "AuditRun" else "EvalRun"
        return cls(meta["namespace"], meta["name"], meta["uid"], kind)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def owner(self) -> Owner:
        """The run as what it owns refers to it."""
        return Owner(self.name, self.uid, self.kind)

    def labels(self, role: str) -> dict[str, str]:
        """Return the labels of every object made for a run."""
        return {LABEL_MANAGED_BY: MANAGER, LABEL_RUN_UID: self.uid, LABEL_ROLE: role}

    def config_map(self, what: str, role: str, **content: Any) -> Manifest:
        """Return a ConfigMap of the run's."""
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": config_map_name(self.name, self.uid, what),
                "namespace": self.namespace,
                "labels": self.labels(role),
                "ownerReferences": [self.owner.reference(controller=True)],
            },
            **content,
        }
