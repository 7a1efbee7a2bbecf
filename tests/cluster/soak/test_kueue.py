"""Kueue itself, over plain pods: it holds a run's pods back, admits them one after another, and lets them go."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.helm import Helm
from support.kubectl import FINISHED, Kubectl, KubectlError, condition, evalrun

from devkit import programs

# Kueue has to be built first: four minutes of one core.
pytestmark = pytest.mark.timeout(2400)

ROOT = Path(__file__).resolve().parents[3]
SYSTEM, QUEUE, GATE = "kueue-system", "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/admission"
KIND = {"apiVersion": "kueue.x-k8s.io/v1beta2"}
COVERED = {"cpu": "64", "memory": "64Gi", "ephemeral-storage": "64Gi", "pods": 1}
"""What the queue has: one pod at a time, of whatever size."""
CASES = 4


def chart() -> str:
    """The folder of Kueue's own chart, which is in its module."""
    go, _ = programs.go()
    words = [go, "mod", "download", "-json", "sigs.k8s.io/kueue"]
    done = subprocess.run(words, cwd=programs.KUEUE.source, capture_output=True, text=True, timeout=600, check=True)
    return str(Path(json.loads(done.stdout)["Dir"]) / "charts" / "kueue")


def settings(namespace: str) -> dict[str, Any]:
    """Values of Kueue's chart: the integration of plain pods, in one namespace."""
    configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"}, "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": False}, "integrations": {"frameworks": ["pod"]},
        "managedJobsNamespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
    }  # fmt: skip
    image = {"repository": "casewarden-kueue", "tag": "dev", "pullPolicy": "IfNotPresent"}
    resources = {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}}
    return {
        "controllerManager": {"manager": {"image": image, "resources": resources}},
        "managerConfig": {"controllerManagerConfigYaml": yaml.safe_dump(configuration)},
    }


@pytest.fixture
def queued(kubectl: Kubectl, kubeconfig: str, namespace: str, tmp_path: Path) -> Iterator[str]:
    """A namespace whose queue `team-a` holds everything back at first."""
    helm = Helm(kubeconfig)
    name = Path(kubeconfig).resolve().parent.name
    subprocess.run([str(ROOT / "dev" / "cluster"), "load", "kueue"], env={**os.environ, "CLUSTER_NAME": name},
                   timeout=2000, check=True, capture_output=True)  # fmt: skip
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(settings(namespace)))
    helm("install", "kueue", chart(), "-n", SYSTEM, "--create-namespace", "--values", str(values), "--wait",
         "--timeout", "3m")  # fmt: skip
    try:
        flavor = {"name": "any", "resources": [{"name": name, "nominalQuota": much} for name, much in COVERED.items()]}
        kubectl.until(lambda: made(kubectl, {**KIND, "kind": "ResourceFlavor", "metadata": {"name": "any"}}), 60,
                      lambda: kubectl("get", "pods", "-n", SYSTEM))  # fmt: skip
        kubectl.apply(
            {**KIND, "kind": "ClusterQueue", "metadata": {"name": "teams"},
             "spec": {"namespaceSelector": {}, "stopPolicy": "Hold",
                      "resourceGroups": [{"coveredResources": list(COVERED), "flavors": [flavor]}]}},
            {**KIND, "kind": "LocalQueue", "metadata": {"name": "team-a", "namespace": namespace},
             "spec": {"clusterQueue": "teams"}},
        )  # fmt: skip
        yield namespace
        kubectl("delete", "evalruns", "--all", "-n", namespace)
        kubectl.until(lambda: not kubectl.list("pods", namespace), 60, lambda: kubectl.picture(namespace))
        kubectl("delete", "localqueue/team-a", "-n", namespace)
        kubectl("delete", "clusterqueue/teams")
        kubectl("delete", "resourceflavor/any")
    finally:
        helm("uninstall", "kueue", "-n", SYSTEM, "--wait")
        kubectl("delete", "namespace", SYSTEM, "--wait=false")


def made(kubectl: Kubectl, document: dict[str, Any]) -> bool:
    """Whether an object could be applied: Kueue's webhooks answer some seconds after its pod is ready."""
    try:
        kubectl.apply(document)
    except KubectlError:
        return False
    return True


def test_a_run_waits_for_its_queue_and_plays_as_the_queue_lets_it(kubectl: Kubectl, queued: str) -> None:
    kubectl.apply(
        evalrun(queued, "queued", task={"name": "support-routing"}, seeds={"values": [17]}, parallelism=2,
                candidate={"control": "reference"}, limits={"pendingSeconds": 86400},
                podTemplate={"labels": {QUEUE: "team-a"}})
    )  # fmt: skip
    (held,) = kubectl.until(lambda: kubectl.list("pods", queued), 60, lambda: kubectl.picture(queued))
    assert held["metadata"]["labels"][QUEUE] == "team-a"
    assert {"name": GATE} in held["spec"]["schedulingGates"]
    kubectl("patch", "clusterqueue", "teams", "--type=merge", "-p", '{"spec": {"stopPolicy": "None"}}')
    gated, let_go = 0, 0

    def over() -> bool:
        nonlocal gated, let_go
        pods = [pod for pod in kubectl.list("pods", queued) if pod["status"]["phase"] in ("Pending", "Running")]
        waiting = [pod for pod in pods if pod["spec"].get("schedulingGates")]
        gated, let_go = max(gated, len(waiting)), max(let_go, len(pods) - len(waiting))
        return condition(kubectl.status(queued, "queued"), FINISHED) == "True"

    kubectl.until(over, 240, lambda: kubectl.picture(queued))
    status = kubectl.status(queued, "queued")
    assert (status["score"], status["attempts"]["total"], status["attempts"]["environmentRetries"]) == ("1", CASES, 0)
    # Of the two pods that the run makes at a time the queue lets one go.
    assert gated >= 1
    assert let_go == 1
