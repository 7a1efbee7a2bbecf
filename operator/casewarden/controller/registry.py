"""All runs that this operator knows: a task for each that is going on, a timer for each that is to be deleted."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine, Iterator
from datetime import datetime
from typing import Any

from casewarden.api.conditions import ConditionType
from casewarden.controller.run_task import RunTask, is_finished
from casewarden.controller.scores import Scores
from casewarden.controller.services import Services
from casewarden.core.status import Why, refused_audit_status
from casewarden.core.validate import AUDIT_RUN_PROBLEM
from casewarden.ports.kube import AUDIT_RUNS, EVAL_RUNS, Conflict, KubeError, Manifest, NotFound
from casewarden.ports.metrics import Metric

__all__ = ["Registry"]

log = logging.getLogger(__name__)
_AGAIN_SECONDS = 60.0
_PHASES = ("accepting", "planning", "running", "suspended", "waiting", "finishing")


class Registry:
    """Told of every event of the two kinds; quick, and never raises."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._runs: dict[str, RunTask] = {}
        self._work: set[asyncio.Task[None]] = set()
        self._scores = Scores()
        self._progress: dict[str, tuple[object, float]] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._runs)

    def wake(self, run_uid: str) -> None:
        """Wake the task of a run, if it has one."""
        if (task := self._runs.get(run_uid)) is not None:
            task.wake()
        else:
            self._services.slots.pods_changed()

    def eval_run(self, type_: str | None, body: Manifest) -> None:
        """Take note of an EvalRun: ``type_`` is ``ADDED``, ``MODIFIED``, ``DELETED``, or None from a list."""
        uid = body["metadata"]["uid"]
        if type_ == "DELETED" or body["metadata"].get("deletionTimestamp"):
            self._services.timers.cancel(("ttl", uid))
            self._services.slots.leave(uid)
            self._scores.gone(uid)
            if (task := self._runs.pop(uid, None)) is not None:
                log.info("run %s is deleted", task.state.run)
                self._start(task.close())
            return
        self._scores.saw(body)
        if is_finished(body):
            self._plan_deletion(uid, body)
        if (task := self._runs.get(uid)) is not None:
            task.saw(body)
        elif not is_finished(body) and not self._is_closed:
            self._services.slots.join(body)
            self._runs[uid] = task = RunTask(self._services, body, self._ended)
            task.start()

    def audit_run(self, type_: str | None, body: Manifest) -> None:
        """Answer an AuditRun: this version does not run them."""
        conditions = (body.get("status") or {}).get("conditions") or ()
        answered = any(item["type"] == ConditionType.ACCEPTED for item in conditions)
        if type_ != "DELETED" and not answered and not body["metadata"].get("deletionTimestamp"):
            self._start(self._answer(body))

    def turns(self) -> Iterator[tuple[str, float]]:
        """Yield each run that is going on and when its task turned last."""
        for task in self._runs.values():
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
        await asyncio.gather(*(task.close() for task in list(self._runs.values())))
        for work in self._work:
            work.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    def _ended(self, uid: str) -> None:
        self._runs.pop(uid, None)
        self._services.slots.leave(uid)

    def _plan_deletion(self, uid: str, body: Manifest) -> None:
        seconds = (body.get("spec") or {}).get("ttlSecondsAfterFinished")
        over = (body.get("status") or {}).get("completionTime")
        if seconds is None or over is None:
            self._services.timers.cancel(("ttl", uid))
            return
        due = datetime.fromisoformat(over).timestamp() + seconds
        self._services.timers.set(("ttl", uid), due, lambda: self._start(self._delete(uid, body)))

    async def _delete(self, uid: str, body: Manifest) -> None:
        meta = body["metadata"]
        try:
            log.info("run %s/%s: its time after the end is over", meta["namespace"], meta["name"])
            await self._services.api.delete(EVAL_RUNS, meta["namespace"], meta["name"], uid=uid)
        except (NotFound, Conflict):
            return
        except KubeError as error:
            log.warning("run %s/%s cannot be deleted: %s", meta["namespace"], meta["name"], error)
            again = self._services.clock.now() + _AGAIN_SECONDS
            self._services.timers.set(("ttl", uid), again, lambda: self._start(self._delete(uid, body)))

    async def _answer(self, body: Manifest) -> None:
        meta = body["metadata"]
        why = Why(AUDIT_RUN_PROBLEM.reason, str(AUDIT_RUN_PROBLEM))
        status = refused_audit_status(why, meta.get("generation", 0), self._services.clock.now())
        patch = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "status": status}
        try:
            await self._services.api.patch(AUDIT_RUNS, meta["namespace"], meta["name"], patch, subresource="status")
        except KubeError as error:
            log.warning("AuditRun %s/%s cannot be answered: %s", meta["namespace"], meta["name"], error)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)


def _phase(task: RunTask) -> str:
    if task.state.spec is not None and task.state.spec.suspend:
        return "suspended"
    return "waiting" if task.state.wait is not None else task.state.phase
