"""What users see of the resource itself: documentation, columns, and what may be changed of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.kubectl import Kubectl, evalrun

FULL: dict[str, Any] = {
    "task": {"name": "durable-kv", "params": {"a": {"b": 1}}},
    "seeds": {"values": [17, 41]},
    "select": {"families": ["read-write-delete"]},
    "repeats": 2,
    "candidate": {"program": {"workspace": {"configMap": "mine"}, "argv": ["python3", "main.py"]}},
    "parallelism": 3,
    "limits": {"caseSeconds": 60, "actions": 10},
    "retries": {"environment": 1},
    "aggregation": "weighted-dimensions/v1",
    "threshold": {"score": "0.8"},
    "baseline": {"evalRun": "before"},
    "audit": {"policy": "Ignore"},
    "priority": 1,
    "podTemplate": {"nodeSelector": {"disk": "ssd"}},
    "keepPods": "Never",
    "suspend": True,
    "activeDeadlineSeconds": 60,
    "ttlSecondsAfterFinished": 3600,
}
OTHER: dict[str, Any] = {
    "task": {"name": "durable-kv", "params": {"a": {"b": 2}}},
    "seeds": {"values": [17]},
    "select": {"families": ["rollback-batch"]},
    "repeats": 1,
    "candidate": {"control": "reference"},
    "limits": {"caseSeconds": 50, "actions": 10},
    "retries": {"environment": 2},
    "aggregation": "agentbench/v1",
    "threshold": {"score": "0.7"},
    "baseline": {"evalRun": "after"},
    "audit": {"policy": "Warn"},
    "podTemplate": {"nodeSelector": {"disk": "hdd"}},
    "keepPods": "OnFailure",
    "activeDeadlineSeconds": 90,
}
MUTABLE: dict[str, Any] = {"suspend": False, "parallelism": 4, "priority": 2, "ttlSecondsAfterFinished": 7}


@pytest.fixture(scope="module")
def run(kubectl: Kubectl, module_namespace: str) -> str:
    kubectl.apply(evalrun(module_namespace, "full", **FULL))
    return module_namespace


def patch(kubectl: Kubectl, namespace: str, spec: dict[str, Any]) -> str:
    """Try a change on the server without making it; return what was said."""
    body = json.dumps({"spec": spec})
    return kubectl(
        "patch", "evalrun", "full", "-n", namespace, "--type=merge", "--dry-run=server", "-p", body, check=False
    )


@pytest.mark.parametrize("field", OTHER)
def test_a_field_that_says_what_is_evaluated_can_be_neither_changed_nor_removed(
    kubectl: Kubectl, run: str, field: str
) -> None:
    for value in (OTHER[field], None):
        said = patch(kubectl, run, {field: value})
        # A field with a default comes back when it is removed, and a required one cannot be missing at all.
        unchanged = value is None and ("no change" in said or "Required value" in said)
        assert unchanged or f"spec.{field}: Forbidden: {field} is fixed when the EvalRun is created" in said, said


def test_every_other_field_is_tried() -> None:
    assert set(OTHER) | set(MUTABLE) == set(FULL)


@pytest.mark.parametrize("field", MUTABLE)
def test_a_field_that_says_how_to_go_on_can_be_changed(kubectl: Kubectl, run: str, field: str) -> None:
    assert "patched" in patch(kubectl, run, {field: MUTABLE[field]})


@pytest.mark.parametrize("field", ["podTemplate", "baseline", "threshold"])
def test_a_field_cannot_be_added_later(kubectl: Kubectl, module_namespace: str, field: str) -> None:
    needed = {name: FULL[name] for name in ("task", "seeds", "candidate")}
    kubectl.apply(evalrun(module_namespace, "plain", **needed, suspend=True))
    body = json.dumps({"spec": {field: FULL[field]}})
    said = kubectl("patch", "evalrun", "plain", "-n", module_namespace, "--type=merge", "-p", body, check=False)
    assert f"spec.{field}: Forbidden: {field} is fixed" in said


def test_defaults_are_shown(kubectl: Kubectl, module_namespace: str) -> None:
    kubectl.apply(
        evalrun(module_namespace, "short", task={"name": "durable-kv"}, seeds={"values": [17]}, suspend=True,
                candidate={"control": "reference"})
    )  # fmt: skip
    spec = kubectl.get("er", module_namespace, "short")["spec"]
    assert spec["retries"] == {"environment": 2, "interruptions": 5}
    assert (spec["repeats"], spec["parallelism"], spec["keepPods"]) == (1, 10, "Never")


def test_explain_reads_as_documentation(kubectl: Kubectl) -> None:
    text = kubectl("explain", "evalrun.spec", "--recursive=false")
    assert "How many cases run at once at most" in text
    assert "<no description>" not in text
    for field in FULL:
        assert f"  {field}\t<" in text


def test_the_table_has_the_columns_that_people_look_for(kubectl: Kubectl, run: str) -> None:
    assert kubectl("get", "er", "-n", run).split("\n")[0].split() == [
        "NAME",
        "PROGRESS",
        "SCORE",
        "VALID",
        "PASSED",
        "AGE",
    ]
    wide = kubectl("get", "evals", "-n", run, "-o", "wide").split("\n")[0].split()
    assert wide[-4:] == ["TASK", "ASSESSED", "ERRORS", "DURATION"]
