"""One run, from its first sight to its last status: a task that is woken by whatever concerns it.

Every phase can be entered again: it looks at what is there before it does anything. So a restart of the operator, an
error of the API server and a quiet day take the same way through this file. What is decided is decided in the core.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, TypeVar

from casewarden.api.conditions import ConditionType, is_true
from casewarden.api.evalrun import EvalRun
from casewarden.api.manifest import parse
from casewarden.api.reasons import RunReason
from casewarden.controller.aggregating import Aggregating
from casewarden.controller.baseline import compare_with_baseline
from casewarden.controller.closing import read_usage, seal_run
from casewarden.controller.ended import Abandoned, Ended
from casewarden.controller.events import Announcement, announcements
from casewarden.controller.identity import RunIdentity
from casewarden.controller.ledger import Ledger
from casewarden.controller.playing import Playing
from casewarden.controller.preparing import prepare
from casewarden.controller.regrading import regrade
from casewarden.controller.services import Services
from casewarden.controller.state import RunState, active_since
from casewarden.controller.status_writer import Overtaken, RunGone, StatusWriter
from casewarden.core.intervals import warm_up
from casewarden.core.model import FinishRun, RunPolicy
from casewarden.core.policies.deadline import past_deadline
from casewarden.core.run_conditions import Why
from casewarden.core.scoring import OWN_RULES
from casewarden.ports.evidence import EvidenceRefused, EvidenceUnavailable
from casewarden.ports.kube import (
    EVAL_RUNS,
    PODS,
    Conflict,
    Forbidden,
    Invalid,
    Kind,
    KubeError,
    Manifest,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from casewarden.ports.metrics import Metric

__all__ = ["RunTask", "is_finished"]

log = logging.getLogger(__name__)
T = TypeVar("T")


def is_finished(body: Manifest) -> bool:
    """Tell whether a run is over."""
    return is_true((body.get("status") or {}).get("conditions") or (), ConditionType.FINISHED)


class RunTask:
    """Owns one run and is its phases' ``Hands``. ``ended`` is called with its UID when there is nothing more to do."""

    kind: ClassVar[Kind] = EVAL_RUNS

    def __init__(self, services: Services, body: Manifest, ended: Callable[[str], None]) -> None:
        self._services, self._ended = services, ended
        self._uid: str = body["metadata"]["uid"]
        body = {**body, "kind": self.kind.name}
        self.state = RunState(body, Ledger(services.api, RunIdentity.of(body)))
        self._take_over(body)
        self._writer = StatusWriter(
            services.api,
            body,
            clock=services.clock,
            budget=services.budget,
            metrics=services.metrics,
            interval=services.tuning.status_interval,
            observed=self._take_over,
            kind=self.kind,
        )
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._playing: Playing | None = None
        self._may_report = False
        self._looked_at = services.clock.monotonic()
        self._rng = random.Random()  # noqa: S311 - jitter only
        self.last_turn = services.clock.monotonic()

    def start(self) -> None:
        """Start, once."""
        self._task = asyncio.create_task(self._run(), name=f"run {self.state.run}")

    def saw(self, body: Manifest) -> None:
        """Take over a newer version of the resource."""
        if _version(body) > _version(self.state.body):
            self._writer.saw(body)
            self._take_over(body)
            self.wake()

    async def close(self) -> None:
        """Stop without a word: the run goes on when an operator sees it next."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _take_over(self, body: Manifest) -> None:
        self.state.body = {**body, "kind": self.kind.name, "apiVersion": self.kind.api_version}
        if self.state.spec is not None:
            resource = parse(self.state.body)
            if isinstance(resource, EvalRun):
                self.state.spec = resource.spec

    async def _run(self) -> None:
        failures = 0
        try:
            while True:
                try:
                    await self._live()
                    return
                except (RunGone, Abandoned) as error:
                    log.info("run %s is left alone: %s", self.state.run, error)
                    return
                except Overtaken:
                    log.warning("run %s: another operator is ahead of this one; reading anew", self.state.run)
                except Forbidden as error:
                    if error.is_terminating:
                        return
                    reason = RunReason.QUOTA_EXCEEDED if error.is_quota else RunReason.REFUSED
                    self.state.wait = Why(reason, error.message)
                    self._failed(error, "api")
                except (KubeError, EvidenceUnavailable, EvidenceRefused) as error:
                    self._failed(error, "api" if isinstance(error, KubeError) else "relay")
                    if isinstance(error, Invalid) and not failures:
                        self._confess(error)
                except Exception as error:
                    log.exception("run %s: the task failed and starts again", self.state.run)
                    self._failed(error, "internal")
                    if not failures:
                        self._confess(error)
                finally:
                    await self._stop_playing()
                failures += 1
                await self._back_off(failures)
        finally:
            self._services.pods.forget(self._uid)
            self._ended(self._uid)

    def _failed(self, error: Exception, kind: str) -> None:
        self._services.metrics.add(Metric.RECONCILE_ERRORS, type=kind)
        if kind != "internal":
            log.warning("run %s: %s; trying again", self.state.run, error)

    def _confess(self, error: Exception) -> None:
        """Tell the user of a failure that waiting will hardly heal: no condition of the run would show it."""
        message = f"the operator failed at this run and goes on trying: {type(error).__name__}: {error}"
        self._services.announcer.post(self.state.body, Announcement("Warning", "OperatorError", message))

    async def _back_off(self, failures: int) -> None:
        if self.state.wait is not None:
            with contextlib.suppress(KubeError, RunGone, Overtaken):
                await self._report()
        ceiling = min(self._services.tuning.retry_ceiling, 0.5 * (1 << min(failures, 10)))
        await self._nap(ceiling * self._rng.uniform(0.5, 1.0))

    async def _live(self) -> None:
        if is_finished(self.state.body):
            return
        await self._services.synced.wait()
        # The status of a run that was played tells more than this task knows before it has read the ledger.
        self._may_report, self.state.end = "plan" not in self.written, None
        try:
            await self._timed("prepare", prepare(self._services, self.state, self))
            end = await self._play()
        except Ended as ended:
            self.state.refused, self.state.plan_problem = ended.refused, ended.plan_problem
            end = ended.finish
        if end.reason == RunReason.NAMESPACE_TERMINATING:
            raise Abandoned(end.message)
        await self._timed("finish", self._finish(end))

    async def _play(self) -> FinishRun:
        if self.state.original is not None:
            self._may_report, self.state.phase = True, "grading"
            return await regrade(self._services, self.state, self)
        self._playing = Playing(self._services, self.state, self)
        # The pods were listed before; only now is the ledger read, so that no row is missing of a pod that is gone.
        await self._playing.load()
        self._may_report, self.state.phase = True, "running"
        await self.report()
        return await self._playing.play()

    async def _stop_playing(self) -> None:
        if self._playing is not None:
            await self._playing.close()
            self._playing = None

    async def _finish(self, end: FinishRun) -> None:
        """See the end through: an API server that is away now must not make the run decide anew later."""
        state, played = self.state, self._playing is not None and self._playing.is_over
        state.phase, state.wait, state.running = "finishing", None, frozenset()
        await asyncio.to_thread(warm_up)
        while True:
            try:
                await self._clear_pods(but_cases=played)
                if state.plan is not None and state.ledger.is_loaded and state.evidence_digest is None:
                    await self._read_usage()
                    end = await self._aggregated(end)
                    state.evidence_digest = await self._sealed()
                    await self._compare(end)
                state.end, self._may_report = end, True
                await self.report()
            except (Unavailable, TooManyRequests) as error:
                self._failed(error, "api")
            if is_finished(state.body):
                break
            await self._nap(1.0)
        result = str(end.reason)
        if end.complete:
            result = "complete" if self.written.get("valid") else "invalid"
        self._services.metrics.add(Metric.RUNS_FINISHED, result=result)

    async def _read_usage(self) -> None:
        try:
            await self.evidence(lambda: read_usage(self._services.evidence, self.state))
        except Ended:
            # What the relay cannot tell is absent, never 0.
            self._services.metrics.add(Metric.EVIDENCE_INCOMPLETE, part="usage")

    async def _aggregated(self, end: FinishRun) -> FinishRun:
        """Let the task's own rule make the score, where it has one; a run that gets none has failed."""
        if self.state.plan is None or self.state.plan.rule not in OWN_RULES:
            return end
        try:
            self.state.own = await Aggregating(self._services, self.state, self).aggregate()
        except Ended as ended:
            return ended.finish if end.complete else end
        return end

    async def _compare(self, end: FinishRun) -> None:
        """Compare with the baseline, of which the status says itself why there is no comparison."""
        if not end.complete:
            return
        with contextlib.suppress(Ended):
            await compare_with_baseline(self._services, self.state, self)

    async def _sealed(self) -> str | None:
        try:
            return await self.evidence(lambda: seal_run(self._services.evidence, self.state))
        except Ended as error:
            self._services.metrics.add(Metric.EVIDENCE_INCOMPLETE, part="run")
            lost = Announcement("Warning", "EvidenceIncomplete", error.finish.message)
            self._services.announcer.post(self.state.body, lost)
            return None

    async def _clear_pods(self, *, but_cases: bool) -> None:
        """Delete the plan's pods, and those of cases where the run ended without their being counted."""
        for pod in self._services.pods.pods(self._uid):
            if pod.deleted_at is not None or (pod.role == "case" and but_cases):
                continue
            with contextlib.suppress(NotFound, Conflict):
                await self._services.api.delete(PODS, pod.namespace, pod.name, uid=pod.uid)

    # The hands of the phases.

    @property
    def written(self) -> dict[str, Any]:
        """See ``Hands``."""
        return self._writer.written

    def policy(self) -> RunPolicy:
        """See ``Hands``."""
        return self.state.policy(active_since(self._writer.written))

    def wake(self) -> None:
        """See ``Hands``."""
        self._woken.set()

    async def report(self) -> None:
        """See ``Hands``."""
        await self._report(force=True)

    async def rest(self, until: float | None) -> None:
        """See ``Hands``; ``Ended`` when the time of a run that is not played yet is over."""
        due = await self._report()
        now = self._services.clock.now()
        moments = [until or now + self._services.tuning.heartbeat, now + self._services.tuning.heartbeat]
        if due is not None:
            moments.append(now + due)
        await self._nap(max(0.0, min(moments) - now))
        await self._look_after_itself()
        late = past_deadline(self.policy(), self._services.clock.now())
        if late is not None and self.state.phase in ("accepting", "planning", "grading"):
            raise Ended(late)

    async def evidence(self, ask: Callable[[], Awaitable[T]]) -> T:
        """See ``Hands``."""
        clock = self._services.clock
        give_up, wait = clock.now() + self._services.tuning.store_patience, 0.5
        while True:
            try:
                answer = await ask()
                self.state.wait = None
                return answer
            except (EvidenceUnavailable, EvidenceRefused) as error:
                self._failed(error, "relay")
                if clock.now() >= give_up:
                    raise Ended.failed(RunReason.STORE_UNAVAILABLE, str(error)) from None
                self.state.wait = Why(RunReason.STORE_UNAVAILABLE, str(error))
            await self.rest(clock.now() + wait)
            wait = min(10.0, wait * 2)

    async def _nap(self, seconds: float) -> None:
        """Wait until woken, at most so long."""
        self.last_turn = self._services.clock.monotonic()
        # Not wait_for, which in Python 3.11 swallows a cancellation that comes together with the event.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()
        self.last_turn = self._services.clock.monotonic()

    async def _look_after_itself(self) -> None:
        """See now and then whether the run is still there: the event of its deletion may have been lost."""
        now = self._services.clock.monotonic()
        if now - self._looked_at < self._services.tuning.alive_check:
            return
        self._looked_at = now
        run = self.state.run
        try:
            body = await self._services.api.get(self.kind, run.namespace, run.name)
        except NotFound:
            raise RunGone(str(run)) from None
        if body["metadata"]["uid"] != self._uid:
            raise RunGone(str(run))
        self.saw(body)

    async def _report(self, *, force: bool = False) -> float | None:
        """Write the status if it may be written; return the seconds after which there is more to write."""
        if not self._may_report:
            return None
        if not force and (wait := self._writer.wait()) > 0:
            return wait
        before = self._writer.written
        status = self._status(before)
        due = await self._writer.offer(status, force=force)
        if due is None:
            for announcement in announcements(before, status):
                self._services.announcer.post(self.state.body, announcement)
        return due

    def _status(self, before: dict[str, Any]) -> dict[str, Any]:
        return self.state.status(before, self._services.clock.now())

    async def _timed(self, handler: str, work: Awaitable[None]) -> None:
        started, result = self._services.clock.monotonic(), "error"
        try:
            await work
            result = "ok"
        finally:
            seconds = self._services.clock.monotonic() - started
            self._services.metrics.observe(Metric.RECONCILE_DURATION, seconds, handler=handler, result=result)


def _version(body: Manifest) -> int:
    """Return a resourceVersion as a number; the API server's are numbers."""
    text = str(body["metadata"].get("resourceVersion", ""))
    return int(text) if text.isdigit() else 0
