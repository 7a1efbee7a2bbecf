"""How a run gets its plan: the task image's answer, held against what is known, and kept."""

from __future__ import annotations

from typing import Any, ClassVar

from casewarden.api.catalogue import CatalogueTask
from casewarden.api.plan import Plan
from casewarden.api.reasons import RunReason
from casewarden.controller.asking import Asking
from casewarden.controller.ended import Ended
from casewarden.controller.plans import (
    PLAN_QUESTION,
    KeptPlan,
    PlanFailed,
    Planned,
    Question,
    Resolved,
    Unplanned,
    keep_plan,
    load_plan,
    read_plan_log,
)
from casewarden.controller.pod_context import pinned
from casewarden.core.model import PodRecord
from casewarden.core.plan_pod import PlanContext, plan_pod

__all__ = ["Planning"]


class Planning(Asking):
    """Plans one run."""

    role: ClassVar[str] = "plan"
    question: ClassVar[Question] = PLAN_QUESTION
    _task: CatalogueTask

    async def plan(self, task: CatalogueTask, known_digest: str | None) -> KeptPlan:
        """Return the plan, kept; ``Ended`` where there is none, or not again the one of ``known_digest``."""
        self._task = task
        while True:
            pod, verdict = await self.answered()
            made = await self._take(task, pod, verdict, known_digest)
            if made is not None:
                return made

    def _manifest(self, attempt: int) -> dict[str, Any]:
        return plan_pod(self._context(self._task), attempt)

    def _give_up(self, verdict: Unplanned) -> Ended:
        return Ended.unplanned(verdict.reason, verdict.message)

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
        text = await self._log(pod)
        if text is None:
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
