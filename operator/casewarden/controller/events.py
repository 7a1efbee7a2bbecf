"""Kubernetes Events for what a user must know, made of the difference between two statuses that were written."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from casewarden.api.conditions import ConditionType
from casewarden.api.reasons import RunReason
from casewarden.core.status import time_text
from casewarden.ports.clock import Clock
from casewarden.ports.kube import EVENTS, KubeApi, KubeError, Manifest

__all__ = ["Announcement", "Announcer", "announcements"]

log = logging.getLogger(__name__)
_MESSAGE_BYTES = 1000


class Announcement(NamedTuple):
    """An Event to be: ``type`` is ``Normal`` or ``Warning``."""

    type: str
    reason: str
    message: str


def announcements(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Announcement]:
    """Yield what changed for a user from one written status to the next."""
    before = {item["type"]: item for item in old.get("conditions", ())}
    for item in new.get("conditions", ()):
        was = before.get(item["type"])
        if was is not None and (was["status"], was["reason"]) == (item["status"], item["reason"]):
            continue
        yield from _announce(item, was)


def _announce(item: Mapping[str, Any], was: Mapping[str, Any] | None) -> Iterator[Announcement]:
    type_, status, reason, message = item["type"], item["status"], item["reason"], item["message"]
    if type_ == ConditionType.ACCEPTED and status == "False":
        yield Announcement("Warning", reason, message)
    elif type_ == ConditionType.PLANNED and status == "True":
        yield Announcement("Normal", reason, message)
    elif type_ == ConditionType.SUSPENDED and (status == "True" or (was is not None and was["status"] == "True")):
        yield Announcement("Normal", "Suspended" if status == "True" else "Resumed", message)
    elif type_ == ConditionType.FAILED and status == "True":
        yield Announcement("Warning", reason, message)
    elif type_ == ConditionType.COMPLETE and status == "True":
        yield Announcement("Normal", reason, message)
    elif type_ == ConditionType.FINISHED and status == "False" and reason not in _QUIET:
        yield Announcement("Warning", reason, message)


# Waits are told; where a run is in its ordinary course is not.
_QUIET = frozenset({RunReason.PLANNING, RunReason.RUNNING, RunReason.GRADING, RunReason.SUSPENDED})


class Announcer:
    """Posts Events of runs. One that cannot be posted is logged: nothing depends on it."""

    def __init__(self, api: KubeApi, clock: Clock, component: str = "casewarden-operator") -> None:
        self._api, self._clock, self._component = api, clock, component
        self._tasks: set[asyncio.Task[None]] = set()

    def post(self, run: Manifest, announcement: Announcement) -> None:
        """Post an Event about a run, without waiting for it."""
        task = asyncio.create_task(self._post(self._event(run, announcement)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self, seconds: float = 2.0) -> None:
        """Wait a little for what is under way, then give it up."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        for task in self._tasks:
            task.cancel()

    def _event(self, run: Manifest, announcement: Announcement) -> Manifest:
        meta = run["metadata"]
        now = time_text(self._clock.now())
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{meta['name'][:200]}.", "namespace": meta["namespace"]},
            "involvedObject": {
                "apiVersion": run.get("apiVersion", ""),
                "kind": run.get("kind", ""),
                "namespace": meta["namespace"],
                "name": meta["name"],
                "uid": meta["uid"],
                "resourceVersion": meta.get("resourceVersion", ""),
            },
            "type": announcement.type,
            "reason": announcement.reason,
            "message": announcement.message[:_MESSAGE_BYTES] or announcement.reason,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }

    async def _post(self, event: Manifest) -> None:
        try:
            await self._api.create(EVENTS, event["metadata"]["namespace"], event)
        except KubeError as error:
            log.info("the Event %s of %s: %s", event["reason"], event["involvedObject"]["name"], error)
