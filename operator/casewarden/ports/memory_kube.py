"""The fake of ``ports.kube`` that ships: objects in a dictionary, versions, guards, owners; pods go when told to.

It has no faults and no network; ``fail`` makes the next calls raise what a test wants.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import uuid
from collections.abc import AsyncIterator
from typing import Any

from casewarden.ports.kube import (
    AlreadyExists,
    Conflict,
    Invalid,
    Kind,
    KubeError,
    Manifest,
    NotFound,
    Patch,
    WatchEvent,
)

__all__ = ["MemoryKube", "merge_patch"]

_DATA = frozenset({"data", "binaryData"})


class MemoryKube:
    """See ``KubeApi``. ``calls`` has every call as (verb, plural, name)."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Manifest] = {}
        self.calls: list[tuple[str, str, str]] = []
        self.logs: dict[tuple[str, str, str], bytes] = {}
        self._failures: list[KubeError] = []
        self._versions = itertools.count(1)
        self._events: list[tuple[int, str, WatchEvent]] = []
        self._changed = asyncio.Condition()

    def fail(self, *errors: KubeError) -> None:
        """Let the next calls raise these, one each."""
        self._failures.extend(errors)

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest:
        """See ``KubeApi``."""
        self._called("get", kind, name)
        return copy.deepcopy(self._find(kind, namespace, name))

    async def pages(
        self, kind: Kind, namespace: str | None, labels: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], str]]:
        """See ``KubeApi``; one page."""
        self._called("list", kind, "")
        wanted = dict(part.split("=", 1) for part in labels.split(",") if part)
        found = [
            copy.deepcopy(item)
            for (plural, place, _), item in self.objects.items()
            if plural == kind.plural
            and namespace in (None, place)
            and wanted.items() <= (item["metadata"].get("labels") or {}).items()
        ]
        yield found, str(next(self._versions))

    async def create(self, kind: Kind, namespace: str, body: Manifest) -> Manifest:
        """See ``KubeApi``."""
        name = body["metadata"].get("name") or f"{body['metadata']['generateName']}{uuid.uuid4().hex[:5]}"
        self._called("create", kind, name)
        if (kind.plural, namespace, name) in self.objects:
            raise AlreadyExists(409, "AlreadyExists", f'{kind.plural} "{name}" already exists')
        item = copy.deepcopy(body)
        item["metadata"] |= {"name": name, "namespace": namespace, "uid": str(uuid.uuid4()), "generation": 1}
        return await self._store(kind, "ADDED", item)

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str | None = None, grace_seconds: int | None = None
    ) -> None:
        """See ``KubeApi``; at once, and with it what only it owned."""
        self._called("delete", kind, name)
        item = self._find(kind, namespace, name)
        if uid not in (None, item["metadata"]["uid"]):
            raise Conflict(409, "Conflict", "the UID in the precondition does not match")
        await self._remove(kind.plural, item)

    async def patch(
        self, kind: Kind, namespace: str, name: str, body: Any, *, subresource: str = "", how: Patch = "merge"
    ) -> Manifest:
        """See ``KubeApi``; merge patches only, whatever ``how`` says."""
        self._called("patch", kind, name)
        old = self._find(kind, namespace, name)
        version = (body.get("metadata") or {}).get("resourceVersion")
        if version not in (None, old["metadata"]["resourceVersion"]):
            raise Conflict(409, "Conflict", "the object has been modified")
        if old.get("immutable") and _DATA & body.keys():
            raise Invalid(422, "Invalid", "field is immutable when `immutable` is set")
        patch = {key: value for key, value in body.items() if (key == "status") == (subresource == "status")}
        return await self._store(kind, "MODIFIED", merge_patch(old, patch))

    async def watch(
        self, kind: Kind, namespace: str | None, version: str, labels: str = "", seconds: int = 300
    ) -> AsyncIterator[WatchEvent]:
        """See ``KubeApi``; labels are not looked at."""
        seen = 0
        async with asyncio.timeout(seconds), self._changed:
            while True:
                for number, plural, event in self._events[seen:]:
                    if plural == kind.plural and number > int(version or 0):
                        yield event
                seen = len(self._events)
                await self._changed.wait()

    async def pod_log(self, namespace: str, name: str, container: str, limit_bytes: int) -> bytes:
        """See ``KubeApi``."""
        return self.logs[namespace, name, container][:limit_bytes]

    def _called(self, verb: str, kind: Kind, name: str) -> None:
        self.calls.append((verb, kind.plural, name))
        if self._failures:
            raise self._failures.pop(0)

    def _find(self, kind: Kind, namespace: str, name: str) -> Manifest:
        try:
            return self.objects[kind.plural, namespace, name]
        except KeyError:
            raise NotFound(404, "NotFound", f'{kind.plural} "{name}" not found') from None

    async def _store(self, kind: Kind, type_: str, item: Manifest) -> Manifest:
        number = next(self._versions)
        item = {**item, "metadata": {**item["metadata"], "resourceVersion": str(number)}}
        self.objects[kind.plural, item["metadata"]["namespace"], item["metadata"]["name"]] = item
        await self._tell(number, kind.plural, type_, item)
        return copy.deepcopy(item)

    async def _remove(self, plural: str, item: Manifest) -> None:
        meta = item["metadata"]
        if self.objects.pop((plural, meta["namespace"], meta["name"]), None) is None:
            return
        await self._tell(next(self._versions), plural, "DELETED", item)
        for (other, _, _), child in list(self.objects.items()):
            owners = child["metadata"].get("ownerReferences") or ()
            if owners and all(owner["uid"] == meta["uid"] for owner in owners):
                await self._remove(other, child)

    async def _tell(self, number: int, plural: str, type_: str, item: Manifest) -> None:
        async with self._changed:
            self._events.append((number, plural, WatchEvent(type_, copy.deepcopy(item))))
            self._changed.notify_all()


def merge_patch(target: Any, patch: Any) -> Any:
    """Apply a merge patch (RFC 7386) and return the result; what is given is left as it was."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result
