"""The dev split of AgentBench's DB, played from its labels: what comes out was written down before it was first run."""

from __future__ import annotations

import base64
from typing import Any

from support.agentbench_data import packed
from support.kubectl import Kubectl, evalrun
from support.offers import offering

ROWS_OF = "data/dbbench/dev.jsonl"
ROWS = 60
# docs/packs/agentbench-db.md says why.
EXCLUDED = {5}


def test_all_rows_but_the_broken_one_pass_and_every_hash_is_that_of_the_data(kubectl: Kubectl, namespace: str) -> None:
    def add(catalogue: dict[str, Any]) -> None:
        catalogue["tasks"]["agentbench-db"]["datasets"] = {
            "agentbench": {"volume": {"configMap": {"name": "agentbench"}}, "path": "agentbench.tar.xz"}
        }

    archive = base64.b64encode(packed("data/dbbench")).decode()
    data = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "agentbench", "namespace": namespace},
        "binaryData": {"agentbench.tar.xz": archive},
    }
    with offering(kubectl, add):
        kubectl.apply(
            data,
            evalrun(
                namespace, "dev", parallelism=20, candidate={"control": "reference"}, seeds={"values": [0]},
                task={"name": "agentbench-db", "params": {"dataset": "agentbench", "dataFile": ROWS_OF}},
            ),
        )  # fmt: skip
        status = kubectl.finished(namespace, "dev", 290)
    assert status["cases"]["excluded"] == len(EXCLUDED)
    # A row to add or to change is passed exactly when the hash of its table is its answer_md5: all 40 are.
    assert (status["cases"]["passed"], status["cases"]["total"]) == (ROWS - len(EXCLUDED),) * 2, status
    assert {name: row["passed"] for name, row in status["dimensions"].items()} == {
        "select": 19,
        "insert": 20,
        "update": 20,
    }
    assert (status["score"], status["resolved"]) == ("1", True)
