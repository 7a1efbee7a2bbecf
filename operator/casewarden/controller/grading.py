"""Recorded runs, graded again on the cluster: by a pod of the task's image that no candidate ever runs in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from casewarden.api.reasons import RunReason
from casewarden.controller.asking import Asking
from casewarden.controller.bootstrap import bootstrap
from casewarden.controller.ended import Ended
from casewarden.controller.hands import Hands
from casewarden.controller.plans import Question, Resolved
from casewarden.controller.services import Services
from casewarden.controller.state import RunState
from casewarden.core.grade_pod import FETCH, GRADE, GRADE_AGAIN, GradeContext, grade_pod
from casewarden.core.grades import Grades, read_grades
from casewarden.core.run_conditions import Why
from casewarden_sdk.canonical import sha256_bytes
from casewarden_sdk.plan import unpack_lines
from casewarden_sdk.regrading import GRADE_PREFIX

__all__ = ["Grading"]


class Grading(Asking):
    """Grades the records of ``runs`` (UIDs with root digests) by the grader in the image that the plan was made by."""

    role: ClassVar[str] = "grade"
    question: ClassVar[Question] = Question(
        "grading",
        (GRADE, GRADE_AGAIN),
        RunReason.GRADING_FAILED,
        RunReason.GRADING_FAILED,
        RunReason.GRADING_FAILED,
        "spec.task",
        before=FETCH,
    )

    def __init__(
        self,
        services: Services,
        state: RunState,
        hands: Hands,
        resolved: Resolved,
        runs: Sequence[tuple[str, str]],
        *,
        mutants: bool = False,
    ) -> None:
        super().__init__(services, state, hands)
        self._resolved, self._runs, self._mutants = resolved, tuple(runs), mutants
        self._address: str | None = None

    async def grade(self) -> Grades:
        """Return the verdicts; ``Ended`` where the records cannot be graded."""
        run = self._state.run
        await bootstrap(self._services.api, run.namespace, run.owner, self._services.network)
        self._address = await self._services.relay_address()
        self._state.wait = self._idle()
        while True:
            pod, verdict = await self.answered()
            log = await self._log(pod)
            if log is not None:
                break
        self._state.wait = None
        try:
            text = unpack_lines(GRADE_PREFIX, log.decode("utf-8", "replace").splitlines(), "grading")
            if sha256_bytes(text.encode()) != verdict.sha256:
                raise ValueError(f"it has not the digest {verdict.sha256}")
            grades = read_grades(text)
        except ValueError as error:
            raise Ended.failed(RunReason.GRADING_FAILED, f"the answer of {pod.name} cannot be read: {error}") from None
        await self.clear()
        return grades

    def _idle(self) -> Why | None:
        whose = "a finished run" if len(self._runs) == 1 else f"{len(self._runs)} runs"
        return Why(RunReason.GRADING, f"the records of {whose} are being graded again")

    def _manifest(self, attempt: int) -> dict[str, Any]:
        spec, catalogue = self._state.spec, self._services.catalogue
        if spec is None:
            raise RuntimeError("records are graded before the spec was read")
        return grade_pod(
            GradeContext(
                owner=self._state.run.owner,
                namespace=self._state.run.namespace,
                task_image=self._resolved.image,
                task_command=tuple(self._resolved.command),
                evidence_image=catalogue.evidence_image,
                relay_url=catalogue.relay_url,
                relay_address=self._address,
                runs=self._runs,
                mutants=self._mutants,
                params=spec.task.params or {},
                datasets=self._resolved.datasets,
                template=spec.pod_template,
                pending_seconds=float(spec.limits.pending_seconds),
            ),
            attempt,
        )
