"""Carries a step's actions out, each as a task of its own, and keeps what the next step must know of them.

A create that was sent holds its place until the pod is seen or some time has passed; one whose name is taken is looked
at. What the API server or the store did not answer is asked again, here or by a later step; nothing is taken for done
that was not seen.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container, Coroutine
from typing import Any

from casewarden.api.attempt import BadMessageError, SealedDocument
from casewarden.controller.pod_store import run_uid_of
from casewarden.core.model import AttemptKey, DeletePod, InFlight, Sealed
from casewarden.ports.clock import Clock
from casewarden.ports.evidence import Evidence, EvidenceRefused, EvidenceUnavailable
from casewarden.ports.kube import (
    PODS,
    AlreadyExists,
    Conflict,
    Forbidden,
    KubeApi,
    KubeError,
    Manifest,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from casewarden.ports.metrics import Metric, Metrics

__all__ = ["Executor"]

log = logging.getLogger(__name__)

# Longer than the client goes on trying, its place in the queue included: a create on its way holds its slot.
_SENT_SECONDS = 3600.0
# A pod that was created is seen within milliseconds; after so long its event is lost and a full list is due.
_SEEN_SECONDS = 10.0
_TERMINATING_SECONDS = 2.0
_AGAIN_SECONDS = 5.0
_LOOKUP_CEILING = 10.0
_DELETE_TRIES = 5


class Executor:
    """The creates, deletes and look-ups of one run. ``wake`` asks for another step, ``poke`` for a list of all pods."""

    def __init__(
        self,
        api: KubeApi,
        evidence: Evidence,
        *,
        namespace: str,
        run_uid: str,
        clock: Clock,
        metrics: Metrics,
        wake: Callable[[], None],
        poke: Callable[[], None],
    ) -> None:
        self._api, self._evidence = api, evidence
        self._namespace, self._run_uid = namespace, run_uid
        self._clock, self._metrics, self._wake, self._poke = clock, metrics, wake, poke
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_flight: dict[AttemptKey, float] = {}
        self._refusals: list[tuple[str, str]] = []
        self._deleting: dict[str, float] = {}
        self.stopped: set[str] = set()
        self.seals: dict[AttemptKey, Sealed | None] = {}
        self.looking: set[AttemptKey] = set()
        self.store_away_since: float | None = None

    def in_flight(self, *seen: Container[AttemptKey]) -> tuple[InFlight, ...]:
        """Return the creates that hold a place; those that any of ``seen`` has no longer do."""
        now = self._clock.now()
        arrived = {key for key in self._in_flight if any(key in some for some in seen)}
        late = [key for key, until in self._in_flight.items() if until <= now and key not in arrived]
        for key in (*late, *arrived):
            del self._in_flight[key]
        if late:
            self._poke()
        return tuple(InFlight(key, until) for key, until in self._in_flight.items())

    def refusals(self) -> tuple[tuple[str, str], ...]:
        """Return what was refused since the last call."""
        taken, self._refusals = tuple(self._refusals), []
        return taken

    def settle(self, keys: frozenset[AttemptKey]) -> None:
        """Forget what was looked up for attempts that the ledger has."""
        for key in keys & self.seals.keys():
            del self.seals[key]

    def create(self, key: AttemptKey, manifest: Manifest) -> None:
        """Create the pod of an attempt."""
        self._in_flight[key] = self._clock.now() + _SENT_SECONDS
        self._start(self._create(key, manifest))

    def delete(self, action: DeletePod) -> None:
        """Delete a pod, unless that is under way or was done just now; by force even then."""
        now = self._clock.now()
        if self._deleting.get(action.uid, 0.0) > now and action.grace_seconds != 0:
            return
        log.info("run %s: deleting pod %s: %s", self._run_uid, action.name, action.why)
        self._deleting[action.uid] = now + _SENT_SECONDS
        self._start(self._delete(action))

    def look_up(self, key: AttemptKey) -> None:
        """Ask the store about an attempt's case until it answers."""
        if key not in self.looking:
            self.looking.add(key)
            self._start(self._look_up(key))

    async def close(self) -> None:
        """Stop everything that is under way; what was sent may still land."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("an action of run %s failed", self._run_uid, exc_info=error)
            self._metrics.add(Metric.RECONCILE_ERRORS, type="internal")
            self._wake()

    async def _create(self, key: AttemptKey, manifest: Manifest) -> None:
        hold = 0.0
        try:
            await self._api.create(PODS, self._namespace, manifest)
            hold = _SEEN_SECONDS
        except AlreadyExists:
            hold = await self._look_at(manifest["metadata"]["name"])
        except Forbidden as error:
            if error.is_quota:
                self._metrics.add(Metric.CREATES_THROTTLED, cause="quota")
            self._refuse("NamespaceTerminating" if error.is_terminating else error.reason, error.message)
        except (Unavailable, TooManyRequests) as error:
            log.warning("attempt %s: %s", key, error)
            hold = _AGAIN_SECONDS
        except KubeError as error:
            self._refuse("NotFound" if isinstance(error, NotFound) else error.reason, error.message)
        finally:
            self._in_flight[key] = self._clock.now() + hold
            self._wake()

    async def _look_at(self, name: str) -> float:
        """Return how long a taken name holds its place: it is ours and lives, or it is going, or it is another's."""
        try:
            pod = await self._api.get(PODS, self._namespace, name)
        except (Unavailable, TooManyRequests):
            return _AGAIN_SECONDS
        except NotFound:
            return 0.0
        if run_uid_of(pod) != self._run_uid:
            message = f"there is a pod {name} that is not of this run: delete it, or give the run another name"
            self._refuse("AlreadyExists", message)
            return 0.0
        self._poke()
        return _TERMINATING_SECONDS if pod["metadata"].get("deletionTimestamp") else _SEEN_SECONDS

    def _refuse(self, reason: str, message: str) -> None:
        self._refusals.append((reason or "Refused", message))

    async def _delete(self, action: DeletePod) -> None:
        try:
            for attempt in range(_DELETE_TRIES):
                try:
                    await self._api.delete(
                        PODS, self._namespace, action.name, uid=action.uid, grace_seconds=action.grace_seconds
                    )
                except (NotFound, Conflict):
                    # It is gone already, and its event may have been lost.
                    self._poke()
                except KubeError as error:
                    log.warning("deleting pod %s (%s): %s", action.name, action.why, error)
                    await self._clock.sleep(_AGAIN_SECONDS * (attempt + 1))
                    continue
                self.stopped.add(action.uid)
                return
        finally:
            # That it is deleted is seen in a moment; where it is not, it is asked for again.
            self._deleting[action.uid] = self._clock.now() + _SEEN_SECONDS
            self._wake()

    async def _look_up(self, key: AttemptKey) -> None:
        case, wait = key.case, 0.5
        try:
            while True:
                ask = self._evidence.sealed(self._run_uid, case.seed, case.case_id, case.repeat)
                answer = await self._answer(key, ask)
                if answer is not None:
                    self.seals[key] = answer[0]
                    self.store_away_since = None
                    return
                if self.store_away_since is None:
                    self.store_away_since = self._clock.now()
                self._wake()
                await self._clock.sleep(wait)
                wait = min(_LOOKUP_CEILING, wait * 2)
        finally:
            self.looking.discard(key)
            self._wake()

    async def _answer(self, key: AttemptKey, ask: Awaitable[dict[str, Any] | None]) -> tuple[Sealed | None] | None:
        """Return the store's answer in a tuple, or None where it cannot be had or read now."""
        try:
            document = await ask
            return (None if document is None else _sealed(document),)
        except (EvidenceUnavailable, EvidenceRefused, BadMessageError) as error:
            log.warning("looking up the seal of %s: %s", key, error)
            self._metrics.add(Metric.RECONCILE_ERRORS, type="relay")
            return None


def _sealed(document: dict[str, Any]) -> Sealed:
    try:
        found = SealedDocument.model_validate(document)
    except ValueError as error:
        raise BadMessageError(str(error)) from None
    return Sealed(
        attempt=found.attempt,
        pod_uid=found.pod_uid,
        digest=found.digest,
        status=found.status,
        checks=found.checks,
        reason=found.reason,
        error=found.error,
        seconds=found.seconds,
    )
