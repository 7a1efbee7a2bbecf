"""Rules that the API server and Python both check: here the Python half; `tests/cluster` has the other."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from casewarden.api.candidate import Candidate, Program, Server, Workspace
from casewarden.api.evalrun import EvalRunSpec, Seeds, TaskRef, Threshold
from casewarden.api.podtemplate import PodTemplate

PROGRAM = {"argv": ["run"]}
SERVER = {"image": "a:1", "argv": ["serve"], "port": 80}
MODEL = {"endpoint": "team", "name": "m"}


@pytest.mark.parametrize(
    ("model", "good"),
    [
        (Candidate, {"program": PROGRAM}),
        (Candidate, {"program": PROGRAM, "model": MODEL}),
        (Candidate, {"server": SERVER, "model": MODEL}),
        (Candidate, {"model": MODEL}),
        (Candidate, {"control": "reference"}),
        (Program, {"workspace": {"digest": "sha256:" + "a" * 64}}),
        (Program, {"image": "registry.example:5000/a/b@sha256:" + "0" * 64, "argv": ["{python}", "-c", "pass\n"]}),
        (Workspace, {"configMap": "mine"}),
        (Seeds, {"values": [0, 2**53 - 1]}),
        (Seeds, {"random": 256}),
        (TaskRef, {"image": "a:1"}),
        (Threshold, {"score": "1"}),
        (Threshold, {"score": "1.0", "dimensions": {"crash_recovery": "0.12345678"}}),
        (
            PodTemplate,
            {"labels": {"kueue.x-k8s.io/queue-name": "q", "team": ""}, "annotations": {"a.example/b": "x y"}},
        ),
        (
            PodTemplate,
            {"candidate": {"resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "500m", "memory": "2Gi"}}}},
        ),
    ],
)
def test_what_makes_sense_is_taken(model: type[BaseModel], good: dict[str, Any]) -> None:
    assert model.model_validate(good)


@pytest.mark.parametrize(
    ("model", "bad"),
    [
        (Candidate, {"server": SERVER, "control": "reference"}),
        (Candidate, {"program": PROGRAM, "server": SERVER, "control": "reference"}),
        (Server, {**SERVER, "env": [{"name": "A"}, {"name": "B"}, {"name": "A"}]}),
        (Seeds, {}),
        (Seeds, {"random": 257}),
        (TaskRef, {}),
        (TaskRef, {"name": "durable-kv\n"}),
        (Threshold, {"dimensions": {}}),
        (Threshold, {"score": "0.123456789"}),
        (Threshold, {"score": "-0"}),
        (Threshold, {"score": "1.00000001"}),
        (PodTemplate, {"labels": {"app.kubernetes.io/managed-by": "me"}}),
        (PodTemplate, {"annotations": {"/x": "y"}}),
    ],
)
def test_what_makes_no_sense_is_refused(model: type[BaseModel], bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(bad)


def test_a_spec_comes_back_from_json_as_it_was() -> None:
    spec = EvalRunSpec.model_validate(
        {
            "task": {"name": "durable-kv"},
            "seeds": {"random": 3},
            "candidate": {"program": PROGRAM},
            "ttlSecondsAfterFinished": 0,
        }
    )
    assert EvalRunSpec.model_validate(spec.to_json()) == spec
    assert spec.to_json()["ttlSecondsAfterFinished"] == 0
    assert "threshold" not in spec.to_json()
