"""One audit, from its first sight to its last status: a plan of its own, a run for each control, a judgement over all.

It is a run task whose pods are runs: it is woken by its resource and by its children, looks at what is there before it
does anything, and can be entered again at any line.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any, ClassVar

from casewarden.api.auditrun import AuditRun, AuditRunSpec
from casewarden.api.conditions import ConditionType
from casewarden.api.evalrun import EvalRunSpec
from casewarden.api.manifest import ManifestError, parse
from casewarden.api.plan import PlanControl
from casewarden.api.reasons import RunReason
from casewarden.controller.audit_share import AuditShare
from casewarden.controller.closing import open_evidence
from casewarden.controller.ended import Abandoned, Ended, guarded
from casewarden.controller.grading import Grading
from casewarden.controller.planning import Planning
from casewarden.controller.plans import load_plan
from casewarden.controller.preparing import task_of
from casewarden.controller.run_task import RunTask, is_finished
from casewarden.controller.services import Services
from casewarden.core import facts
from casewarden.core.audit import ControlRun, Judgement, judge_audit, observations
from casewarden.core.audit_children import (
    LABEL_AUDIT_UID,
    LABEL_CONTROL,
    audit_seeds,
    child_manifest,
    chosen_controls,
    is_genuine,
    mutable_patch,
)
from casewarden.core.audit_evidence import audit_document
from casewarden.core.audit_status import AuditInput, build_audit_status
from casewarden.core.evidence import AUDIT, MUTANTS, RESULTS, RUN, json_file, root_digest
from casewarden.core.model import FinishRun
from casewarden.core.mutants import MutantVerdict, check_grades, judge_mutants, mutants_file
from casewarden.core.run_conditions import Why
from casewarden.core.tally import plan_facts
from casewarden.core.validate import check_audit, check_audit_plan, check_plan, summary
from casewarden.ports.kube import AUDIT_RUNS, EVAL_RUNS, AlreadyExists, Conflict, Kind, Manifest, NotFound, list_all
from casewarden.ports.metrics import Metric
from casewarden_sdk.canonical import sha256_bytes

__all__ = ["AuditTask", "child_spec_of"]

log = logging.getLogger(__name__)


def child_spec_of(spec: AuditRunSpec, audit_uid: str) -> EvalRunSpec:
    """Return the spec that an audit is planned by; that of each child differs from it in its control."""
    manifest = child_manifest("", "audit", audit_uid, spec, "reference", spec.reference_repeats)
    return EvalRunSpec.model_validate(manifest["spec"])


class AuditTask(RunTask):
    """Owns one audit. ``child`` takes the events of its runs."""

    kind: ClassVar[Kind] = AUDIT_RUNS

    def __init__(self, services: Services, body: Manifest, ended: Callable[[str], None]) -> None:
        super().__init__(services, body, ended)
        self._audit: AuditRunSpec | None = None
        self._controls: tuple[PlanControl, ...] = ()
        self._children: dict[str, Manifest] = {}
        self._judgement: Judgement | None = None
        self._mutants: tuple[MutantVerdict, ...] = ()

    def child(self, type_: str | None, body: Manifest) -> None:
        """Take note of a run that says that it is this audit's."""
        control = (body["metadata"].get("labels") or {}).get(LABEL_CONTROL, "")
        if type_ == "DELETED":
            if self._children.get(control, {}).get("metadata", {}).get("uid") == body["metadata"]["uid"]:
                del self._children[control]
        elif control and self._is_newer(control, body):
            self._children[control] = body
        if (share := self._services.shares.get(self._uid)) is not None and (type_ == "DELETED" or is_finished(body)):
            share.release(body["metadata"]["uid"])
        self.wake()

    def _is_newer(self, control: str, body: Manifest) -> bool:
        old = self._children.get(control)
        if old is None or old["metadata"]["uid"] != body["metadata"]["uid"]:
            return True
        return int(body["metadata"]["resourceVersion"]) >= int(old["metadata"]["resourceVersion"])

    def _take_over(self, body: Manifest) -> None:
        super()._take_over(body)
        if getattr(self, "_audit", None) is not None:
            resource = parse(self.state.body)
            if isinstance(resource, AuditRun):
                self._audit = resource.spec
                self.state.spec = child_spec_of(resource.spec, self._uid)

    def _status(self, before: dict[str, Any]) -> dict[str, Any]:
        state = self.state
        return build_audit_status(
            AuditInput(
                generation=state.body["metadata"].get("generation", 0),
                now=self._services.clock.now(),
                suspend=self._audit is not None and self._audit.suspend,
                previous=before,
                seeds=state.seeds,
                refused=state.refused,
                plan_problem=state.plan_problem,
                plan=state.plan,
                controls=self._controls,
                reference_repeats=self._audit.reference_repeats if self._audit is not None else 1,
                children=self._children,
                wait=state.wait,
                judgement=self._judgement,
                mutants=self._mutants,
                end=state.end,
                images={"task": state.task_image_id} if state.task_image_id else {},
                evidence_uri=f"runs/{state.run.uid}" if state.plan is not None else None,
                evidence_digest=state.evidence_digest,
            )
        )

    async def _live(self) -> None:
        if is_finished(self.state.body):
            return
        await self._services.synced.wait()
        self._may_report, self.state.end, self._judgement, self._mutants = False, None, None, ()
        try:
            await self._prepare()
            end = await self._play_children()
        except Ended as ended:
            self.state.refused, self.state.plan_problem = ended.refused, ended.plan_problem
            end = ended.finish
        finally:
            self._services.shares.pop(self._uid, None)
        if end.reason == RunReason.NAMESPACE_TERMINATING:
            raise Abandoned(end.message)
        await self._close_audit(end)

    async def _prepare(self) -> None:
        state, run = self.state, self.state.run
        known = (self.written.get("plan") or {}).get("digest")
        self._audit = self._accept(planned=known is not None)
        spec = state.spec = child_spec_of(self._audit, run.uid)
        state.seeds = tuple(audit_seeds(self._audit, run.uid))
        state.task_image_id = ((self.written.get("fingerprints") or {}).get("images") or {}).get("task", "")
        if known is None:
            self._may_report = True
            await self.report()
        state.phase = "planning"
        kept = await load_plan(self._services.api, run, known) if known else None
        planning = Planning(self._services, state, self)
        if kept is None:
            kept = await guarded(planning.plan(task_of(self._services, spec), known))
            problems = [*check_audit_plan(self._audit, kept.plan)]
            checked = spec.model_copy(update={"candidate": spec.candidate.model_copy(update={"control": None})})
            problems += check_plan(checked, state.seeds, kept.plan, self._services.catalogue)
            if why := summary(problems):
                raise Ended.unplanned(why.reason, why.message)
        self._controls = chosen_controls(kept.plan, self._audit.controls)
        state.plan, state.plan_text, state.wait = plan_facts(kept.plan, kept.sha256), kept.text, None
        state.resolved = kept.resolved
        await planning.clear()
        await self.evidence(lambda: open_evidence(self._services.evidence, state))

    def _accept(self, *, planned: bool) -> AuditRunSpec:
        try:
            resource = parse(self.state.body)
        except ManifestError as error:
            raise Ended.not_accepted(summary(error.problems) or Why(RunReason.INVALID_SPEC, str(error))) from None
        if not isinstance(resource, AuditRun):
            raise Ended.not_accepted(Why(RunReason.INVALID_SPEC, "this is no AuditRun"))
        catalogue = None if planned else self._services.catalogue
        if why_not := summary(check_audit(resource.spec, catalogue, self.state.run.namespace)):
            raise Ended.not_accepted(why_not)
        return resource.spec

    async def _play_children(self) -> FinishRun:
        state, run = self.state, self.state.run
        labels = f"{LABEL_AUDIT_UID}={run.uid}"
        for body in await list_all(self._services.api, EVAL_RUNS, run.namespace, labels):
            self.child(None, body)
        self._may_report, state.phase = True, "running"
        # The children start no pod before this is there: it knows the places that their pods of before hold.
        held = {body["metadata"]["uid"]: self._alive(body["metadata"]["uid"]) for body in self._children.values()}
        self._services.shares[run.uid] = AuditShare(self._services.wake_run, held)
        await self.report()
        for body in self._children.values():
            self._services.wake_run(body["metadata"]["uid"])
        while True:
            for control in self._controls:
                await guarded(self._see_to(control))
            late = self._late()
            if late is not None:
                raise Ended(late)
            if all(is_finished(self._children.get(item.name, {})) for item in self._controls):
                break
            await self.rest(None)
        return await self._judge()

    def _alive(self, run_uid: str) -> int:
        now = self._services.clock.now()
        pods = self._services.pods.pods(run_uid)
        return sum(pod.role == "case" and not facts.has_ended(pod, now) for pod in pods)

    def _late(self) -> FinishRun | None:
        policy = self.policy()
        if policy.deadline is None or self._services.clock.now() < policy.deadline:
            return None
        return FinishRun(False, RunReason.DEADLINE_EXCEEDED, "spec.activeDeadlineSeconds is over")

    async def _see_to(self, control: PlanControl) -> None:
        """Have the run of a control, and let it follow the audit in what may change."""
        assert self._audit is not None
        run, api = self.state.run, self._services.api
        repeats = self._audit.reference_repeats if control.kind == "reference" else 1
        wanted = child_manifest(run.namespace, run.name, run.uid, self._audit, control.name, repeats)
        child = self._children.get(control.name)
        if child is None:
            try:
                child = await api.create(EVAL_RUNS, run.namespace, wanted)
            except AlreadyExists:
                child = await api.get(EVAL_RUNS, run.namespace, wanted["metadata"]["name"])
            self.child(None, child)
        if not is_genuine(child, wanted, _normal):
            name = child["metadata"]["name"]
            message = f"EvalRun {name} has the name of this audit's run of {control.name} and is another: delete it"
            raise Ended.failed(RunReason.CONTROL_FAILED, message)
        if not is_finished(child) and (patch := mutable_patch(self._audit, child["spec"])):
            try:
                self.child(None, await api.patch(EVAL_RUNS, run.namespace, child["metadata"]["name"], {"spec": patch}))
            except NotFound:
                self._children.pop(control.name, None)

    async def _judge(self) -> FinishRun:
        assert self._audit is not None
        assert self.state.plan is not None
        runs = [await self._control_run(control) for control in self._controls]
        judgement = judge_audit(runs, strict=self._audit.strict)
        mutants = await self._mutate(runs, judgement)
        # Only now: while records are graded again the status has no judgement that it might yet lose.
        self._judgement = judgement
        failed = [name for name, body in self._children.items() if _is_failed(body)]
        document = audit_document(
            name=self.state.run.name,
            namespace=self.state.run.namespace,
            uid=self.state.run.uid,
            spec=self.state.body["spec"],
            plan=f"{self.state.plan_text}\n".encode("ascii"),
            runs=[self._reference_to(control) for control in self._controls],
            judgement=self._judgement.to_json(),
            mutants=mutants,
        )
        data = json_file(document)
        await self.evidence(lambda: self._services.evidence.put_file(self.state.run.uid, AUDIT, data))
        self.state.evidence_digest = root_digest(data)
        if failed:
            body = self._children[failed[0]]
            why = next(item for item in body["status"]["conditions"] if item["type"] == ConditionType.FAILED)
            message = f"the run of {failed[0]} failed: {why['reason']}: {why['message']}"
            return FinishRun(False, RunReason.CONTROL_FAILED, message)
        return FinishRun(True, RunReason.COMPLETED, f"{len(self._controls)} controls were run")

    async def _mutate(self, runs: list[ControlRun], judgement: Judgement) -> bytes | None:
        """Judge the grader's mutants over the records of an audit that passed, if they are asked for."""
        plan, resolved, audit = self.state.plan, self.state.resolved, self._audit
        if plan is None or resolved is None or audit is None or not audit.grader_mutants or not judgement.passed:
            return None
        references = [self._reference_to(control) for control in self._controls]
        recorded = [(str(item["uid"]), str(item["digest"])) for item in references]
        grading = Grading(self._services, self.state, self, resolved, recorded, mutants=True)
        grades = await guarded(grading.grade())
        by_uid = {uid: run for (uid, _), run in zip(recorded, runs, strict=True)}
        try:
            check_grades(plan.plan, by_uid, grades)
            self._mutants = judge_mutants(plan.plan, by_uid, grades.mutants, strict=audit.strict)
        except (ValueError, KeyError) as error:
            raise Ended.failed(RunReason.GRADING_FAILED, f"the records graded again: {error}") from None
        data = mutants_file(self._mutants)
        await self.evidence(lambda: self._services.evidence.put_file(self.state.run.uid, MUTANTS, data))
        return data

    def _reference_to(self, control: PlanControl) -> dict[str, Any]:
        body = self._children[control.name]
        digest = ((body.get("status") or {}).get("evidence") or {}).get("digest")
        return {
            "control": control.name,
            "name": body["metadata"]["name"],
            "uid": body["metadata"]["uid"],
            "digest": digest,
        }

    async def _control_run(self, control: PlanControl) -> ControlRun:
        """Read what a control came to from its evidence, held against the digest of its status."""
        assert self.state.plan is not None
        body = self._children[control.name]
        status, uid = body.get("status") or {}, body["metadata"]["uid"]
        digest = (status.get("evidence") or {}).get("digest")
        if status.get("valid") is not True or digest is None:
            return ControlRun.of(control, valid=False, resolved=False, score=None, cases=())
        evidence = self._services.evidence
        document = await self.evidence(lambda: evidence.get_file(uid, RUN)) or b""
        results = await self.evidence(lambda: evidence.get_file(uid, RESULTS)) or b""
        if root_digest(document) != digest or json.loads(document)["results_sha256"] != sha256_bytes(results):
            message = f"the evidence of {body['metadata']['name']} is not what its status says: it was changed"
            raise Ended.failed(RunReason.STORE_UNAVAILABLE, message)
        rows = [json.loads(line) for line in results.splitlines()]
        return ControlRun.of(
            control,
            valid=True,
            resolved=status.get("resolved") is True,
            score=status.get("score"),
            cases=observations(self.state.plan.plan, rows),
        )

    async def _close_audit(self, end: FinishRun) -> None:
        state = self.state
        state.phase, state.wait = "finishing", None
        if not end.complete:
            for body in list(self._children.values()):
                if not is_finished(body):
                    await self._delete(body)
        for pod in self._services.pods.pods(self._uid):
            await self._delete_pod(pod)
        state.end, self._may_report = end, True
        while not is_finished(state.body):
            await self.report()
            if not is_finished(state.body):
                await self._nap(1.0)
        self._services.metrics.add(Metric.RUNS_FINISHED, result="complete" if end.complete else str(end.reason))
        self._services.audit_ended()

    async def _delete(self, body: Manifest) -> None:
        meta = body["metadata"]
        try:
            await self._services.api.delete(EVAL_RUNS, meta["namespace"], meta["name"], uid=meta["uid"])
        except (NotFound, Conflict):
            return

    async def _delete_pod(self, pod: Any) -> None:
        from casewarden.ports.kube import PODS

        if pod.deleted_at is None:
            try:
                await self._services.api.delete(PODS, pod.namespace, pod.name, uid=pod.uid)
            except (NotFound, Conflict):
                return


def _normal(spec: Any) -> dict[str, Any]:
    """Return a spec with every default filled in, as the API server stores it."""
    return EvalRunSpec.model_validate(spec).to_json()


def _is_failed(body: Manifest) -> bool:
    conditions = (body.get("status") or {}).get("conditions") or ()
    return any(item["type"] == ConditionType.FAILED and item["status"] == "True" for item in conditions)
