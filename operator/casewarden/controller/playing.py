"""Plays the cases of a planned run: shows the step all there is, does what it says, until it says that it is over."""

from __future__ import annotations

import logging
from dataclasses import replace

from casewarden.api.names import EVIDENCE, TASK
from casewarden.api.reasons import RunReason
from casewarden.controller.ended import Ended
from casewarden.controller.executor import Executor
from casewarden.controller.hands import Hands
from casewarden.controller.ledger import LedgerBroken, LedgerMoved
from casewarden.controller.rebuild import Counted, rebuild
from casewarden.controller.services import Services
from casewarden.controller.state import RunState
from casewarden.core import facts
from casewarden.core.model import (
    CreatePod,
    DeletePod,
    FinishRun,
    LedgerRow,
    LookUpSeal,
    PodRecord,
    Record,
    RunView,
    SetWait,
    StepResult,
)
from casewarden.core.pods import case_pod
from casewarden.core.run_conditions import Why
from casewarden.core.situation import Situation
from casewarden.core.standings import Standings
from casewarden.core.step import step
from casewarden.ports.kube import KubeError
from casewarden.ports.metrics import Metric

__all__ = ["Playing"]

log = logging.getLogger(__name__)
_LONGEST_PAUSE = 0.25
_MOVED_SECONDS = 0.2
# Not the recorder's, which an upgrade of the release may change; each bundle says which one wrote it.
_IMAGES = ("candidate", "task")
_DEFAULT_KIND = "default"


