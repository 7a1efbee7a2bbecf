"""What the candidates score that do nothing, and those that crash at their start."""

from __future__ import annotations

from typing import Any

import pytest
from support.candidates import CRASHES, FINISHES_AT_ONCE
from support.kubectl import Kubectl, evalrun, workspace


def assess(kubectl: Kubectl, namespace: str, name: str, task: str, program: str) -> dict[str, Any]:
    """Run a one-file program at seed 17 and return the finished run's status."""
    kubectl.apply(
        workspace(namespace, name, {"main.py": program}),
        evalrun(namespace, name, task={"name": task}, seeds={"values": [17]}, parallelism=8,
                candidate={"program": {"workspace": {"configMap": name}}}),
    )  # fmt: skip
    status = kubectl.finished(namespace, name, seconds=300)
    assert status["valid"] is True, status
    return status


@pytest.mark.parametrize(
    ("task", "program", "score", "count"),
    [
        ("support-routing", FINISHES_AT_ONCE, "0.35", "failed"),
        ("support-routing", CRASHES, "0.25", "agentErrors"),
        ("durable-kv", FINISHES_AT_ONCE, "0", "failed"),
        ("durable-kv", CRASHES, "0", "agentErrors"),
    ],
    ids=["do-nothing-support", "crash-support", "do-nothing-kv", "crash-kv"],
)
def test_the_floor_is_known(kubectl: Kubectl, namespace: str, task: str, program: str, score: str, count: str) -> None:
    status = assess(kubectl, namespace, "floor", task, program)
    assert status["score"] == score
    assert status["cases"][count] == status["cases"]["total"]
