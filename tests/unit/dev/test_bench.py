from __future__ import annotations

import json
from typing import Any

import pytest
from bench.__main__ import USUAL, _parts, main
from bench.operator_process import NODES, pretended
from bench.pods import LOOP_ATTEMPT, Seen, _twin_of, _wall

from casewarden.api.attempt import TerminationMessage
from casewarden.api.names import case_pod_name, config_map_name
from casewarden.core.observe import observe
from devkit import kwok


def a_pod(run: dict[str, str]) -> dict[str, Any]:
    """Return a case pod as far as a benchmark looks at it."""
    told = {"run_uid": run["uid"], "attempt": 1, "pod_name": "p", "dimensions": ["a", "b"]}
    workspace = config_map_name(run["name"], run["uid"], "workspace")
    return {
        "metadata": {
            "name": "p",
            "namespace": "evals",
            "uid": "p-1",
            "labels": {"app.kubernetes.io/managed-by": "casewarden", "casewarden.dev/run-uid": run["uid"],
                       "casewarden.dev/role": "case"},
            "annotations": {"casewarden.dev/seed": "3", "casewarden.dev/case": "c", "casewarden.dev/repeat": "0",
                            "casewarden.dev/attempt": "1"},
            "ownerReferences": [{"kind": "EvalRun", "name": run["name"], "uid": run["uid"], "controller": True}],
        },
        "spec": {
            "nodeName": "node-1",
            "initContainers": [{"env": [{"name": "CASEWARDEN_ATTEMPT", "value": json.dumps(told)}]}],
            "volumes": [{"name": "workspace", "configMap": {"name": workspace}}],
        },
    }  # fmt: skip


RUN, TWIN = {"name": "played", "uid": "11-11"}, {"name": "looped", "uid": "22-22"}


def test_the_usual_benchmarks_are_all_known() -> None:
    assert all(_parts(name) for name in USUAL)
    assert _parts("kwok-40") == ("kwok", 40)


@pytest.mark.parametrize("name", ["kwok", "nothing-3", "step-many", ""])
def test_a_benchmark_that_is_not_known_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name]) == 2
    assert "kwok" in capsys.readouterr().err


def test_a_pod_for_a_pretended_node_passes_every_check_and_tolerates_the_nodes_taint() -> None:
    made = pretended(a_pod(RUN), 2)
    told = TerminationMessage.parse(made["metadata"]["annotations"]["kwok.casewarden.dev/termination-message"])
    assert (told.status, told.checks) == ("passed", "11")
    assert made["metadata"]["annotations"]["casewarden.dev/case"] == "c"
    assert made["spec"]["nodeSelector"] == kwok.LABELS
    assert NODES["tolerations"][0]["key"] == kwok.TAINT["key"]  # type: ignore[index]


def test_a_twin_is_a_pod_of_the_other_run_for_the_same_case() -> None:
    made = _twin_of(a_pod(RUN), RUN, TWIN)
    assert RUN["uid"] not in json.dumps(made)
    assert made["metadata"]["name"] == case_pod_name("looped", "22-22", 3, "c", 0, LOOP_ATTEMPT)
    assert made["spec"]["volumes"][0]["configMap"]["name"] == config_map_name("played", "11-11", "workspace")
    assert "nodeName" not in made["spec"]
    record = observe({**made, "metadata": {**made["metadata"], "namespace": "evals", "uid": "x"}})
    assert record is not None
    assert record.attempt is not None, "the relay and the operator take it for the attempt that it says"


def test_the_wall_time_is_from_the_first_pod_to_the_last_verdict() -> None:
    pods = [Seen({}, {"created": 1.0, "ended": 4.0}), Seen({}, {"created": 2.0, "ended": 3.0})]
    assert _wall(pods) == 3.0
