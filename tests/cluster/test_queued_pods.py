"""A queue over plain pods, as Kueue is one: it holds case pods back, lets them go, and keeps them after their end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.kubectl import FINISHED, Kubectl, condition, evalrun
from support.queueing import FINALIZER, GATE, QUEUE, queueing

CASES = 4


@pytest.fixture
def queued(kubectl: Kubectl, namespace: str, here: str, tmp_path: Path) -> Iterator[str]:
    with queueing(kubectl, namespace, here, tmp_path):
        yield namespace
        for pod in kubectl.list("pods", namespace):
            patched(kubectl, pod, "/metadata/finalizers")


def patched(kubectl: Kubectl, pod: dict[str, Any], path: str) -> None:
    """Remove something from a pod; one that is gone has nothing to remove."""
    patch = json.dumps([{"op": "remove", "path": path}])
    meta = pod["metadata"]
    kubectl("patch", "pod", meta["name"], "-n", meta["namespace"], "--type=json", "-p", patch, check=False)


def let_go(kubectl: Kubectl, namespace: str) -> int:
    """Take the gate away from every pod that is held back; return how many there were."""
    held = [pod for pod in kubectl.list("pods", namespace) if pod["spec"].get("schedulingGates")]
    for pod in held:
        assert pod["metadata"]["labels"][QUEUE] == "team-a"
        assert pod["spec"]["schedulingGates"] == [{"name": GATE}]
        patched(kubectl, pod, "/spec/schedulingGates")
    return len(held)


def test_a_run_waits_for_its_queue_and_does_not_wait_for_pods_that_the_queue_keeps(
    kubectl: Kubectl, queued: str
) -> None:
    kubectl.apply(
        evalrun(queued, "queued", task={"name": "support-routing"}, seeds={"values": [17]}, parallelism=2,
                candidate={"control": "reference"}, limits={"pendingSeconds": 86400},
                podTemplate={"labels": {QUEUE: "team-a"}})
    )  # fmt: skip
    seen = 0

    def over() -> bool:
        nonlocal seen
        seen += let_go(kubectl, queued)
        return condition(kubectl.status(queued, "queued"), FINISHED) == "True"

    kubectl.until(over, 240, lambda: kubectl.picture(queued))
    status = kubectl.status(queued, "queued")
    assert (status["score"], status["attempts"]["total"]) == ("1", CASES)
    # The plan's pod and those of the cases.
    assert seen == CASES + 1
    kept = kubectl.until(lambda: all_deleted(kubectl, queued), 60, lambda: kubectl.picture(queued))
    assert len(kept) == CASES + 1
    assert all(pod["metadata"]["finalizers"] == [FINALIZER] for pod in kept)


def all_deleted(kubectl: Kubectl, namespace: str) -> list[dict[str, Any]] | None:
    """Return the pods that are there, once every one of them is being deleted."""
    pods = kubectl.list("pods", namespace)
    return pods if all("deletionTimestamp" in pod["metadata"] for pod in pods) else None
