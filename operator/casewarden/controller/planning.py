"""How a run gets its plan: a pod that is asked twice, tried again where the cluster and not the pack failed it."""

from __future__ import annotations

import logging

from casewarden.api.catalogue import CatalogueTask
from casewarden.api.plan import Plan
from casewarden.api.reasons import RunReason
from casewarden.controller.ended import Ended
from casewarden.controller.hands import Hands
from casewarden.controller.plans import (
    LOG_BYTES,
    KeptPlan,
    PlanFailed,
    Planned,
    Resolved,
    Unplanned,
    Waiting,
    judge_plan_pod,
    keep_plan,
    load_plan,
    read_plan_log,
)
from casewarden.controller.pod_context import pinned
from casewarden.controller.services import Services
from casewarden.controller.state import RunState
from casewarden.core.model import PodRecord
from casewarden.core.plan_pod import PLAN, PlanContext, plan_pod
from casewarden.core.run_conditions import Why
from casewarden.ports.kube import PODS, AlreadyExists, Conflict, Forbidden, NotFound

__all__ = ["Planning"]

log = logging.getLogger(__name__)
_SEEN_SECONDS = 10.0
_QUOTA_SECONDS = 5.0


class Planning:
    """Plans one run."""

    def __init__(self, services: Services, state: RunState, hands: Hands) -> None:
        self._services, self._state, self._hands = services, state, hands
        self._tries = 0
        self._expected = 0.0

    async def plan(self, task: CatalogueTask, known_digest: str | None) -> KeptPlan:
        """Return the plan, kept; ``Ended`` where there is none, or not again the one of ``known_digest``."""
        while True:
            pod = self._latest()
            verdict = judge_plan_pod(pod, self._hands.policy(), self._services.clock.now()) if pod is not None else None
            if isinstance(verdict, Planned) and pod is not None:
                made = await self._take(task, pod, verdict, known_digest)
                if made is not None:
                    return made
                continue
            if isinstance(verdict, Unplanned):
                self._give_up_or_go_on(verdict)
            if isinstance(verdict, Waiting):
                self._state.wait = Why(*verdict.trouble) if verdict.trouble else None
                await self._hands.rest(verdict.until)
            elif not self._hands.policy().suspend:
                await self._next(task)
            else:
                await self._hands.rest(None)

    async def clear(self) -> None:
        """Delete every plan pod of the run."""
        for pod in self._pods():
            try:
                await self._services.api.delete(PODS, pod.namespace, pod.name, uid=pod.uid)
            except (NotFound, Conflict):
                continue

    def _pods(self) -> list[PodRecord]:
        pods = self._services.pods.pods(self._state.run.uid)
        return sorted((pod for pod in pods if pod.role == "plan"), key=_try_of)

    def _latest(self) -> PodRecord | None:
        pods = self._pods()
        if not pods:
            return None
        self._tries = max(self._tries, _try_of(pods[-1]))
        return pods[-1] if _try_of(pods[-1]) == self._tries else None

    def _give_up_or_go_on(self, verdict: Unplanned) -> None:
        log.info("run %s: plan %d: %s: %s", self._state.run, self._tries, verdict.reason, verdict.message)
        if not verdict.again or self._tries >= self._services.tuning.plan_tries:
            raise Ended.unplanned(verdict.reason, verdict.message)

    async def _next(self, task: CatalogueTask) -> None:
        """Create the next plan pod, or wait for the one that was created and is not seen yet."""
        now, uid = self._services.clock.now(), self._state.run.uid
        seen = any(_try_of(pod) == self._tries for pod in self._pods())
        if self._tries and not seen and now < self._expected:
            await self._hands.rest(self._expected)
            return
        # One that vanished is made again under the next number: its name may still be taken by what is left of it.
        self._tries += 1
        manifest = plan_pod(self._context(task), self._tries)
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
        log.info("run %s: plan pod %s", uid, manifest["metadata"]["name"])
        self._expected = self._services.clock.now() + _SEEN_SECONDS

    def _context(self, task: CatalogueTask) -> PlanContext:
        spec = self._state.spec
        if spec is None:
            raise RuntimeError("a run is planned before its spec was read")
        return PlanContext(
            owner=self._state.run.owner,
            namespace=self._state.run.namespace,
            task_image=task.image,
            task_command=tuple(task.command),
            seeds=self._state.seeds,
            params=spec.task.params or {},
            datasets=task.dataset_places,
            families=tuple(spec.select.families),
            template=spec.pod_template,
            pending_seconds=float(spec.limits.pending_seconds),
        )

    async def _take(self, task: CatalogueTask, pod: PodRecord, planned: Planned, known: str | None) -> KeptPlan | None:
        """Read the plan from the pod's log and keep it; None where the pod was gone before it could be read."""
        if known is not None and known != planned.sha256:
            message = f"the plan {known} is lost, and the task now plans {planned.sha256}: apply the run anew"
            raise Ended.unplanned(RunReason.PLAN_UNSTABLE, message)
        try:
            text = await self._services.api.pod_log(pod.namespace, pod.name, PLAN, LOG_BYTES)
        except NotFound:
            self._services.poke()
            await self._hands.rest(self._services.clock.now() + 1.0)
            return None
        try:
            plan, canonical = read_plan_log(text, planned.sha256)
        except PlanFailed as error:
            raise Ended.unplanned(error.reason, error.message) from None
        self._state.task_image_id = planned.image_id
        await keep_plan(self._services.api, self._state.run, canonical, self._resolve(task, plan, planned))
        kept = await load_plan(self._services.api, self._state.run, planned.sha256)
        if kept is None:
            message = "the run has ConfigMaps of another plan: delete the run and apply it anew"
            raise Ended.unplanned(RunReason.PLAN_UNSTABLE, message)
        return kept

    def _resolve(self, task: CatalogueTask, plan: Plan, planned: Planned) -> Resolved:
        catalogue = self._services.catalogue
        wanted = [kind.candidate.image for kind in plan.kinds.values() if kind.candidate is not None]
        wanted += [item.image for kind in plan.kinds.values() for item in kind.environments]
        images = {name: found for name in wanted if (found := catalogue.image(name)) is not None}
        return Resolved(pinned(task.image, planned.image_id), tuple(task.command), images, task.dataset_places)


def _try_of(pod: PodRecord) -> int:
    last = pod.name.rpartition("-")[2]
    return int(last) if last.isdigit() else 0
