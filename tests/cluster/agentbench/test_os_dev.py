"""AgentBench's own OS samples of the dev split, by the reference; docs/packs/agentbench-os.md says what to expect."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest
from support.agentbench_data import packed
from support.kubectl import Kubectl, condition, evalrun, message
from support.offers import offering

TASK = "agentbench-os"


@pytest.fixture(scope="module")
def dev(kubectl: Kubectl, module_namespace: str) -> Iterator[str]:
    """A namespace that admits root and holds the data, which the catalogue has as the data set ``agentbench``."""
    kubectl("label", "namespace", module_namespace, "pod-security.kubernetes.io/enforce=baseline", "--overwrite")
    kubectl.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "agentbench", "namespace": module_namespace},
            "binaryData": {"agentbench.tar.xz": base64.b64encode(packed("data/os_interaction")).decode()},
        }
    )

    def add(catalogue: dict[str, Any]) -> None:
        archive = {"volume": {"configMap": {"name": "agentbench"}}, "path": "agentbench.tar.xz"}
        catalogue["tasks"][TASK]["datasets"] = {
            "agentbench": archive,
            "another": {**archive, "sha256": "0" * 64},
            "missing": {**archive, "volume": {"configMap": {"name": "no-such"}}},
        }

    with offering(kubectl, add):
        yield module_namespace


def run(namespace: str, name: str, control: str = "reference", **params: Any) -> dict[str, Any]:
    return evalrun(namespace, name, task={"name": TASK, "params": {"dataset": "agentbench", **params}},
                   seeds={"values": [0]}, candidate={"control": control}, parallelism=10)  # fmt: skip


def test_the_reference_passes_what_was_said_beforehand_that_it_passes(kubectl: Kubectl, dev: str) -> None:
    kubectl.apply(run(dev, "dev", split="dev"))
    status = kubectl.finished(dev, "dev", 280)
    assert (status["valid"], status["score"], status["assessed"]) == (True, "1", "26/26"), status
    assert status["attempts"]["environmentRetries"] == 0, status


@pytest.mark.parametrize(
    ("name", "params", "when", "told"),
    [
        ("wrong-digest", {"dataset": "another"}, "Planned", "data set 'another' at "),
        ("no-data", {"dataset": "missing"}, "Planned", "where nothing is; mount it, or name another"),
        ("unknown-data", {"dataset": "nowhere"}, "Accepted", "(agentbench, another, missing)"),
        ("unknown-index", {"indices": ["dev-001-dev-00026"]}, "Planned", "there is no sample 'dev-001-dev-00026'"),
        ("no-std", {"split": "std"}, "Planned", "there is no data/os_interaction/data/1/*.json* in the data set"),
    ],
)
def test_what_is_wrong_with_the_data_is_told_by_its_field(
    kubectl: Kubectl, dev: str, name: str, params: dict[str, Any], when: str, told: str
) -> None:
    kubectl.apply(run(dev, name, **params))
    status = kubectl.finished(dev, name, 120)
    assert condition(status, when) == "False", status["conditions"]
    assert "spec.task.params." in message(status, when)
    assert told in message(status, when)
