"""The commands that runbooks and the page for operations name: each is one that works, on a run that is over."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from support.kubectl import Kubectl, evalrun
from support.pages import COMMANDS, INLINE, ON_A_CLUSTER

ROOT = Path(__file__).resolve().parents[2]
SYSTEM = "casewarden-system"
# What a test of its own does, with the release that it makes and removes.
ELSEWHERE = ("helm ", "kubectl apply", "kubectl delete crd")


@pytest.fixture(scope="module")
def run(kubectl: Kubectl, module_namespace: str) -> dict[str, str]:
    """What the words in capitals stand for."""
    kubectl.apply(
        evalrun(module_namespace, "over", task={"name": "support-routing"}, seeds={"values": [17]},
                candidate={"control": "null-agent"}),
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": module_namespace},
         "spec": {"hard": {"pods": "20"}}},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
         "metadata": {"name": "casewarden-evidence", "namespace": SYSTEM},
         "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    )  # fmt: skip
    status = kubectl.finished(module_namespace, "over")
    failure = status["failures"][0]
    return {"NAMESPACE": module_namespace, "RUN": "over", "NAME": "over", "CASE": failure["case"],
            "UID": kubectl.get("evalrun", module_namespace, "over")["metadata"]["uid"]}  # fmt: skip


def shell(line: str, run: dict[str, str], kubectl: Kubectl) -> subprocess.CompletedProcess[str]:
    for word, meaning in run.items():
        line = re.sub(rf"\b{word}\b", meaning, line)
    path = f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(["bash", "-c", f"set -o pipefail; {line}"], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "KUBECONFIG": kubectl.kubeconfig, "PATH": path}, check=False)  # fmt: skip


def test_commands_within_the_text_work(kubectl: Kubectl, run: dict[str, str]) -> None:
    failed = {}
    # A relay that is started again is not there for those after it.
    for line in sorted(INLINE, key=lambda line: "rollout" in line):
        done = shell(line, run, kubectl)
        # Exit code 1 of our own command: the run was assessed and found wanting.
        if done.returncode not in ((0, 1) if line.startswith("casewarden watch") else (0,)):
            failed[line] = done.stderr
    kubectl("rollout", "status", "-n", SYSTEM, "deployment/casewarden-relay", "--timeout=90s", seconds=100)
    assert failed == {}


def test_commands_that_stand_alone_work(kubectl: Kubectl, run: dict[str, str]) -> None:
    lines = [line for line in COMMANDS if line in ON_A_CLUSTER and not line.startswith(ELSEWHERE)]
    assert len(lines) >= 2
    for line in lines:
        done = shell(line, run, kubectl)
        assert done.returncode == 0, f"{line}: {done.stderr}"
