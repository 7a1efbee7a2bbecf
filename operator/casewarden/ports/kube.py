"""The Kubernetes API as the operator needs it, and the errors that it can answer with.

Objects are plain dictionaries, as the API server sends them. Every call is tried again by the adapter within a budget
where that is safe; what is raised here is final for that call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from casewarden.api.names import GROUP, VERSION

__all__ = [
    "AUDIT_RUNS", "CONFIG_MAPS", "EVAL_RUNS", "EVENTS", "NETWORK_POLICIES", "PODS", "SERVICE_ACCOUNTS",
    "AlreadyExists", "Conflict", "Forbidden", "Gone", "Invalid", "Kind", "KubeApi", "KubeError", "Manifest", "NotFound",
    "Patch", "TooManyRequests", "Unavailable", "WatchEvent", "list_all", "selector",
]  # fmt: skip

Manifest = dict[str, Any]
Patch = Literal["merge", "json", "strategic", "apply"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of objects: its API group and version (``v1``, ``apps/v1``) and its plural."""

    api_version: str
    plural: str
    name: str


PODS: Final = Kind("v1", "pods", "Pod")
CONFIG_MAPS: Final = Kind("v1", "configmaps", "ConfigMap")
EVENTS: Final = Kind("v1", "events", "Event")
SERVICE_ACCOUNTS: Final = Kind("v1", "serviceaccounts", "ServiceAccount")
NETWORK_POLICIES: Final = Kind("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy")
EVAL_RUNS: Final = Kind(f"{GROUP}/{VERSION}", "evalruns", "EvalRun")
AUDIT_RUNS: Final = Kind(f"{GROUP}/{VERSION}", "auditruns", "AuditRun")


class KubeError(Exception):
    """The API server's answer. ``reason`` and ``causes`` are its words; ``message`` is for people."""

    def __init__(self, status: int, reason: str, message: str, causes: tuple[str, ...] = ()) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message
        self.causes = causes


class NotFound(KubeError):
    """No such object, or no such namespace."""


class AlreadyExists(KubeError):
    """A create met an object of that name, perhaps one that is being deleted."""


class Conflict(KubeError):
    """The object is no longer the version, or not the UID, that the call was about."""


class Gone(KubeError):
    """The version to watch or to page from is too old; list again."""


class Invalid(KubeError):
    """The object breaks its schema or an admission rule (400, 422)."""


class Forbidden(KubeError):
    """Quota, LimitRange, Pod Security, RBAC or a namespace that is going; only message and cause tell them apart."""

    @property
    def is_terminating(self) -> bool:
        """Tell whether the namespace is being deleted."""
        return "NamespaceTerminating" in self.causes

    @property
    def is_quota(self) -> bool:
        """Tell whether a ResourceQuota is spent; that passes when something else ends."""
        return "exceeded quota" in self.message


class TooManyRequests(KubeError):
    """Still 429 after every retry."""


class Unavailable(KubeError):
    """5xx or no connection after every retry (``status`` 0): the same call may succeed later."""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a watch: ``ADDED``, ``MODIFIED``, ``DELETED`` or ``BOOKMARK``."""

    type: str
    object: Manifest


class KubeApi(Protocol):
    """What the controller asks of the cluster. ``labels`` is a label selector."""

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest:
        """Read an object from the newest state, never from a cache."""

    def pages(self, kind: Kind, namespace: str | None, labels: str = "") -> AsyncIterator[tuple[list[Manifest], str]]:
        """List in pages from the newest state, each with the version to watch from; ``Gone`` where it took too long."""

    async def create(self, kind: Kind, namespace: str, body: Manifest) -> Manifest:
        """Create; ``AlreadyExists`` where the name is taken, be it by an earlier try of this very call."""

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str | None = None, grace_seconds: int | None = None
    ) -> None:
        """Delete in the background; ``Conflict`` where the UID is another's."""

    async def patch(
        self, kind: Kind, namespace: str, name: str, body: Any, *, subresource: str = "", how: Patch = "merge"
    ) -> Manifest:
        """Patch. A ``metadata.resourceVersion`` in a merge patch guards it: ``Conflict`` where it has moved on."""

    def watch(
        self, kind: Kind, namespace: str | None, version: str, labels: str = "", seconds: int = 300
    ) -> AsyncIterator[WatchEvent]:
        """Follow changes after ``version`` until the server ends the stream; ``Gone`` where it is too old."""

    async def pod_log(self, namespace: str, name: str, container: str, limit_bytes: int) -> bytes:
        """Read a container's log, cut to ``limit_bytes``."""


async def list_all(api: KubeApi, kind: Kind, namespace: str | None, labels: str = "") -> list[Manifest]:
    """Read every page of a list into one."""
    found: list[Manifest] = []
    async for items, _ in api.pages(kind, namespace, labels):
        found.extend(items)
    return found


def selector(labels: Mapping[str, str]) -> str:
    """Write a label selector that asks for all of ``labels``."""
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
