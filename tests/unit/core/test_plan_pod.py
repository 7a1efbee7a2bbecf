"""The pod that plans: the task image twice, with nothing else in it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from support.golden import check_golden
from support.pod_security import restricted_faults

from casewarden.core.network import Owner
from casewarden.core.observe import observe
from casewarden.core.plan_pod import PLAN, PLAN_AGAIN, PlanContext, plan_pod

CONTEXT = PlanContext(
    owner=Owner("kv", "9b2f6f0e-6f0a-4d6e-9df3-0c5a2f6a1b2c"),
    namespace="evals",
    task_image="casewarden-tasks:dev",
    task_command=("casewarden-task", "casewarden_tasks.durable_kv:PACK"),
    seeds=(17, 41),
    params={"level": "$(LEVEL)"},
    families=("read-write-delete",),
)


def test_the_pod_is_the_one_that_was_looked_at():
    check_golden(Path(__file__).parent / "golden" / "plan_pod.yaml", plan_pod(CONTEXT, 2))


def test_it_passes_restricted():
    assert list(restricted_faults(plan_pod(CONTEXT, 1)["spec"])) == []


def test_both_containers_are_asked_the_same_in_the_same_way():
    one, other = plan_pod(CONTEXT, 1)["spec"]["containers"]
    assert (one["name"], other["name"]) == (PLAN, PLAN_AGAIN)
    differ = {"name", "volumeMounts"}
    assert {k: v for k, v in one.items() if k not in differ} == {k: v for k, v in other.items() if k not in differ}
    asked = json.loads(one["env"][0]["value"].replace("$$", "$"))
    assert asked == {"seeds": [17, 41], "params": {"level": "$(LEVEL)"}, "families": ["read-write-delete"]}


def test_it_has_no_token_and_no_network():
    pod = plan_pod(CONTEXT, 1)
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert pod["metadata"]["labels"]["casewarden.dev/network"] == "none"
    assert all("projected" not in volume for volume in pod["spec"]["volumes"])


def test_each_try_has_a_name_of_its_own_and_a_limit():
    assert plan_pod(CONTEXT, 1)["metadata"]["name"] != plan_pod(CONTEXT, 2)["metadata"]["name"]
    assert plan_pod(replace(CONTEXT, pending_seconds=60, plan_seconds=30), 1)["spec"]["activeDeadlineSeconds"] == 90


def test_the_operator_recognises_it():
    pod = plan_pod(CONTEXT, 1)
    pod["metadata"]["uid"] = "pod-uid"
    record = observe(pod)
    assert record is not None
    assert (record.role, record.attempt, record.run_uid) == ("plan", None, CONTEXT.owner.uid)