class Playing:
    """One stretch of a run's play, from a load of its ledger on; the run task makes another after an error."""

    def __init__(self, services: Services, state: RunState, hands: Hands) -> None:
        self._services, self._state, self._hands = services, state, hands
        self._executor = Executor(
            services.api,
            services.evidence,
            namespace=state.run.namespace,
            run_uid=state.run.uid,
            clock=services.clock,
            metrics=services.metrics,
            wake=hands.wake,
            poke=services.poke,
        )
        self._cases, self._planned = state.cases, state.planned
        self._blocked_until = 0.0
        self._failing: FinishRun | None = None
        self._counted: Standings | None = None
        self._images_of: set[str] = set()
        self.is_over = False
        audit = state.audit
        self._share = services.shares.get(audit.uid) if audit is not None else None

    async def close(self) -> None:
        """Stop what is under way."""
        await self._executor.close()
        if self._share is not None and self.is_over:
            self._share.release(self._state.run.uid)
        self._services.slots.pause(self._state.run.uid)

    async def load(self) -> None:
        """Read the ledger and hold it against the status; make it again from the store, or end the run."""
        ledger, counted = self._state.ledger, self._hands.written.get("ledger") or {}
        try:
            await ledger.load()
            ledger.check(counted.get("rows", 0), counted.get("digest", ""))
            return
        except LedgerBroken as error:
            log.warning("run %s: %s", self._state.run, error)
            why = str(error)
        lines = await self._hands.evidence(lambda: self._services.evidence.index(self._state.run.uid))
        alive = {pod.attempt for pod in self._pods() if pod.attempt is not None}
        bits = {case: len(self._planned[case.seed, case.case_id].dimensions) for case in self._cases}
        count = Counted(
            counted.get("rows", 0),
            counted.get("verdicts", 0),
            counted.get("environment", 0),
            counted.get("interruptions", 0),
        )
        rows = rebuild(ledger.rows, lines, count, alive, bits, self._services.clock.now())
        if rows is None:
            raise Ended.failed(RunReason.LEDGER_LOST, f"{why}, and the store does not tell what they were")
        await ledger.mend(rows)
        log.warning("run %s: %d rows of the ledger were made again from the store", self._state.run, len(rows))

    async def play(self) -> FinishRun:
        """Step until the run is over."""
        clock = self._services.clock
        while True:
            started = clock.monotonic()
            view = self._view()
            result = step(view, clock.now(), self._counted)
            self._failing = result.failing
            took = clock.monotonic() - started
            self._services.metrics.observe(Metric.STEP_DURATION, took)
            self._services.slots.after(self._state.run.uid, result.used, result.wanted)
            end = await self._carry_out(result)
            self._settle_share()
            if end is not None:
                self.is_over = True
                return end
            await self._hands.rest(result.wake_at)
            # A large run's step takes a while, and pods end all the time: let it have half of the loop at most.
            await clock.sleep(min(took, _LONGEST_PAUSE))

    def _pods(self) -> tuple[PodRecord, ...]:
        return tuple(pod for pod in self._services.pods.pods(self._state.run.uid) if pod.role == "case")

    def _settle_share(self) -> None:
        if self._share is not None:
            alive = self._state.running
            started = {item.key.case for item in self._executor.in_flight()}
            self._share.settle(self._state.run.uid, len(alive | started))

    def _view(self) -> RunView:
        pods, state, executor = self._pods(), self._state, self._executor
        known = dict(self._services.pods.known(state.run.uid))
        now = self._services.clock.now()
        seen = frozenset(pod.attempt for pod in pods if pod.attempt is not None)
        state.running = frozenset(
            pod.attempt.case for pod in pods if pod.attempt is not None and not facts.has_ended(pod, now)
        )
        self._note_images(pods)
        view = RunView(
            policy=self._hands.policy(),
            cases=self._cases,
            rows=tuple(state.ledger.rows),
            pods=pods,
            in_flight=executor.in_flight(seen, known, state.ledger.keys),
            seals=dict(executor.seals),
            lookups_in_flight=frozenset(executor.looking),
            blocked_until=self._blocked_until,
            refusals=executor.refusals(),
            planned=self._planned,
            known=known,
            store_away_since=executor.store_away_since,
            failing=self._failing,
            slots=self._reserve(),
            stopped=frozenset(executor.stopped),
        )
        self._counted = Standings.of(view.cases, view.rows, view.policy, self._counted)
        slots = self._services.slots
        if state.spec is None or not slots.limits(state.run.uid):
            return view
        pooled = slots.before(state.run.uid, Situation(view, now, self._counted).used, state.spec.priority)
        return replace(view, slots=pooled if view.slots is None or pooled is None else min(pooled, view.slots))

    def _reserve(self) -> int | None:
        """Return how many pods an audit's run may have; None for a run of its own."""
        if self._share is None:
            return None
        return self._share.reserve(self._state.run.uid, self._hands.policy().parallelism)

    async def _carry_out(self, result: StepResult) -> FinishRun | None:
        context = self._state.context
        if context is None:
            raise RuntimeError("a run is played before its pods are known")
        for action in result.actions:
            match action:
                case Record(rows):
                    if not await self._record(rows):
                        return None
                case CreatePod(key):
                    planned = self._planned[key.case.seed, key.case.case_id]
                    self._executor.create(key, case_pod(context, planned, key))
                case DeletePod():
                    self._executor.delete(action)
                case LookUpSeal(key):
                    self._executor.look_up(key)
                case SetWait(reason, message, until):
                    self._state.wait = Why(reason, message) if reason else None
                    self._blocked_until = until
                case FinishRun():
                    return action
        return None

    async def _record(self, rows: tuple[LedgerRow, ...]) -> bool:
        """Write rows and step again at once; False where the ledger had moved and the step must be taken anew."""
        ledger = self._state.ledger
        self._hands.wake()
        try:
            written = await ledger.write(rows)
        except LedgerMoved as error:
            self._services.metrics.add(Metric.LEDGER_WRITES, result="moved")
            log.warning("run %s: the ledger has moved: %s", self._state.run, error)
            try:
                await ledger.load()
            except LedgerBroken as broken:
                raise Ended.failed(RunReason.LEDGER_LOST, str(broken)) from None
            await self._services.clock.sleep(_MOVED_SECONDS)
            return False
        except KubeError:
            self._services.metrics.add(Metric.LEDGER_WRITES, result="error")
            raise
        self._services.metrics.add(Metric.LEDGER_WRITES, result="ok")
        self._services.metrics.add(Metric.LEDGER_ROWS, len(written))
        pods = {pod.attempt: pod for pod in self._pods()}
        for row in written:
            self._count(row, pods.get(row.key))
        keys = frozenset(row.key for row in rows)
        self._services.pods.settle(self._state.run.uid, keys)
        self._executor.settle(keys)
        return True

    def _count(self, row: LedgerRow, pod: PodRecord | None) -> None:
        metrics = self._services.metrics
        outcome = row.status if row.kind in ("verdict", "environment") else row.kind
        metrics.add(Metric.CASE_FINISHED, outcome=outcome, reason=str(row.reason or "none"))
        if row.kind != "verdict":
            metrics.add(Metric.CASE_RETRIES, cause=row.kind)
        if row.kind == "verdict" and row.digest is None:
            metrics.add(Metric.EVIDENCE_INCOMPLETE, part="attempt")
        if row.seconds is not None:
            metrics.observe(Metric.CASE_DURATION, row.seconds)
        task = pod.container("task") if pod is not None else None
        if pod is not None and task is not None and task.started_at is not None:
            metrics.observe(Metric.CASE_QUEUE, max(0.0, task.started_at - pod.created_at))

    def _note_images(self, pods: tuple[PodRecord, ...]) -> None:
        """Remember what each container ran, and stop a run whose images moved while it was going on."""
        images = self._state.images
        for pod in pods:
            if pod.uid in self._images_of:
                continue
            shown = [item for item in pod.containers if item.image_id]
            if len(shown) == len(pod.containers) and shown:
                self._images_of.add(pod.uid)
            for container in shown:
                first = images.setdefault(self._image_name(pod, container.name), container.image_id)
                if container.name not in _IMAGES and not container.name.startswith(facts.ENVIRONMENT_PREFIX):
                    continue
                if _differ(first, container.image_id) and self._failing is None:
                    message = (
                        f"the image of {container.name} was {first} and is now {container.image_id}: name it "
                        "by digest, or apply the run anew"
                    )
                    self._failing = FinishRun(False, RunReason.PLAN_UNSTABLE, message)

    def _image_name(self, pod: PodRecord, container: str) -> str:
        """Return what an image is known by: its container, within the pod's class of cases where there are several."""
        case = pod.attempt.case if pod.attempt is not None else None
        planned = self._planned.get((case.seed, case.case_id)) if case is not None else None
        if planned is None or planned.kind == _DEFAULT_KIND or container in (EVIDENCE, TASK):
            return container
        return f"{planned.kind}/{container}"


def _differ(one: str, other: str) -> bool:
    """Tell whether two image IDs are of different images; a registry's and a loaded image's cannot be compared."""
    return ("@" in one) == ("@" in other) and one.rpartition("@")[2] != other.rpartition("@")[2]
