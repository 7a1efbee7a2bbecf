"""A view of many objects that heals itself: paged list, then watch, and a full list again on any doubt.

Edges get lost (between list and watch, in a gap, at a proxy); levels do not. So whatever happens the next list puts it
right: names that are no longer in it are reported as gone, and one comes every few minutes even when all seems well.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Protocol, TypeVar

from casewarden.ports.clock import Clock
from casewarden.ports.kube import Gone, Kind, KubeApi, KubeError, Manifest, WatchEvent
from casewarden.ports.metrics import Metric, Metrics

__all__ = ["Informer", "Sink"]

log = logging.getLogger(__name__)
T_contra = TypeVar("T_contra", contravariant=True)


class Sink(Protocol):
    """Who is told what changed. Calls are quick and never raise."""

    def changed(self, manifest: Manifest) -> None:
        """An object is there, new or in a newer version."""

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """An object is no longer there; ``changed`` came before it with its last state, where the server sent one."""


class Informer:
    """One list-and-watch over the objects of a kind with given labels, in one namespace or in all.

    ``synced`` is set after the first whole list. ``last_turn`` (monotonic seconds) moves with everything that the
    informer does, failing included: when it stands still the informer is stuck, not the API server away.
    """

    def __init__(
        self,
        api: KubeApi,
        kind: Kind,
        namespace: str | None,
        labels: str,
        sink: Sink,
        *,
        clock: Clock,
        metrics: Metrics,
        relist_seconds: float = 300.0,
        retry_ceiling: float = 30.0,
        is_wanted: Callable[[Manifest], bool] = lambda manifest: True,
    ) -> None:
        self._api, self._kind, self._namespace, self._labels = api, kind, namespace, labels
        self._sink, self._clock, self._metrics = sink, clock, metrics
        self._relist, self._ceiling, self._is_wanted = relist_seconds, retry_ceiling, is_wanted
        self._known: dict[tuple[str, str], str] = {}
        self._timeout: asyncio.Timeout | None = None
        self._poked = False
        self._rng = random.Random()  # noqa: S311 - jitter only
        self.synced = asyncio.Event()
        self.last_turn = clock.monotonic()
        self.lists = 0

    def poke(self) -> None:
        """Ask for a full list now, because somebody misses an event."""
        self._poked = True
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time())

    async def run(self) -> None:
        """List and watch until cancelled."""
        failures = 0
        while True:
            try:
                version = await self._list()
                failures = 0
                await self._follow(version)
            except Gone:
                log.info("%s: the version to watch from is gone; listing again", self._kind.plural)
                failures += 1
            except KubeError as error:
                log.warning("%s: %s; listing again", self._kind.plural, error)
                failures += 1
            except Exception:
                log.exception("%s: the informer failed; listing again", self._kind.plural)
                self._metrics.add(Metric.RECONCILE_ERRORS, type="informer")
                failures += 1
            self._turn()
            if failures:
                spread = min(self._ceiling, 0.1 * (1 << min(failures - 1, 12)))
                await self._clock.sleep(spread * self._rng.uniform(0.5, 1.0))

    async def _list(self) -> str:
        self._poked = False
        before, seen, version = set(self._known), set(), ""
        async for items, version in self._api.pages(self._kind, self._namespace, self._labels):  # noqa: B007
            self._turn()
            for item in items:
                item.setdefault("kind", self._kind.name)
                seen.add(self._changed(item))
            # A page is some milliseconds of work; others must have their turn between two.
            await asyncio.sleep(0)
        for key in before - seen:
            self._gone(key)
        self.lists += 1
        self.synced.set()
        return version

    async def _follow(self, version: str) -> None:
        """Watch until a full list is due or somebody asks for one."""
        if self._poked:
            return
        try:
            async with asyncio.timeout(self._relist * self._rng.uniform(0.9, 1.1)) as self._timeout:
                while True:
                    async for event in self._api.watch(self._kind, self._namespace, version, self._labels):
                        version = self._apply(event) or version
                    self._turn()
                    await self._clock.sleep(0.1)
        except TimeoutError:
            if not (self._timeout and self._timeout.expired()):
                raise
        finally:
            self._timeout = None

    def _apply(self, event: WatchEvent) -> str:
        self._turn()
        if event.type != "BOOKMARK":
            key = self._changed(event.object)
            if event.type == "DELETED":
                self._gone(key)
        return str(event.object["metadata"].get("resourceVersion", ""))

    def _changed(self, manifest: Manifest) -> tuple[str, str]:
        meta = manifest["metadata"]
        key = (meta.get("namespace", ""), meta["name"])
        if not self._is_wanted(manifest):
            return key
        old = self._known.get(key)
        if old is not None and old != meta["uid"]:
            self._gone(key)
        self._known[key] = meta["uid"]
        self._sink.changed(manifest)
        return key

    def _gone(self, key: tuple[str, str]) -> None:
        uid = self._known.pop(key, None)
        if uid is not None:
            self._sink.gone(*key, uid)

    def _turn(self) -> None:
        self.last_turn = self._clock.monotonic()
        self._metrics.set(Metric.WATCH_LAST_EVENT, self._clock.now(), resource=self._kind.plural)
