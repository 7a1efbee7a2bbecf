"""What a schema cannot know is checked with the field, the value and the cure."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from support.refused import Refused, refused_by

from casewarden.api.auditrun import AuditRunSpec
from casewarden.api.catalogue import Catalogue
from casewarden.api.endpoint import Endpoint
from casewarden.api.evalrun import EvalRunSpec, Limits
from casewarden.api.plan import Plan, PlanLimits
from casewarden.api.reasons import RunReason
from casewarden.core.validate import (
    check_audit_plan,
    check_plan,
    check_spec,
    effective_limits,
    summary,
    validate_manifest,
)
from casewarden_sdk.canonical import canonical
from casewarden_sdk.errors import ContractError
from casewarden_sdk.plan import build_plan
from casewarden_tasks import durable_kv

CATALOGUE = Catalogue.model_validate(
    {
        "tasks": {"durable-kv": {"image": "tasks:1"}, "support-routing": {"image": "tasks:1"}},
        "images": {"python": "p:1"},
    }
)
PLAN = json.loads(canonical(build_plan(durable_kv.PACK, [17], {})))
MINIMAL: dict[str, Any] = {
    "task": {"name": "durable-kv"},
    "seeds": {"values": [17]},
    "candidate": {"control": "reference"},
}


def spec(**fields: Any) -> EvalRunSpec:
    return EvalRunSpec.model_validate(MINIMAL | fields)


def said(run: EvalRunSpec, change: Callable[[dict[str, Any]], None] = lambda _: None) -> list[str]:
    """What is wrong with a run under the plan of durable-kv, changed."""
    plan = copy.deepcopy(PLAN)
    change(plan)
    return [str(problem) for problem in check_plan(run, [17], Plan.model_validate(plan), CATALOGUE)]


ENDPOINTS = CATALOGUE.model_copy(
    update={
        "endpoints": {
            "team": Endpoint(url="https://m.example/v1", namespaces=["evals"]),
            "claude": Endpoint(url="https://a.example/v1", dialect="anthropic"),
        }
    }
)
MODEL = {"endpoint": "team", "name": "qwen3"}


def with_model(model: dict[str, Any] = MODEL, **fields: Any) -> EvalRunSpec:
    return spec(candidate={"model": MODEL | model}, **fields)


def serving(agent: dict[str, Any]) -> EvalRunSpec:
    return spec(candidate={"server": {"image": "a:1", "argv": ["serve"], "port": 9000, "agent": agent}})


def judged(model: dict[str, Any]) -> EvalRunSpec:
    return spec(task={"name": "durable-kv", "models": {"judge": MODEL | model}})


@pytest.mark.parametrize(
    ("run", "namespace", "field", "cure"),
    [
        (with_model({"endpoint": "tem"}), "evals", "spec.candidate.model.endpoint", "no such endpoint"),
        (with_model(), "others", "spec.candidate.model.endpoint", "have the namespace added"),
        (
            with_model({"prompter": {"name": "palm"}}),
            "evals",
            "spec.candidate.model.prompter.name",
            "use one of openai-chat",
        ),
        (
            with_model({"prompter": {"name": "claude", "args": {"x": "y"}}}),
            "evals",
            "spec.candidate.model.prompter.name",
            "it takes no argument 'x'",
        ),
        (
            spec(candidate={"program": {"argv": ["a"]}, "model": MODEL | {"prompter": {"name": "claude"}}}),
            "evals",
            "spec.candidate.model.prompter",
            "writes its own requests",
        ),
        (
            with_model({"endpoint": "claude", "prompter": {"name": "claude"}}),
            "evals",
            "spec.candidate.model.prompter",
            "in that dialect and by no prompter",
        ),
        (with_model({"headers": {"Authorization": "x"}}), "evals", "spec.candidate.model.headers", "the relay's own"),
        (serving({"prompter": {"name": "vicuna"}}), "evals", "spec.candidate.server.agent.prompter.name", "use one of"),
        (
            serving({"returnFormat": "{response.x}"}),
            "evals",
            "spec.candidate.server.agent.returnFormat",
            "only {response}",
        ),
        (with_model(budget={"cost": "2.5"}), "evals", "spec.budget.cost", "has no price"),
        (judged({"endpoint": "tem"}), "evals", "spec.task.models.judge.endpoint", "no such endpoint"),
        (judged({}), "others", "spec.task.models.judge.endpoint", "have the namespace added"),
        (spec(budget={"tokens": 5}), "evals", "spec.budget", "no model that could use it"),
        (spec(limits={"tokens": 5}), "evals", "spec.limits.tokens", "no model whose tokens"),
    ],
)
def test_models_are_used_as_the_administrator_says(run: EvalRunSpec, namespace: str, field: str, cure: str) -> None:
    (problem,) = check_spec(run, ENDPOINTS, namespace)
    assert problem.field == field
    assert cure in problem.cure


def test_a_model_that_may_be_used_has_no_problems_and_plays_what_the_pack_lets_it_play() -> None:
    run = with_model(budget={"tokens": 1000, "modelCalls": 5}, limits={"tokens": 100})
    assert list(check_spec(run, ENDPOINTS, "evals")) == []
    (problem,) = said(run)
    assert "no model can play this task by itself: give a program that uses it" in problem
    assert said(run, _set("candidates", ["program", "model"])) == []
    server = spec(candidate={"server": {"image": "a:1", "argv": ["serve"], "port": 9000}})
    assert "takes no servers" in said(server)[0]


def test_a_run_names_exactly_the_models_that_its_task_asks() -> None:
    asks = _set("models", {"judge": "says yes or no"})
    assert said(judged({}), asks) == []
    assert "spec.task.models.judge: the task asks a model (says yes or no): give its" in said(spec(), asks)[0]
    assert "spec.task.models.judge" in said(judged({}))[0]
    assert "asks no model of that role (it has none): remove it" in said(judged({}))[0]
    audit = {"task": {"name": "durable-kv"}, "seeds": {"values": [17]}}
    plan = copy.deepcopy(PLAN)
    asks(plan)
    (problem,) = check_audit_plan(AuditRunSpec.model_validate(audit), Plan.model_validate(plan))
    assert problem.field == "spec.task.models.judge"


def test_a_run_that_can_be_run_has_no_problems() -> None:
    assert list(check_spec(spec(), CATALOGUE)) == []
    assert said(spec(limits={"caseSeconds": 120, "actions": 5}, threshold={"dimensions": {"basic": "1"}})) == []
    assert summary([]) is None


@pytest.mark.parametrize("refused", refused_by("plan"), ids=lambda item: item.name)
def test_what_the_cluster_refuses_at_plan_time_is_refused_by_the_pack_or_by_its_plan(refused: Refused) -> None:
    if refused.document["kind"] == "AuditRun":
        audit = AuditRunSpec.model_validate(refused.document["spec"])
        plan = build_plan(durable_kv.PACK, audit.seeds.values or [17], {})
        (problem,) = check_audit_plan(audit, Plan.model_validate(json.loads(canonical(plan))))
        assert (problem.field, problem.value) == (refused.field, refused.value)
        assert refused.offline in problem.cure
        return
    run = EvalRunSpec.model_validate(refused.document["spec"])
    seeds = run.seeds.values or list(range(run.seeds.random or 0))
    try:
        plan = build_plan(durable_kv.PACK, seeds, run.task.params or {}, run.select.families)
        found = [
            str(item) for item in check_plan(run, seeds, Plan.model_validate(json.loads(canonical(plan))), CATALOGUE)
        ]
    except ContractError as error:
        found = [str(error)]
    (message,) = found
    assert refused.field in message
    assert refused.value.strip('"') in message
    assert refused.offline in message


def test_what_a_later_version_brings_is_told_apart_from_what_is_wrong() -> None:
    later = list(check_spec(spec(aggregation="agentbench-oa/v1"), CATALOGUE))
    wrong = list(check_spec(spec(task={"name": "nothing"}), CATALOGUE))
    assert [problem.reason for problem in later] == [RunReason.NOT_YET]
    assert [problem.reason for problem in wrong] == [RunReason.UNKNOWN_TASK]
    both = summary([*later, *wrong])
    assert both is not None
    assert both.reason == "NotYet"
    assert both.message.count("; ") == 1


def test_without_a_catalogue_tasks_are_not_looked_up() -> None:
    document = {"apiVersion": "casewarden.dev/v1alpha1", "kind": "EvalRun", "metadata": {"name": "x"}}
    unknown = {**document, "spec": MINIMAL | {"task": {"name": "my-own"}}}
    assert validate_manifest(unknown) == []
    assert len(validate_manifest(unknown, CATALOGUE)) == 1


def _set(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda plan: plan.update({name: value})


def _environment(profile: str, image: str = "python") -> Callable[[dict[str, Any]], None]:
    environment = {"name": "db", "image": image, "profile": profile}
    return lambda plan: plan["kinds"]["default"].update(environments=[environment])


@pytest.mark.parametrize(
    ("run", "change", "message"),
    [
        (spec(), _set("aggregation", "agentbench-oa/v1"), "its aggregation rule is not supported by this version"),
        (spec(), _set("kinds", {"default": {"candidate": {"image": "ruby"}}}), "have it added to images"),
        (spec(), _environment("baseline"), "have the task added to allowBaseline"),
        (spec(), _environment("restricted", "mariadb"), "no image for its environment db"),
        (
            spec(candidate={"program": {"argv": ["x"]}}),
            _set("candidates", ["server", "model"]),
            "the task takes no programs: give a server or a model",
        ),
        (spec(select={"families": ["read-write-delete"]}), _set("v", 1), "which were not selected: mend it"),
        (
            spec(aggregation="weighted-dimensions/v1"),
            _set("aggregation", "mine/v2"),
            "its aggregation rule is not supported",
        ),
    ],
)
def test_a_plan_must_fit_the_run_and_the_catalogue(
    run: EvalRunSpec, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    assert any(message in item for item in said(run, change))


def test_a_plan_for_other_seeds_than_were_asked_for_is_refused() -> None:
    (problem,) = check_plan(spec(), [41], Plan.model_validate(PLAN), CATALOGUE)
    assert str(problem).startswith("spec.task is [17]: its image planned these seeds instead of [41]")


def test_an_image_of_the_runs_own_needs_none_of_the_catalogue() -> None:
    program = spec(candidate={"program": {"image": "a:1", "argv": ["x"]}})
    assert said(program, _set("kinds", {"default": {"candidate": {"image": "ruby"}}})) == []


@pytest.mark.parametrize(
    ("run", "case_seconds", "actions"),
    [({}, 120.0, 12), ({"caseSeconds": 60}, 60.0, 12), ({"caseSeconds": 600}, 120.0, 12), ({"actions": 3}, 120.0, 3)],
)
def test_a_run_can_tighten_limits_and_never_widen_them(run: dict[str, int], case_seconds: float, actions: int) -> None:
    limits = effective_limits(PlanLimits(actions=12), Limits.model_validate(run))
    assert (limits.case_seconds, limits.actions) == (case_seconds, actions)
    assert isinstance(limits.case_seconds, float)
    assert limits.output_bytes == PlanLimits().output_bytes


def test_a_limit_that_the_pack_leaves_open_can_be_set() -> None:
    assert effective_limits(PlanLimits(), Limits(actions=7, tokens=9)).actions == 7
