"""What the containers of all of a run's pods have in common: security, resources, small volumes, owner and labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from casewarden.api.names import GROUP, LABEL_MANAGED_BY, LABEL_ROLE, LABEL_RUN_UID, MANAGER
from casewarden.api.podtemplate import PodTemplate, Resources
from casewarden.core.network import LABEL_NETWORK, Owner, Profile

__all__ = [
    "GRACE_SECONDS", "TASK_UID", "command", "env", "memory_volume", "metadata", "mount", "override", "resources",
    "restricted", "template_spec", "verbatim",
]  # fmt: skip

Manifest = dict[str, Any]
TASK_UID: Final = 65531
# From SIGTERM to SIGKILL; the sidecar has what the driver leaves of it, for the bundle of an unfinished case.
GRACE_SECONDS: Final = 30


def verbatim(text: str) -> str:
    """Write text so that the kubelet, which replaces ``$(NAME)`` in commands and environments, hands it on as it is."""
    return text.replace("$", "$$")


def command(argv: Iterable[str]) -> list[str]:
    """Return a command whose words nobody expands."""
    return [verbatim(word) for word in argv]


def env(name: str, value: str) -> Manifest:
    """Return an environment variable whose value nobody expands."""
    return {"name": name, "value": verbatim(value)}


def mount(name: str, path: str, *, read_only: bool = False) -> Manifest:
    """Return a volume mount."""
    return {"name": name, "mountPath": path, **({"readOnly": True} if read_only else {})}


def memory_volume(name: str, mebibytes: int) -> Manifest:
    """Return a volume in memory. A full one answers ENOSPC at once; one on disk gets its pod evicted later.

    What is in it counts as memory of the container that wrote it.
    """
    return {"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": f"{mebibytes}Mi"}}


def restricted(uid: int) -> Manifest:
    """Return the security context that the Pod Security level ``restricted`` asks for, and a read-only root."""
    return {
        "runAsUser": uid,
        "runAsGroup": uid,
        "runAsNonRoot": True,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def resources(
    *, cpu: str, memory: str, memory_limit: str | None = None, storage: str = "16Mi", storage_limit: str = "64Mi"
) -> Manifest:
    """Return requests and limits. Without ``memory_limit`` the request is the limit; processor time may burst."""
    return {
        "requests": {"cpu": cpu, "memory": memory, "ephemeral-storage": storage},
        "limits": {"cpu": "1", "memory": memory_limit or memory, "ephemeral-storage": storage_limit},
    }


_UNITS: Final = {
    "m": Decimal("0.001"),
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTP", start=1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTP", start=1)},
}


def _amount(quantity: str) -> Decimal:
    """Return what a quantity amounts to: ``250m``, ``1``, ``64Mi``."""
    number = quantity.rstrip("kKMGTPim")
    return Decimal(number) * _UNITS.get(quantity[len(number) :], Decimal(1))


def override(default: Manifest, wanted: Resources | None) -> Manifest:
    """Put what the run wants over the default. Memory, and whatever else cannot burst, is requested up to its limit."""
    if wanted is None:
        return default
    requests, limits = {**default["requests"], **wanted.requests}, {**default["limits"], **wanted.limits}
    for name in {*wanted.requests, *wanted.limits}:
        if name not in ("cpu", "ephemeral-storage"):
            requests[name] = limits[name] = wanted.limits.get(name) or wanted.requests[name]
        elif _amount(requests[name]) > _amount(limits[name]) and name in wanted.limits:
            requests[name] = limits[name]
        elif _amount(requests[name]) > _amount(limits[name]):
            limits[name] = requests[name]
    return {"requests": requests, "limits": limits}


def _free(items: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in items.items() if key.split("/")[0] != GROUP and key != LABEL_MANAGED_BY}


def metadata(
    *,
    name: str,
    namespace: str,
    owner: Owner,
    role: str,
    network: Profile,
    template: PodTemplate,
    annotations: Mapping[str, str],
) -> Manifest:
    """Return a pod's metadata. Nothing that the run says can shed or fake what is the operator's."""
    return {
        "name": name,
        "namespace": namespace,
        "labels": {
            **_free(template.labels),
            LABEL_MANAGED_BY: MANAGER,
            LABEL_RUN_UID: owner.uid,
            LABEL_ROLE: role,
            LABEL_NETWORK: network,
        },
        "annotations": {**_free(template.annotations), **annotations},
        "ownerReferences": [owner.reference(controller=True)],
    }


def _lost_node(key: str) -> Manifest:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}


def template_spec(template: PodTemplate) -> Manifest:
    """Return what of a pod's spec is the same in all of a run's pods, with what the run says of scheduling."""
    wanted = template.model_dump(mode="json", by_alias=True, exclude_none=True)
    chosen = ("nodeSelector", "affinity", "runtimeClassName", "imagePullSecrets", "priorityClassName")
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_SECONDS,
        **{name: wanted[name] for name in chosen if wanted.get(name)},
        "tolerations": [
            *wanted.get("tolerations", []),
            # Not five minutes: a case on a node that went away is better started elsewhere.
            _lost_node("node.kubernetes.io/not-ready"),
            _lost_node("node.kubernetes.io/unreachable"),
        ],
    }
