"""All runs that this operator knows: a task for each that is going on, a timer for each that is to be deleted."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine, Iterator
from datetime import datetime
from typing import Any

from casewarden.controller.audit_scores import AuditScores
from casewarden.controller.audit_task import AuditTask
from casewarden.controller.run_task import RunTask, is_finished
from casewarden.controller.scores import Scores
from casewarden.controller.services import Services
from casewarden.core.audit_children import LABEL_AUDIT_UID
from casewarden.core.model import PodRecord
from casewarden.ports.kube import AUDIT_RUNS, EVAL_RUNS, PODS, Conflict, Kind, KubeError, Manifest, NotFound
from casewarden.ports.metrics import Metric

__all__ = ["Registry"]

log = logging.getLogger(__name__)
_AGAIN_SECONDS = 60.0
_PHASES = ("accepting", "planning", "running", "grading", "suspended", "waiting", "finishing")


class Registry:
    """Told of every event of the two kinds; quick, and never raises."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._runs: dict[str, RunTask] = {}
        self._audits: dict[str, AuditTask] = {}
        self._work: set[asyncio.Task[None]] = set()
        # Runs that are over and keep no pods.
        self._empty: set[str] = set()
        self._scores, self._audit_scores = Scores(), AuditScores()
        self._progress: dict[str, tuple[object, float]] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._runs)

    def wake(self, run_uid: str) -> None:
        """Wake the task of a run or an audit, if it has one."""
        if (task := self._runs.get(run_uid) or self._audits.get(run_uid)) is not None:
            task.wake()
        else:
            self._services.slots.pods_changed()
            self._clear(run_uid)

    def wake_all(self) -> None:
        """Wake every run: an audit has ended that some of them may be waiting for."""
        for task in self._runs.values():
            task.wake()

    def eval_run(self, type_: str | None, body: Manifest) -> None:
        """Take note of an EvalRun: ``type_`` is ``ADDED``, ``MODIFIED``, ``DELETED``, or None from a list."""
        uid = body["metadata"]["uid"]
        if (audit := self._audits.get((body["metadata"].get("labels") or {}).get(LABEL_AUDIT_UID, ""))) is not None:
            audit.child(type_, body)
        if type_ == "DELETED" or body["metadata"].get("deletionTimestamp"):
            self._services.timers.cancel(("ttl", uid))
            self._services.timers.cancel(("strays", uid))
            self._services.slots.leave(uid)
            self._empty.discard(uid)
            self._scores.gone(uid)
            if (task := self._runs.pop(uid, None)) is not None:
                log.info("run %s is deleted", task.state.run)
                self._start(task.close())
            return
        self._scores.saw(body)
        if is_finished(body):
            if (body.get("spec") or {}).get("keepPods", "Never") == "Never":
                self._empty.add(uid)
            self._plan_deletion(uid, body)
            self._clear(uid)
        if (task := self._runs.get(uid)) is not None:
            task.saw(body)
        elif not is_finished(body) and not self._is_closed:
            self._services.slots.join(body)
            self._runs[uid] = task = RunTask(self._services, body, self._ended)
            task.start()

    def audit_run(self, type_: str | None, body: Manifest) -> None:
        """Take note of an AuditRun, as ``eval_run`` does of an EvalRun."""
        uid = body["metadata"]["uid"]
        if type_ == "DELETED" or body["metadata"].get("deletionTimestamp"):
            self._services.timers.cancel(("ttl", uid))
            self._audit_scores.gone(uid)
            if (task := self._audits.pop(uid, None)) is not None:
                self._start(task.close())
            return
        self._audit_scores.saw(body)
        if is_finished(body):
            self._plan_deletion(uid, body, AUDIT_RUNS)
        if (task := self._audits.get(uid)) is not None:
            task.saw(body)
        elif not is_finished(body) and not self._is_closed:
            self._audits[uid] = task = AuditTask(self._services, body, self._audit_ended)
            task.start()

    def turns(self) -> Iterator[tuple[str, float]]:
        """Yield each run that is going on and when its task turned last."""
        for task in (*self._runs.values(), *self._audits.values()):
            yield str(task.state.run), task.last_turn

    def measure(self) -> None:
        """Set the gauges over all runs."""
        phases: Counter[str] = Counter()
        cases: Counter[str] = Counter()
        for task in self._runs.values():
            phases[_phase(task)] += 1
            counts = task.written.get("cases") or {}
            cases["pending"] += counts.get("pending", 0)
            cases["running"] += counts.get("running", 0)
            cases["done"] += counts.get("total", 0) - counts.get("pending", 0) - counts.get("running", 0)
        for phase in _PHASES:
            self._services.metrics.set(Metric.RUNS, phases[phase], phase=phase)
        for state in ("pending", "running", "done"):
            self._services.metrics.set(Metric.CASES, cases[state], state=state)
        allowed = sum(task.state.spec.parallelism for task in self._runs.values() if task.state.spec is not None)
        self._services.metrics.set(Metric.PARALLELISM, allowed, kind="allowed")
        used = sum(len(task.state.running) for task in self._runs.values())
        self._services.metrics.set(Metric.PARALLELISM, used, kind="used")
        self._services.metrics.set(Metric.OLDEST_PROGRESS, self._oldest_progress())
        self._scores.measure(self._services.metrics)
        self._audit_scores.measure(self._services.metrics)

    def _oldest_progress(self) -> float:
        """Return for how many seconds the slowest run has counted nothing new and come to no other phase."""
        now = self._services.clock.monotonic()
        seen = {}
        for uid, task in self._runs.items():
            phase = _phase(task)
            sign = (phase, len(task.state.ledger.rows), len(task.state.running))
            before = self._progress.get(uid)
            seen[uid] = before if before is not None and before[0] == sign and phase != "suspended" else (sign, now)
        self._progress = seen
        return max((now - since for _, since in seen.values()), default=0.0)

    async def close(self) -> None:
        """Stop every task; the runs go on when an operator sees them next."""
        self._is_closed = True
        await asyncio.gather(*(task.close() for task in (*self._audits.values(), *self._runs.values())))
        for work in self._work:
            work.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    def _ended(self, uid: str) -> None:
        self._runs.pop(uid, None)
        self._services.slots.leave(uid)
        self._clear(uid)

    def _audit_ended(self, uid: str) -> None:
        self._audits.pop(uid, None)

    def _plan_deletion(self, uid: str, body: Manifest, kind: Kind = EVAL_RUNS) -> None:
        seconds = (body.get("spec") or {}).get("ttlSecondsAfterFinished")
        over = (body.get("status") or {}).get("completionTime")
        if seconds is None or over is None:
            self._services.timers.cancel(("ttl", uid))
            return
        due = datetime.fromisoformat(over).timestamp() + seconds
        self._services.timers.set(("ttl", uid), due, lambda: self._start(self._delete(uid, body, kind)))

    async def _delete(self, uid: str, body: Manifest, kind: Kind) -> None:
        meta = body["metadata"]
        try:
            log.info("run %s/%s: its time after the end is over", meta["namespace"], meta["name"])
            await self._services.api.delete(kind, meta["namespace"], meta["name"], uid=uid)
        except (NotFound, Conflict):
            return
        except KubeError as error:
            log.warning("run %s/%s cannot be deleted: %s", meta["namespace"], meta["name"], error)
            again = self._services.clock.now() + _AGAIN_SECONDS
            self._services.timers.set(("ttl", uid), again, lambda: self._start(self._delete(uid, body, kind)))

    def _clear(self, uid: str) -> None:
        """Delete pods that came after their run's end: a create of an operator that is long dead may land late."""
        if uid not in self._empty or uid in self._runs or self._is_closed:
            return
        for pod in self._services.pods.pods(uid):
            if pod.deleted_at is None:
                self._start(self._delete_stray(uid, pod))

    async def _delete_stray(self, uid: str, pod: PodRecord) -> None:
        try:
            log.info("pod %s/%s: its run is over", pod.namespace, pod.name)
            await self._services.api.delete(PODS, pod.namespace, pod.name, uid=pod.uid)
        except (NotFound, Conflict):
            return
        except KubeError as error:
            log.warning("pod %s/%s cannot be deleted: %s", pod.namespace, pod.name, error)
            again = self._services.clock.now() + _AGAIN_SECONDS
            self._services.timers.set(("strays", uid), again, lambda: self._clear(uid))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)


def _phase(task: RunTask) -> str:
    if task.state.spec is not None and task.state.spec.suspend:
        return "suspended"
    return "waiting" if task.state.wait is not None else task.state.phase
