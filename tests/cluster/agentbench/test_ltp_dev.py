"""AgentBench's 20 dev puzzles in real pods, with a scripted judge; the components' test says what must come out."""

from __future__ import annotations

import base64
from typing import Any

from support.agentbench_data import packed
from support.kubectl import Kubectl, evalrun
from support.offers import offering
from support.scripted import scripted_models


def test_the_reference_finds_every_part_of_all_twenty(kubectl: Kubectl, namespace: str) -> None:
    def add(catalogue: dict[str, Any]) -> None:
        catalogue["tasks"]["agentbench-ltp"]["datasets"] = {
            "agentbench": {"volume": {"configMap": {"name": "agentbench"}}, "path": "agentbench.tar.xz"}
        }

    data = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "agentbench", "namespace": namespace},
        "binaryData": {"agentbench.tar.xz": base64.b64encode(packed("data/lateralthinkingpuzzle")).decode()},
    }
    with offering(kubectl, add) as catalogue, scripted_models(kubectl, catalogue["images"]["python"]):
        kubectl.apply(
            data,
            evalrun(
                namespace, "dev", parallelism=20, candidate={"control": "reference"}, seeds={"values": [0]},
                task={
                    "name": "agentbench-ltp",
                    "params": {"dataset": "agentbench", "split": "dev"},
                    "models": {"judge": {"endpoint": "scripted", "name": "puzzle-judge"}},
                },
            ),
        )  # fmt: skip
        status = kubectl.finished(namespace, "dev", 290)
    assert (status["score"], status["resolved"], status["cases"]["passed"]) == ("1", True, 20), status
