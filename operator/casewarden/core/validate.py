"""What can be wrong with a run that its schema cannot know: what this version lacks, the catalogue, the plan.

The operator answers with the conditions Accepted and Planned, `casewarden validate` with the same words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from casewarden.api.auditrun import AuditRunSpec
from casewarden.api.candidate import Prompter
from casewarden.api.catalogue import Catalogue, CatalogueTask
from casewarden.api.endpoint import Endpoint, checked_headers
from casewarden.api.evalrun import EvalRun, EvalRunSpec, Limits, TaskRef
from casewarden.api.manifest import ManifestError, Problem, did_you_mean, parse, shown
from casewarden.api.plan import Plan, PlanLimits
from casewarden.api.podtemplate import PodTemplate
from casewarden.api.reasons import RunReason
from casewarden.core.audit_children import audit_of
from casewarden.core.datasets import PARAMETER
from casewarden.core.pod_context import GATEWAY_PORT
from casewarden.core.run_conditions import Why
from casewarden.core.scoring import RULES
from casewarden_sdk.prompters import MODEL_PROMPTERS, PROMPTERS, PrompterError, check_prompter, check_return_format

__all__ = [
    "MAX_CASES",
    "check_audit",
    "check_audit_plan",
    "check_endpoints",
    "check_plan",
    "check_spec",
    "effective_limits",
    "summary",
    "validate_manifest",
]

MAX_CASES: Final = 20_000
_LATER_RULES: Final = frozenset({"weighted-dimensions-partial/v1", "agentbench-oa/v1"})
_NOT_YET: Final = "not supported by this version"


def validate_manifest(document: Any, catalogue: Catalogue | None = None) -> list[Problem]:
    """Return every problem that can be found without a cluster; without a catalogue tasks are not looked up."""
    try:
        resource = parse(document)
    except ManifestError as error:
        return error.problems
    if isinstance(resource, EvalRun):
        return [*_by_hand(document), *check_spec(resource.spec, catalogue, resource.metadata.namespace)]
    return list(check_audit(resource.spec, catalogue, resource.metadata.namespace))


def _by_hand(document: Any) -> Iterator[Problem]:
    if audit_of(document) is not None:
        cure = "only the operator makes the runs of an audit: remove owner and labels, or apply an AuditRun"
        yield Problem("metadata.ownerReferences", None, cure, RunReason.NOT_AN_AUDITS_CHILD)


def summary(problems: Iterable[Problem]) -> Why | None:
    """Return one reason and message for all problems, or None where there is none."""
    found = list(problems)
    return Why(found[0].reason, "; ".join(str(problem) for problem in found)) if found else None


def check_spec(spec: EvalRunSpec, catalogue: Catalogue | None, namespace: str | None = None) -> Iterator[Problem]:
    """Yield what keeps a spec from being accepted; ``namespace`` is the run's, None where it is not known."""
    yield from _not_yet(spec)
    yield from _without_model(spec)
    yield from _prompters(spec)
    if catalogue is not None:
        yield from _task(spec.task, catalogue)
        yield from check_endpoints(spec, catalogue.endpoints, namespace)
    yield from _pod_template(spec.pod_template)


def check_audit(spec: AuditRunSpec, catalogue: Catalogue | None, namespace: str | None = None) -> Iterator[Problem]:
    """Yield what keeps an audit from being accepted; ``namespace`` is the audit's, None where it is not known."""
    if spec.limits.tokens is not None:
        yield _later("spec.limits.tokens", spec.limits.tokens, "remove it")
    if len(set(spec.controls)) != len(spec.controls):
        twice = next(name for name in spec.controls if spec.controls.count(name) > 1)
        yield Problem("spec.controls", shown(twice), "the control is there twice: keep one")
    if catalogue is not None:
        yield from _task(spec.task, catalogue)
        yield from _task_models(spec.task, catalogue.endpoints, namespace)
    yield from _pod_template(spec.pod_template)


