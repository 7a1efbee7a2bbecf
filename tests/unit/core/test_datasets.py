"""Data sets by reference: one read-only volume in every container that runs a task's code, and in no other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.golden import check_golden
from support.pod_security import containers, restricted_faults

from casewarden.api.catalogue import Catalogue
from casewarden.core.aggregate_pod import aggregate_pod
from casewarden.core.datasets import VARIABLE
from casewarden.core.model import AttemptKey, CaseKey, PlannedCase
from casewarden.core.network import Owner
from casewarden.core.observe import observe
from casewarden.core.plan_pod import PlanContext, plan_pod
from casewarden.core.pods import CandidateSpec, EnvironmentSpec, KindSpec, PodContext, case_pod
from casewarden.core.validate import validate_manifest
from casewarden_sdk.contract import Limits

CATALOGUE = Catalogue.model_validate(
    {
        "tasks": {
            "agentbench-os": {
                "image": "tasks:1",
                "datasets": {
                    "checkout": {"volume": {"persistentVolumeClaim": {"claimName": "ab"}}, "path": "ab.tar.xz"},
                    "pinned": {"volume": {"configMap": {"name": "ab"}}, "sha256": "0" * 64},
                },
            }
        }
    }
)
DATASETS = CATALOGUE.tasks["agentbench-os"].dataset_places
OWNER = Owner("os", "9b2f6f0e-6f0a-4d6e-9df3-0c5a2f6a1b2c")
PLAN = PlanContext(OWNER, "evals", "tasks:1", (), (0,), {"dataset": "checkout"}, DATASETS)
CASES = PodContext(
    owner=OWNER,
    namespace="evals",
    task_image="tasks:1",
    task_command=(),
    evidence_image="evidence:1",
    relay_url="http://relay.casewarden-system.svc:8080",
    limits=Limits(),
    kinds={"default": KindSpec("python:1", (EnvironmentSpec("shell", "python:1"),))},
    candidate=CandidateSpec(default_argv=("main",)),
    params={"dataset": "checkout"},
    datasets=DATASETS,
)
KEY = AttemptKey(CaseKey(0, "a", 0), 1)


def pods(params: dict[str, Any]) -> dict[str, dict[str, Any]]:
    cases = replace(CASES, params=params)
    return {
        "plan": plan_pod(replace(PLAN, params=params), 1),
        "case": case_pod(cases, PlannedCase(0, "a", ("success",), "default", "c0" * 32), KEY),
        "aggregate": aggregate_pod(cases, ["outputs-1-0", "outputs-1-1"], 1),
    }


def with_data(pod: dict[str, Any]) -> dict[str, bool]:
    return {
        item["name"]: mount.get("readOnly", False)
        for item in containers(pod["spec"])
        for mount in item["volumeMounts"]
        if mount["name"] == "dataset"
    }


def told(pod: dict[str, Any], name: str) -> Any:
    item = next(item for item in containers(pod["spec"]) if item["name"] == name)
    return json.loads(next(variable["value"] for variable in item["env"] if variable["name"] == VARIABLE))


def test_only_what_runs_the_task_s_code_has_the_data_and_none_may_write_it() -> None:
    found = {name: with_data(pod) for name, pod in pods({"dataset": "checkout"}).items()}
    assert found == {
        "plan": {"plan": True, "plan-again": True},
        "case": {"task": True},
        "aggregate": {"aggregate": True},
    }


@pytest.mark.parametrize("name", ["plan", "case", "aggregate"])
def test_the_volume_is_the_named_one_and_the_pod_passes_restricted(name: str) -> None:
    pod = pods({"dataset": "checkout"})[name]
    (volume,) = [item for item in pod["spec"]["volumes"] if item["name"] == "dataset"]
    assert volume["persistentVolumeClaim"] == {"claimName": "ab", "readOnly": True}
    assert list(restricted_faults(pod["spec"])) == []
    who = {"plan": "plan", "case": "task", "aggregate": "aggregate"}[name]
    assert told(pod, who) == {
        "checkout": {"path": "/casewarden/datasets/checkout/ab.tar.xz"},
        "pinned": {"path": "/casewarden/datasets/pinned", "sha256": "0" * 64},
    }


def test_a_configmap_that_is_not_there_is_for_the_task_to_tell() -> None:
    (volume,) = [item for item in pods({"dataset": "pinned"})["plan"]["spec"]["volumes"] if item["name"] == "dataset"]
    assert volume["configMap"] == {"name": "ab", "optional": True}


@pytest.mark.parametrize("params", [{}, {"dataset": "other"}, {"dataset": 3}])
def test_a_run_that_names_none_of_them_has_no_such_volume(params: dict[str, Any]) -> None:
    assert not any(with_data(pod) for pod in pods(params).values())


def test_the_pod_of_a_score_is_the_one_that_was_looked_at_and_is_seen_as_the_run_s() -> None:
    pod = pods({"dataset": "checkout"})["aggregate"]
    check_golden(Path(__file__).parent / "golden" / "aggregate_pod.yaml", pod)
    pod["metadata"]["uid"] = "pod-1"
    record = observe(pod)
    assert record is not None
    assert (record.role, record.run_uid, record.attempt) == ("aggregate", OWNER.uid, None)


@pytest.mark.parametrize(
    "dataset",
    [
        {"volume": {}},
        {"volume": {"hostPath": {"path": "/"}}},
        {"volume": {"configMap": {"name": "a"}, "csi": {}}},
        {"volume": {"configMap": {"name": "a"}}, "path": "/absolute"},
        {"volume": {"configMap": {"name": "a"}}, "sha256": "abc"},
    ],
)
def test_a_catalogue_with_a_data_set_that_is_none_is_refused(dataset: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Catalogue.model_validate({"tasks": {"a": {"image": "i", "datasets": {"d": dataset}}}})


def test_a_run_that_names_an_unknown_data_set_is_not_accepted_and_hears_which_there_are() -> None:
    document = {
        "apiVersion": "casewarden.dev/v1alpha1",
        "kind": "EvalRun",
        "metadata": {"name": "a"},
        "spec": {
            "task": {"name": "agentbench-os", "params": {"dataset": "chekout"}},
            "seeds": {"values": [0]},
            "candidate": {"control": "reference"},
        },
    }
    (problem,) = validate_manifest(document, CATALOGUE)
    assert problem.field == "spec.task.params.dataset"
    assert "checkout, pinned" in str(problem)
