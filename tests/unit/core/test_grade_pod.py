"""The pod that grades records again: the task image twice, behind one container that fetches them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from support.golden import check_golden
from support.pod_security import restricted_faults

from casewarden.core.grade_pod import FETCH, GRADE, GRADE_AGAIN, GradeContext, grade_pod
from casewarden.core.network import Owner
from casewarden.core.observe import observe

CONTEXT = GradeContext(
    owner=Owner("kv", "9b2f6f0e-6f0a-4d6e-9df3-0c5a2f6a1b2c"),
    namespace="evals",
    task_image="casewarden-tasks:dev",
    task_command=("casewarden-task", "casewarden_tasks.durable_kv:PACK"),
    evidence_image="casewarden-evidence:dev",
    relay_url="http://casewarden-relay.casewarden-system.svc:8080",
    relay_address="10.96.0.7",
    runs=(("0f5e2d3c-run", "sha256:" + "ab" * 32),),
    mutants=True,
)


def test_the_pod_is_the_one_that_was_looked_at() -> None:
    check_golden(Path(__file__).parent / "golden" / "grade_pod.yaml", grade_pod(CONTEXT, 1))


def test_it_passes_restricted() -> None:
    assert list(restricted_faults(grade_pod(CONTEXT, 1)["spec"])) == []


def test_both_graders_are_asked_the_same_and_cannot_write_the_records() -> None:
    one, other = grade_pod(CONTEXT, 1)["spec"]["containers"]
    assert (one["name"], other["name"]) == (GRADE, GRADE_AGAIN)
    assert one["command"] == ["casewarden-task", "casewarden_tasks.durable_kv:PACK", "grade"]
    assert (one["env"], one["command"]) == (other["env"], other["command"])
    assert json.loads(one["env"][0]["value"]) == {"records": "/records/records.jsonl.gz", "mutants": True}
    assert {"name": "records", "mountPath": "/records", "readOnly": True} in one["volumeMounts"]


def test_only_what_fetches_has_a_token_which_is_the_readers() -> None:
    spec = grade_pod(CONTEXT, 1)["spec"]
    (fetch,) = spec["initContainers"]
    assert (fetch["name"], spec["serviceAccountName"]) == (FETCH, "casewarden-reader")
    assert spec["automountServiceAccountToken"] is False
    holders = [
        item["name"] for item in (fetch, *spec["containers"]) if "token" in {m["name"] for m in item["volumeMounts"]}
    ]
    assert holders == [FETCH]
    asked = json.loads(fetch["env"][0]["value"])
    assert asked["runs"] == [{"uid": "0f5e2d3c-run", "digest": "sha256:" + "ab" * 32}]


def test_an_image_with_an_entry_point_of_its_own_gets_the_verb_alone() -> None:
    container = grade_pod(replace(CONTEXT, task_command=()), 1)["spec"]["containers"][0]
    assert (container["args"], "command" in container) == (["grade"], False)


def test_without_the_relays_address_it_asks_dns() -> None:
    assert grade_pod(replace(CONTEXT, relay_address=None), 1)["spec"]["dnsPolicy"] == "ClusterFirst"


def test_the_operator_recognises_it() -> None:
    pod = grade_pod(CONTEXT, 1)
    pod["metadata"]["uid"] = "pod-uid"
    record = observe(pod)
    assert record is not None
    assert (record.role, record.attempt) == ("grade", None)
    assert record.name.endswith("-1")