def check_audit_plan(spec: AuditRunSpec, plan: Plan) -> Iterator[Problem]:
    """Yield what is wrong with an audit once its plan is known."""
    known = [control.name for control in plan.controls]
    for name in spec.controls:
        if name not in known:
            cure = f"the task has no such control: {did_you_mean(name, known)} (it has {', '.join(known)})"
            yield _refused("spec.controls", name, cure)
    faults = [control.name for control in plan.controls if control.kind == "fault"]
    unknown = set(spec.controls) - set(known)
    if not unknown and not any(not spec.controls or name in spec.controls for name in faults):
        cure = f"no fault is among them, and an audit without faults shows nothing: add one of {', '.join(faults)}"
        yield _refused("spec.controls", list(spec.controls), cure)
    if spec.grader_mutants and not plan.checks:
        cure = f"{plan.task.id} lists no checks that could be mutated: leave it out, or have the pack list them"
        yield _refused("spec.graderMutants", True, cure)
    yield from _plan_models(spec.task, plan)
    if not any(control.kind == "reference" for control in plan.controls):
        yield _refused("spec.task", plan.task.id, "it declares no reference, and an audit needs one: mend the pack")


def _not_yet(spec: EvalRunSpec) -> Iterator[Problem]:
    if spec.aggregation in _LATER_RULES:
        yield _later("spec.aggregation", spec.aggregation, f"use {', '.join(RULES)}")
    elif spec.aggregation is not None and spec.aggregation not in RULES:
        yield Problem("spec.aggregation", shown(spec.aggregation), did_you_mean(spec.aggregation, list(RULES)))


def _later(field: str, value: Any, instead: str) -> Problem:
    return Problem(field, shown(value), f"{_NOT_YET}: {instead}", RunReason.NOT_YET)


def _without_model(spec: EvalRunSpec) -> Iterator[Problem]:
    server = spec.candidate.server
    if server is not None and server.port == GATEWAY_PORT:
        cure = "the model gateway has this port: let the server listen on another"
        yield Problem("spec.candidate.server.port", shown(server.port), cure)
    if spec.candidate.model is not None:
        return
    if spec.limits.tokens is not None:
        cure = "the candidate has no model whose tokens could be counted: remove it, or give spec.candidate.model"
        yield Problem("spec.limits.tokens", shown(spec.limits.tokens), cure)
    if spec.budget is not None:
        cure = "the candidate has no model that could use it: remove it, or give spec.candidate.model"
        yield Problem("spec.budget", shown(spec.budget.to_json()), cure)


def _prompters(spec: EvalRunSpec) -> Iterator[Problem]:
    model, server = spec.candidate.model, spec.candidate.server
    if model is not None and model.prompter is not None:
        yield from _prompter("spec.candidate.model.prompter", model.prompter, tuple(MODEL_PROMPTERS))
        if spec.candidate.program is not None or server is not None:
            cure = "a program or a server writes its own requests: remove it"
            yield Problem("spec.candidate.model.prompter", shown(model.prompter.to_json()), cure)
    if model is not None:
        try:
            checked_headers(dict(model.headers))
        except ValueError as error:
            yield Problem("spec.candidate.model.headers", shown(dict(model.headers)), str(error))
    if server is None or server.agent is None:
        return
    if server.agent.prompter is not None:
        yield from _prompter("spec.candidate.server.agent.prompter", server.agent.prompter, PROMPTERS)
    try:
        check_return_format(server.agent.return_format)
    except PrompterError as error:
        yield Problem("spec.candidate.server.agent.returnFormat", shown(server.agent.return_format), str(error))


def _prompter(field: str, prompter: Prompter, known: Sequence[str]) -> Iterator[Problem]:
    try:
        check_prompter(prompter.name, prompter.args or {}, known)
    except PrompterError as error:
        yield Problem(f"{field}.name", shown(prompter.name), str(error))


def check_endpoints(
    spec: EvalRunSpec, endpoints: Mapping[str, Endpoint], namespace: str | None = None
) -> Iterator[Problem]:
    """Yield what is wrong with the endpoints that a run names; ``namespace`` is the run's, None where any may do."""
    yield from _task_models(spec.task, endpoints, namespace)
    model, field = spec.candidate.model, "spec.candidate.model.endpoint"
    if model is None:
        return
    endpoint = endpoints.get(model.endpoint)
    if problem := _not_usable(field, model.endpoint, endpoints, namespace):
        yield problem
    elif endpoint is not None and endpoint.dialect != "openai" and model.prompter is not None:
        cure = f"an endpoint of the dialect {endpoint.dialect} is asked in that dialect and by no prompter: remove it"
        yield Problem("spec.candidate.model.prompter", shown(model.prompter.to_json()), cure)
    elif endpoint is not None and spec.budget is not None and spec.budget.cost is not None and endpoint.price is None:
        cure = "the endpoint has no price, so that money cannot be counted: give tokens or modelCalls instead"
        yield Problem("spec.budget.cost", shown(spec.budget.cost), cure)


