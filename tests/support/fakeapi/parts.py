"""What requests and faults are to the fake API server, and the little algebra that it needs."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Object = dict[str, Any]


@dataclass
class Address:
    """Which objects a request is about."""

    plural: str
    namespace: str
    name: str
    sub: str


@dataclass
class Fault:
    """Answer the next ``times`` requests that match so."""

    matches: Callable[[str, str], bool]
    times: int
    status: int
    reason: str
    message: str
    headers: dict[str, str]
    causes: tuple[str, ...]
    after: bool


@dataclass(eq=False)
class Watcher:
    """One open watch."""

    address: Address
    wants: Callable[[Object], bool]
    queue: asyncio.Queue[tuple[str, Object] | None] = field(default_factory=asyncio.Queue)


class ApiError(Exception):
    """An answer that is a Status."""

    def __init__(self, status: int, reason: str, message: str, causes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.status, self.body = status, {
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "reason": reason,
            "message": message, "details": {"causes": [{"reason": cause} for cause in causes]},
        }  # fmt: skip


def stamp(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def selector(text: str) -> Callable[[Object], bool]:
    wanted = [part.split("=", 1) for part in text.split(",") if part]

    def wants(item: Object) -> bool:
        labels = item["metadata"].get("labels") or {}
        return all(labels.get(key) == value for key, value in wanted)

    return wants


def address_of(path: str) -> Address:
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if parts and parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    plural, name, sub = (*parts, "", "", "")[:3]
    return Address(plural, namespace, name, sub)


def discovery(path: str) -> Object | None:
    def resource(plural: str, kind: str) -> Object:
        verbs = ["get", "list", "watch", "patch", "create", "delete"]
        return {"name": plural, "kind": kind, "singularName": kind.lower(), "namespaced": True, "verbs": verbs}

    group = {"name": "casewarden.dev", "versions": [{"groupVersion": "casewarden.dev/v1alpha1", "version": "v1alpha1"}]}
    group["preferredVersion"] = group["versions"][0]  # type: ignore[index]
    answers: dict[str, Object] = {
        "/version": {"major": "1", "minor": "34"},
        "/api": {"versions": ["v1"]},
        "/apis": {"groups": [group]},
        "/api/v1": {
            "resources": [resource("pods", "Pod"), {**resource("namespaces", "Namespace"), "namespaced": False}]
        },
        "/apis/casewarden.dev/v1alpha1": {
            "resources": [resource("evalruns", "EvalRun"), resource("auditruns", "AuditRun")]
        },
    }
    return answers.get(path.rstrip("/"))
