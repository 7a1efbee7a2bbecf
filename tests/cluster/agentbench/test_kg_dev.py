"""AgentBench's 20 dev questions in real pods, over a graph made for them; the components' test says what comes out."""

from __future__ import annotations

import base64
import json
from typing import Any

from support.agentbench_data import DATA
from support.knowledge_graph import QUESTIONS, archive_of
from support.kubectl import Kubectl, evalrun, workspace
from support.offers import offering

from casewarden_tasks.agentbench_kg.planted import answering
from casewarden_tasks.agentbench_kg.questions import Question


def test_every_question_that_can_be_built_is_answered_by_its_own_program(kubectl: Kubectl, namespace: str) -> None:
    assert DATA is not None
    rows = json.loads((DATA / QUESTIONS).read_text(encoding="utf-8"))
    program = answering(Question(row["question"], row["entities"], (), tuple(row["actions"])) for row in rows)

    def add(catalogue: dict[str, Any]) -> None:
        catalogue["tasks"]["agentbench-kg"]["datasets"] = {
            "agentbench": {"volume": {"configMap": {"name": "agentbench"}}, "path": "agentbench.tar.xz"}
        }

    data = {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "agentbench", "namespace": namespace},
        "binaryData": {"agentbench.tar.xz": base64.b64encode(archive_of(DATA)).decode()},
    }  # fmt: skip
    with offering(kubectl, add):
        # Over what an annotation holds, so it is not applied.
        kubectl("create", "-f", "-", stdin=json.dumps(data))
        kubectl.apply(
            workspace(namespace, "gold", {"main.py": program}),
            evalrun(
                namespace, "dev", parallelism=20, seeds={"values": [0]},
                candidate={"program": {"workspace": {"configMap": "gold"}}},
                task={"name": "agentbench-kg", "params": {"dataset": "agentbench", "split": "dev"}},
            ),
        )  # fmt: skip
        status = kubectl.finished(namespace, "dev", 290)
    assert (status["score"], status["assessed"], status["cases"]["passed"]) == ("0.95", "20/20", 19), status
    assert [row["case"] for row in status["failures"]] == ["17"]