def _not_usable(field: str, name: str, endpoints: Mapping[str, Endpoint], namespace: str | None) -> Problem | None:
    endpoint = endpoints.get(name)
    if endpoint is None:
        allowed = [name for name, item in endpoints.items() if namespace is None or item.allows(namespace)]
        known = ", ".join(sorted(allowed)) or "none"
        cure = f"the administrator has set up no such endpoint: use one of those for this namespace ({known})"
        return Problem(field, shown(name), cure, RunReason.UNKNOWN_ENDPOINT)
    if namespace is not None and not endpoint.allows(namespace):
        cure = f"it is not for runs of namespace {namespace}: have the namespace added to its namespaces"
        return Problem(field, shown(name), cure, RunReason.UNKNOWN_ENDPOINT)
    return None


def _task_models(task: TaskRef, endpoints: Mapping[str, Endpoint], namespace: str | None) -> Iterator[Problem]:
    for role, model in task.models.items():
        field = f"spec.task.models.{role}.endpoint"
        if problem := _not_usable(field, model.endpoint, endpoints, namespace):
            yield problem


def _task(task: TaskRef, catalogue: Catalogue) -> Iterator[Problem]:
    found = catalogue.task(task.name, task.image)
    if found is not None:
        yield from _dataset(task, found)
        return
    known = ", ".join(sorted(catalogue.tasks)) or "none"
    if task.name is not None:
        cure = f"the catalogue has no such task: use one of its tasks ({known})"
        yield Problem("spec.task.name", shown(task.name), cure, RunReason.UNKNOWN_TASK)
    else:
        cure = (
            "the administrator's allow-list does not have this image: have it added to allowedTaskImages, or use one "
            f"of the catalogue's tasks by name ({known})"
        )
        yield Problem("spec.task.image", shown(task.image), cure, RunReason.UNKNOWN_TASK)


def _dataset(task: TaskRef, found: CatalogueTask) -> Iterator[Problem]:
    name = (task.params or {}).get(PARAMETER)
    if not isinstance(name, str) or name in found.datasets:
        return
    known = ", ".join(sorted(found.datasets)) or "none"
    cure = f"the administrator has given the task no such data set: use one of its own ({known}), or leave it out"
    yield Problem(f"spec.task.params.{PARAMETER}", shown(name), cure)


def _pod_template(template: PodTemplate) -> Iterator[Problem]:
    for name, container in (("candidate", template.candidate), ("task", template.task)):
        resources = container.resources if container is not None else None
        if resources is None:
            continue
        asked, limit = resources.requests.get("memory"), resources.limits.get("memory")
        if asked is not None and asked != limit:
            field = f"spec.podTemplate.{name}.resources.requests.memory"
            yield Problem(field, shown(asked), "it must equal limits.memory: give only the limit")


def effective_limits(plan: PlanLimits, limits: Limits) -> PlanLimits:
    """Return the pack's limits, tightened by the run's; wider ones (``check_plan`` refuses them) do not count."""
    tighter = {
        "case_seconds": _least(plan.case_seconds, limits.case_seconds),
        "actions": _least(plan.actions, limits.actions),
        "tokens": _least(plan.tokens, limits.tokens),
    }
    return plan.model_copy(update=tighter)


def _least(pack: float | None, run: int | None) -> float | None:
    values = [value for value in (pack, run) if value is not None]
    smallest = min(values, default=None)
    return float(smallest) if isinstance(pack, float) and smallest is not None else smallest


def check_plan(spec: EvalRunSpec, seeds: Iterable[int], plan: Plan, catalogue: Catalogue | None) -> Iterator[Problem]:
    """Yield what is wrong with a run once its plan is known; ``seeds`` are those that the pack was asked for."""
    yield from _plan_answers(spec, list(seeds), plan)
    yield from _plan_limits(spec, plan)
    yield from _plan_candidate(spec, plan)
    yield from _plan_models(spec.task, plan)
    if spec.threshold is not None:
        for name in spec.threshold.dimensions:
            if name not in plan.dimensions:
                cure = f"the task has no such dimension: {did_you_mean(name, list(plan.dimensions))}"
                yield _refused(f"spec.threshold.dimensions[{name}]", spec.threshold.dimensions[name], cure)
    if catalogue is not None:
        yield from _plan_images(spec, plan, catalogue)


def _refused(field: str, value: Any, cure: str, reason: RunReason = RunReason.PLAN_REFUSED) -> Problem:
    return Problem(field, shown(value), cure, reason)


