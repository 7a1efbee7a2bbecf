"""The network policies of a run's pods: nothing in, and out only to the relay.

They are the second fence: a policy starts to hold up to a second after its pod does. The first is what the shim lets a
candidate's programs do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from casewarden.api.names import API_VERSION, GROUP, LABEL_MANAGED_BY, MANAGER

__all__ = ["LABEL_NETWORK", "NetworkContext", "Owner", "Profile", "network_policy", "network_policy_name"]

Profile = Literal["relay", "none"]
LABEL_NETWORK: Final = f"{GROUP}/network"


@dataclass(frozen=True, slots=True)
class Owner:
    """A run, as what it owns refers to it."""

    name: str
    uid: str
    kind: Literal["EvalRun", "AuditRun"] = "EvalRun"

    def reference(self, *, controller: bool) -> dict[str, Any]:
        """Return the owner reference; it blocks nothing, so that no deletion ever waits for the operator."""
        reference: dict[str, Any] = {
            "apiVersion": API_VERSION,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
        }
        return {**reference, "controller": True, "blockOwnerDeletion": False} if controller else reference


@dataclass(frozen=True, slots=True)
class NetworkContext:
    """Where the relay's pods are. ``port`` is the pods' own; ``dns`` is whether the relay is found by name."""

    relay_namespace: str
    relay_labels: Mapping[str, str] = field(
        default_factory=lambda: {"app.kubernetes.io/name": MANAGER, "app.kubernetes.io/component": "relay"}
    )
    relay_port: int = 8080
    dns: bool = True


def network_policy_name(profile: Profile) -> str:
    """Return the name of the policy of a profile; there is one in each namespace that has runs."""
    return f"casewarden-case-{profile}"


def network_policy(
    profile: Profile, namespace: str, context: NetworkContext, owners: Iterable[Owner] = ()
) -> dict[str, Any]:
    """Return the policy of a profile: ``relay`` for case pods, ``none`` for pods that need no network at all.

    It is owned, not controlled, by each run that uses it and goes with the last of them.
    """
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": network_policy_name(profile),
            "namespace": namespace,
            "labels": {LABEL_MANAGED_BY: MANAGER},
            "ownerReferences": [owner.reference(controller=False) for owner in owners],
        },
        "spec": {
            "podSelector": {"matchLabels": {LABEL_MANAGED_BY: MANAGER, LABEL_NETWORK: profile}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [],
            "egress": _egress(context) if profile == "relay" else [],
        },
    }


def _egress(context: NetworkContext) -> list[dict[str, Any]]:
    relay = {
        "to": [
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": context.relay_namespace}},
                "podSelector": {"matchLabels": dict(context.relay_labels)},
            }
        ],
        "ports": [{"protocol": "TCP", "port": context.relay_port}],
    }
    names = {
        "to": [
            {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
                "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
            }
        ],
        "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}],
    }
    return [relay, names] if context.dns else [relay]
