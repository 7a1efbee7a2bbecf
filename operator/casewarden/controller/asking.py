"""A question to the task image: a pod that is asked twice, tried again where the cluster and not the pack failed it."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from casewarden.api.reasons import RunReason
from casewarden.controller.ended import Ended
from casewarden.controller.hands import Hands
from casewarden.controller.plans import LOG_BYTES, Planned, Question, Unplanned, Waiting, judge_plan_pod
from casewarden.controller.services import Services
from casewarden.controller.state import RunState
from casewarden.core.model import PodRecord
from casewarden.core.run_conditions import Why
from casewarden.ports.kube import PODS, AlreadyExists, Conflict, Forbidden, NotFound

__all__ = ["Asking"]

log = logging.getLogger(__name__)
_SEEN_SECONDS = 10.0
_QUOTA_SECONDS = 5.0


class Asking(ABC):
    """Asks for one run. ``role`` is the label of its pods."""

    role: ClassVar[str]
    question: ClassVar[Question]

    def __init__(self, services: Services, state: RunState, hands: Hands) -> None:
        self._services, self._state, self._hands = services, state, hands
        self._tries = 0
        self._expected = 0.0

    @abstractmethod
    def _manifest(self, attempt: int) -> dict[str, Any]:
        """Return the pod of a try."""

    def _give_up(self, verdict: Unplanned) -> Ended:
        """Return how the run ends without an answer."""
        return Ended.failed(verdict.reason, verdict.message)

    async def answered(self) -> tuple[PodRecord, Planned]:
        """Return a pod whose two answers agree; ``Ended`` where there will be none."""
        while True:
            pod, policy = self._latest(), self._hands.policy()
            now = self._services.clock.now()
            verdict = judge_plan_pod(pod, policy, now, self.question) if pod is not None else None
            if isinstance(verdict, Planned) and pod is not None:
                return pod, verdict
            if isinstance(verdict, Unplanned):
                self._give_up_or_go_on(verdict)
            if isinstance(verdict, Waiting):
                self._state.wait = Why(*verdict.trouble) if verdict.trouble else self._idle()
                await self._hands.rest(verdict.until)
            elif not self._hands.policy().suspend:
                await self._next()
            else:
                await self._hands.rest(None)

    async def clear(self) -> None:
        """Delete every pod that was asked."""
        for pod in self._pods():
            try:
                await self._services.api.delete(PODS, pod.namespace, pod.name, uid=pod.uid)
            except (NotFound, Conflict):
                continue

    async def _log(self, pod: PodRecord) -> bytes | None:
        """Return what the first container wrote; None where the pod was gone before it could be read."""
        try:
            return await self._services.api.pod_log(pod.namespace, pod.name, self.question.containers[0], LOG_BYTES)
        except NotFound:
            self._services.poke()
            await self._hands.rest(self._services.clock.now() + 1.0)
            return None

    def _idle(self) -> Why | None:
        """Return what the run says while the pod works."""
        return None

    def _pods(self) -> list[PodRecord]:
        pods = self._services.pods.pods(self._state.run.uid)
        return sorted((pod for pod in pods if pod.role == self.role), key=_try_of)

    def _latest(self) -> PodRecord | None:
        pods = self._pods()
        if not pods:
            return None
        self._tries = max(self._tries, _try_of(pods[-1]))
        return pods[-1] if _try_of(pods[-1]) == self._tries else None

    def _give_up_or_go_on(self, verdict: Unplanned) -> None:
        word = self.question.word
        log.info("run %s: %s %d: %s: %s", self._state.run, word, self._tries, verdict.reason, verdict.message)
        if not verdict.again or self._tries >= self._services.tuning.plan_tries:
            raise self._give_up(verdict)

    async def _next(self) -> None:
        """Create the next pod, or wait for the one that was created and is not seen yet."""
        now = self._services.clock.now()
        seen = any(_try_of(pod) == self._tries for pod in self._pods())
        if self._tries and not seen and now < self._expected:
            await self._hands.rest(self._expected)
            return
        # One that vanished is made again under the next number: its name may still be taken by what is left of it.
        self._tries += 1
        manifest = self._manifest(self._tries)
        try:
            await self._services.api.create(PODS, self._state.run.namespace, manifest)
        except AlreadyExists:
            self._services.poke()
        except Forbidden as error:
            self._tries -= 1
            if not error.is_quota:
                raise
            self._state.wait = Why(RunReason.QUOTA_EXCEEDED, error.message)
            await self._hands.rest(now + _QUOTA_SECONDS)
            return
        log.info("run %s: pod %s", self._state.run, manifest["metadata"]["name"])
        self._expected = self._services.clock.now() + _SEEN_SECONDS


def _try_of(pod: PodRecord) -> int:
    last = pod.name.rpartition("-")[2]
    return int(last) if last.isdigit() else 0
