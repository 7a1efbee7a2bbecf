"""The local executor of ``core.step``: attempts are its pods, so retries, deadline and breaker are the operator's."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from casewarden.api.names import CANDIDATE, EVIDENCE, TASK, case_pod_name
from casewarden.core.evidence import EvidenceKey, run_key
from casewarden.core.model import (
    AttemptKey,
    CaseKey,
    ContainerRecord,
    CreatePod,
    DeletePod,
    FinishRun,
    LedgerRow,
    LookUpSeal,
    PlannedCase,
    PodCondition,
    PodRecord,
    Record,
    RunPolicy,
    RunView,
    Sealed,
)
from casewarden.core.step import step
from casewarden.ports.store import NotFound, Store
from casewarden_sdk.bundle import read_sealed

from .attempt import Ended, Ground, LocalAttempt

__all__ = ["Loop", "State"]

_SEALED_BYTES = 64 << 10
_LONGEST_WAIT = 30.0


@dataclass
class State:
    """What a run has come to so far: its ledger, the cases that run now, and logs of drivers that failed."""

    rows: list[LedgerRow] = field(default_factory=list)
    running: frozenset[CaseKey] = frozenset()
    logs: dict[AttemptKey, str] = field(default_factory=dict)


@dataclass
class _Pod:
    record: PodRecord
    attempt: LocalAttempt
    playing: asyncio.Task[Ended]


class Loop:
    """Plays all cases of a run and returns how it ended; ``on_change`` is called after every change of the state."""

    def __init__(
        self,
        name: str,
        ground: Ground,
        policy: RunPolicy,
        cases: Sequence[CaseKey],
        planned: Mapping[tuple[int, str], PlannedCase],
        on_change: Callable[[State], None],
    ) -> None:
        self.state = State()
        self._name = name
        self._ground = ground
        self._policy = policy
        self._cases = tuple(cases)
        self._planned = planned
        self._on_change = on_change
        self._pods: dict[str, _Pod] = {}
        self._seals: dict[AttemptKey, Sealed | None] = {}
        self._changed = asyncio.Event()

    async def run(self) -> FinishRun:
        """Step until the run is over. When this is cancelled every attempt is stopped first."""
        try:
            while True:
                now = time.time()
                self._changed.clear()
                result = step(self._view(), now)
                for action in result.actions:
                    if isinstance(action, FinishRun):
                        return action
                    await self._do(action)
                self.state.running = frozenset(key.case for key in self._alive())
                self._on_change(self.state)
                wake_at = now + _LONGEST_WAIT if result.wake_at is None else result.wake_at
                await self._wait(max(0.0, min(wake_at - time.time(), _LONGEST_WAIT)))
        finally:
            self.state.running = frozenset()
            await self._stop_all()

    def _view(self) -> RunView:
        return RunView(
            policy=self._policy,
            cases=self._cases,
            rows=tuple(self.state.rows),
            pods=tuple(pod.record for pod in self._pods.values()),
            seals=self._seals,
            planned=self._planned,
        )

    async def _do(self, action: object) -> None:
        match action:
            case CreatePod(key):
                self._create(key)
            case DeletePod():
                self._delete(action)
            case LookUpSeal(key):
                self._seals[key] = await _seal_of(self._ground.store, self._ground.run_uid, key.case)
                self._changed.set()
            case Record(rows):
                self._record(rows)

    def _create(self, key: AttemptKey) -> None:
        case = self._planned[key.case.seed, key.case.case_id]
        uid = str(uuid.uuid4())
        identity = (self._ground.run_uid, key.case.seed, key.case.case_id, key.case.repeat, key.attempt)
        name = case_pod_name(self._name, *identity)
        attempt = LocalAttempt(self._ground, key, case, name, uid)
        playing = asyncio.create_task(attempt.play())
        playing.add_done_callback(lambda _: self._ended(name))
        self._pods[name] = _Pod(_started(name, uid, self._ground.run_uid, key, time.time()), attempt, playing)

    def _ended(self, name: str) -> None:
        pod = self._pods.get(name)
        if pod is None or pod.playing.cancelled():
            return
        error = pod.playing.exception()
        ended = pod.playing.result() if error is None else Ended(1, "", f"{type(error).__name__}: {error}")
        pod.record = _over(pod.record, ended, time.time())
        if ended.exit_code not in (0, 143) and pod.record.attempt is not None:
            self.state.logs[pod.record.attempt] = ended.log
        self._changed.set()

    def _delete(self, action: DeletePod) -> None:
        pod = self._pods[action.name]
        if pod.playing.done():
            del self._pods[action.name]
        elif pod.record.deleted_at is None:
            pod.record = replace(pod.record, deleted_at=time.time())
            pod.attempt.stop()
        self._changed.set()

    def _record(self, rows: Sequence[LedgerRow]) -> None:
        self.state.rows.extend(rows)
        recorded = {row.key for row in rows}
        for name, pod in list(self._pods.items()):
            # A pod that was being deleted goes by itself once it has ended.
            if pod.record.attempt in recorded and pod.playing.done() and pod.record.deleted_at is not None:
                del self._pods[name]
        self._changed.set()

    def _alive(self) -> list[AttemptKey]:
        pods = self._pods.values()
        return [pod.record.attempt for pod in pods if pod.record.attempt is not None and not pod.playing.done()]

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _stop_all(self) -> None:
        playing = {pod.playing for pod in self._pods.values() if not pod.playing.done()}
        for pod in self._pods.values():
            pod.attempt.stop()
        if playing:
            await asyncio.wait(playing)


def _started(name: str, uid: str, run_uid: str, key: AttemptKey, now: float) -> PodRecord:
    containers = tuple(
        ContainerRecord(container, "running", started_at=now, ready=True) for container in (EVIDENCE, CANDIDATE, TASK)
    )
    return PodRecord(
        name=name,
        namespace="local",
        uid=uid,
        run_uid=run_uid,
        role="case",
        resource_version="0",
        attempt=key,
        phase="Running",
        node="local",
        created_at=now,
        started_at=now,
        conditions=(PodCondition("PodScheduled", "True"),),
        containers=containers,
    )


def _over(record: PodRecord, ended: Ended, now: float) -> PodRecord:
    def after(container: ContainerRecord) -> ContainerRecord:
        if container.name != TASK:
            return replace(container, state="terminated", exit_code=0, finished_at=now)
        why = "Completed" if ended.exit_code == 0 else "Error"
        message, code = ended.message, ended.exit_code
        return replace(
            container, state="terminated", reason=why, message=message, exit_code=code, finished_at=now, ready=False
        )

    phase = "Succeeded" if ended.exit_code == 0 else "Failed"
    return replace(record, phase=phase, containers=tuple(after(container) for container in record.containers))


async def _seal_of(store: Store, run_uid: str, case: CaseKey) -> Sealed | None:
    try:
        data = await store.get(run_key(run_uid, EvidenceKey(case, "sealed").path()), limit=_SEALED_BYTES)
    except NotFound:
        return None
    document = read_sealed(data)
    return Sealed(
        attempt=document["attempt"],
        pod_uid=document["pod_uid"],
        digest=document["digest"],
        status=document["status"],
        checks=document["checks"],
        reason=document.get("reason"),
        error=document.get("error"),
        seconds=document.get("seconds"),
    )