def _plan_answers(spec: EvalRunSpec, seeds: list[int], plan: Plan) -> Iterator[Problem]:
    if plan.seeds != seeds:
        yield _refused(
            "spec.task", plan.seeds, f"its image planned these seeds instead of {seeds}: mend the task image"
        )
    families = set(spec.select.families)
    if families and not families.issuperset(plan.families):
        extra = sorted(set(plan.families) - families)
        yield _refused("spec.task", extra, "its image planned these families, which were not selected: mend it")
    if len(plan.cases) * spec.repeats > MAX_CASES:
        cure = f"{len(plan.cases)} cases this often are more than {MAX_CASES}: lower repeats, or give fewer seeds"
        yield _refused("spec.repeats", spec.repeats, cure)
    if plan.aggregation not in RULES:
        yield _refused("spec.task", plan.aggregation, f"its aggregation rule is {_NOT_YET}: use another task")
    elif spec.aggregation is not None and spec.aggregation != plan.aggregation:
        yield _refused("spec.aggregation", spec.aggregation, f"the task is scored by {plan.aggregation}: leave it out")


def _plan_limits(spec: EvalRunSpec, plan: Plan) -> Iterator[Problem]:
    for field, wanted, allowed in (
        ("caseSeconds", spec.limits.case_seconds, plan.limits.case_seconds),
        ("actions", spec.limits.actions, plan.limits.actions),
        ("tokens", spec.limits.tokens, plan.limits.tokens),
    ):
        if wanted is not None and allowed is not None and wanted > allowed:
            cure = f"a run may only tighten the task's limits: give at most {allowed:g}, or leave it out"
            yield _refused(f"spec.limits.{field}", wanted, cure)


def _plan_candidate(spec: EvalRunSpec, plan: Plan) -> Iterator[Problem]:
    candidate = spec.candidate
    if candidate.control is not None and plan.control(candidate.control) is None:
        known = [control.name for control in plan.controls]
        cure = f"the task has no such control: {did_you_mean(candidate.control, known)} (it has {', '.join(known)})"
        yield _refused("spec.candidate.control", candidate.control, cure)
    if candidate.program is not None and "program" not in plan.candidates:
        cure = f"the task takes no programs: give a {' or a '.join(plan.candidates)}"
        yield _refused("spec.candidate.program", candidate.program.to_json(), cure)
    if candidate.server is not None and "server" not in plan.candidates:
        cure = f"the task takes no servers: give a {' or a '.join(plan.candidates)}"
        yield _refused("spec.candidate.server", candidate.server.to_json(), cure)
    alone = candidate.model is not None and candidate.program is None and candidate.server is None
    if candidate.model is not None and alone and "model" not in plan.candidates:
        cure = f"no model can play this task by itself: give a {' or a '.join(plan.candidates)} that uses it"
        yield _refused("spec.candidate.model", candidate.model.to_json(), cure)


def _plan_models(task: TaskRef, plan: Plan) -> Iterator[Problem]:
    for role, purpose in plan.models.items():
        if role not in task.models:
            cure = f"the task asks a model ({purpose}): give its endpoint and name"
            yield Problem(f"spec.task.models.{role}", None, cure, RunReason.PLAN_REFUSED)
    for role, model in task.models.items():
        if role not in plan.models:
            known = ", ".join(plan.models) or "none"
            cure = f"the task asks no model of that role (it has {known}): remove it"
            yield _refused(f"spec.task.models.{role}", model.to_json(), cure)


def _plan_images(spec: EvalRunSpec, plan: Plan, catalogue: Catalogue) -> Iterator[Problem]:
    own = spec.candidate
    named = own.server is not None or (own.program is not None and own.program.image is not None)
    named = named or (own.program is None and own.control is None)
    for name, kind in plan.kinds.items():
        if kind.candidate is not None and not named and catalogue.image(kind.candidate.image) is None:
            cure = (
                f"the catalogue has no image for the candidates of its cases of kind {name}: have it added to images, "
                "or give spec.candidate.program.image"
            )
            yield _refused("spec.task", kind.candidate.image, cure)
        for environment in kind.environments:
            if catalogue.image(environment.image) is None:
                cure = f"the catalogue has no image for its environment {environment.name}: have it added to images"
                yield _refused("spec.task", environment.image, cure)
            if environment.profile == "baseline" and plan.task.id not in catalogue.allow_baseline:
                cure = (
                    f"its environment {environment.name} runs as root, which the catalogue does not allow: have the "
                    "task added to allowBaseline"
                )
                yield _refused("spec.task", plan.task.id, cure)
