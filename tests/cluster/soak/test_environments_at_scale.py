"""What AgentBench's environments need much of: twenty databases at once, and the two larger sandboxes of OS."""

from __future__ import annotations

import base64
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from support.kubectl import Kubectl, evalrun
from support.offers import offering

ROOT = Path(__file__).resolve().parents[3]
DATABASES, REPEATS = 31, 4
SANDBOXES = ("os-packages", "os-ubuntu")
PROBLEMS = [
    {
        "description": "How many files are there in /srv/box? Answer with the number.",
        "create": {
            "local": name.removeprefix("os-"),
            "init": {"code": "mkdir -p /srv/box; touch /srv/box/a /srv/box/b"},
        },
        "evaluation": {"match": "2", "example": {"code": "ls /srv/box | wc -l"}},
    }
    for name in SANDBOXES
]


def _moment(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


@pytest.mark.timeout(1800)
def test_databases_of_many_cases_at_once_share_nothing(kubectl: Kubectl, namespace: str) -> None:
    seen: dict[str, dict[str, float]] = {}
    kubectl.apply(
        evalrun(namespace, "many", task={"name": "agentbench-db"}, seeds={"values": [0]}, repeats=REPEATS,
                parallelism=20, candidate={"control": "reference"})
    )  # fmt: skip

    def over() -> dict[str, Any] | None:
        for pod in kubectl.pods_of(namespace, "many"):
            states = {item["name"]: item["state"] for item in pod["status"].get("containerStatuses", ())}
            ended = states.get("task", {}).get("terminated")
            if ended:
                made, began, end = pod["metadata"]["creationTimestamp"], ended["startedAt"], ended["finishedAt"]
                seen[pod["metadata"]["name"]] = {
                    "start": _moment(began) - _moment(made), "play": _moment(end) - _moment(began)
                }  # fmt: skip
        status = kubectl.status(namespace, "many")
        return status if status.get("completionTime") else None

    status = kubectl.until(over, 1500, lambda: kubectl.picture(namespace))
    assert (status["score"], status["cases"]["passed"], status["valid"]) == ("1", DATABASES * REPEATS, True), status
    assert status["attempts"] == {
        "total": DATABASES * REPEATS, "interruptions": 0, "environmentRetries": 0, "suspended": 0
    }, status["attempts"]  # fmt: skip
    phases = {name: round(median(one[name] for one in seen.values()), 1) for name in ("start", "play")}
    print(f"{DATABASES * REPEATS} databases, 20 at once: median seconds {phases}, of {len(seen)} seen pods")


@pytest.mark.timeout(1800)
def test_each_of_the_larger_sandboxes_is_played_in(
    kubectl: Kubectl, kubeconfig: str, namespace: str, casewarden: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    name = Path(kubeconfig).resolve().parent.name
    subprocess.run([str(ROOT / "dev" / "cluster"), "load", *SANDBOXES], env={**os.environ, "CLUSTER_NAME": name},
                   timeout=1500, check=True, capture_output=True)  # fmt: skip
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=baseline", "--overwrite")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as archive:
        data = json.dumps(PROBLEMS).encode()
        member = tarfile.TarInfo("AgentBench/data/os_interaction/data/dev.json")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))

    def add(catalogue: dict[str, Any]) -> None:
        catalogue["images"] |= {sandbox: f"docker.io/library/casewarden-{sandbox}:dev" for sandbox in SANDBOXES}
        kept = {"volume": {"configMap": {"name": "problems"}}, "path": "problems.tar.xz"}
        catalogue["tasks"]["agentbench-os"]["datasets"] = {"problems": kept}

    with offering(kubectl, add):
        kubectl.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "problems", "namespace": namespace},
             "binaryData": {"problems.tar.xz": base64.b64encode(buffer.getvalue()).decode()}},
            evalrun(namespace, "larger", seeds={"values": [0]}, candidate={"control": "reference"},
                    task={"name": "agentbench-os", "params": {"dataset": "problems", "images": "declared"}}),
        )  # fmt: skip
        status = kubectl.finished(namespace, "larger", 280)
    assert (status["score"], status["cases"]["passed"]) == ("1", len(SANDBOXES)), status
