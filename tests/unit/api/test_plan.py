"""A plan is believed only when it makes sense as a whole."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from casewarden.api.plan import Plan
from casewarden_sdk.canonical import canonical
from casewarden_sdk.plan import build_plan
from casewarden_tasks import durable_kv, support_routing

PLANS = {
    pack.id: json.loads(canonical(build_plan(pack, [17, 41], {}))) for pack in (durable_kv.PACK, support_routing.PACK)
}
Change = Callable[[dict[str, Any]], None]


@pytest.mark.parametrize("name", PLANS)
def test_the_plan_of_a_pack_is_taken(name: str) -> None:
    plan = Plan.model_validate(PLANS[name])
    assert plan.task.id == name
    assert sum(plan.weights.values()) == 1
    assert len(plan.cases) == len(PLANS[name]["cases"])
    assert plan.control("reference") is not None
    assert plan.control("nobody") is None


def _set(*path: Any, value: Any) -> Change:
    def change(plan: dict[str, Any]) -> None:
        node: Any = plan
        for part in path[:-1]:
            node = node[part]
        node[path[-1]] = value

    return change


def _drop_the_checks_of_a_dimension(plan: dict[str, Any]) -> None:
    plan["cases"] = [case for case in plan["cases"] if case["seed"] == 17 or case["dimensions"] != ["persistence"]]


def _repeat_a_case(plan: dict[str, Any]) -> None:
    plan["cases"].append(plan["cases"][0])


def _keep_no_fault(plan: dict[str, Any]) -> None:
    plan["controls"] = [control for control in plan["controls"] if control["kind"] != "fault"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_set("dimensions", "basic", value="0.2"), "sum to 0.95: make them sum to exactly 1"),
        (_set("dimensions", "basic", value=0.25), "should be a valid string"),
        (_drop_the_checks_of_a_dimension, "no case of seed 41 checks dimension 'persistence'"),
        (_repeat_a_case, "is there 2 times for seed 17"),
        (_set("seeds", value=[17]), "names seeds"),
        (_set("cases", 0, "dimensions", value=["nothing"]), "checks ['nothing']: use dimensions of the task"),
        (_set("cases", 0, "kind", value="gpu"), "declare it in kinds"),
        (_set("cases", 0, "sha256", value="x"), "64 lower-case hexadecimal"),
        (_keep_no_fault, "no fault control is declared"),
        (_set("controls", 3, "target", value=None), "a fault, and only a fault, has a target"),
        (_set("controls", 3, "target", value="nothing"), "names 'nothing'"),
        (_set("controls", 3, "collateral", value=["nothing"]), "names 'nothing'"),
        (_set("controls", 3, "name", value="reference"), "is there 2 times: a name names one control"),
        (_set("contract", "sha256", value="0" * 64), "digest of the contract page"),
        (_set("limits", "case_seconds", value=0), "greater than 0"),
        (_set("limits", "case_seconds", value=float("inf")), "less than or equal"),
        (_set("protocol", value="telnet"), "jsonl"),
        (_set("v", value=2), "Input should be 1"),
        (_set("surprise", value=1), "Extra inputs"),
    ],
)
def test_a_plan_that_could_give_no_honest_score_is_refused(change: Change, said: str) -> None:
    plan = copy.deepcopy(PLANS["durable-kv"])
    change(plan)
    with pytest.raises(ValidationError) as caught:
        Plan.model_validate(plan)
    assert said in str(caught.value)
