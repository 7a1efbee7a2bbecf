"""Two operators on a cluster: one leads, the other takes over, and no run notices but by the time that it takes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support import strikes
from support.candidates import FINISHES_AFTER
from support.kubectl import Kubectl, condition, evalrun, workspace

from devkit import programs

pytestmark = pytest.mark.timeout(400)

CHART = str(Path(__file__).resolve().parents[2] / "charts" / "casewarden")
LEASE = DEPLOYMENT = "casewarden-operator"
OPERATOR = "app.kubernetes.io/component=operator"
CLAIM = "casewarden-evidence"
FAILOVER_SECONDS = 15.0
SUPPORT_CASES = 4
Pod = dict[str, Any]


def upgrade(kubectl: Kubectl, *sets: str) -> None:
    """Upgrade the release as it is, with these values changed, and wait until it is ready."""
    helm = shutil.which("helm") or str(programs.ensure(programs.CLUSTER) / "helm")
    words = [helm, "--kubeconfig", kubectl.kubeconfig, "upgrade", "casewarden", CHART, "-n", strikes.RELEASE]
    given = [word for item in sets for word in ("--set", item)]
    done = subprocess.run([*words, "--reuse-values", *given, "--wait", "--timeout", "3m"], capture_output=True,
                          text=True, timeout=200, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr + kubectl.picture(strikes.RELEASE)


@pytest.fixture(scope="module", autouse=True)
def two_operators(kubectl: Kubectl) -> Iterator[None]:
    """The release with a standby and with evidence that outlives the relay's pod; afterwards as it was."""
    # A folder of this machine, which the node is on.
    folder = Path(kubectl.kubeconfig).resolve().parent / "run" / "evidence"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    here = {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}
    spec = {"storageClassName": CLAIM, "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "local": {"path": str(folder)}, "persistentVolumeReclaimPolicy": "Retain",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [here]}}}  # fmt: skip
    kubectl.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": CLAIM}, "spec": spec})
    storage = ("relay.storage.type=pvc", f"relay.storage.storageClass={CLAIM}", "relay.storage.size=1Gi")
    try:
        upgrade(kubectl, "operator.replicas=2", *storage)
        yield
    finally:
        upgrade(kubectl, "operator.replicas=1", "relay.storage.type=emptyDir")
        kubectl("delete", "persistentvolumeclaim", CLAIM, "-n", strikes.RELEASE, "--ignore-not-found")
        kubectl("delete", "persistentvolume", CLAIM, "--ignore-not-found")
        shutil.rmtree(folder)


def operators(kubectl: Kubectl) -> dict[str, Pod]:
    found = kubectl.list("pods", strikes.RELEASE, OPERATOR)
    return {pod["metadata"]["name"]: pod for pod in found if "deletionTimestamp" not in pod["metadata"]}


def ready(kubectl: Kubectl) -> list[str]:
    return [
        name
        for name, pod in operators(kubectl).items()
        if all(status["ready"] for status in pod["status"].get("containerStatuses", [{"ready": False}]))
    ]


def lease(kubectl: Kubectl) -> dict[str, Any]:
    spec: dict[str, Any] = kubectl.get("lease", strikes.RELEASE, LEASE)["spec"]
    return spec


def leader(kubectl: Kubectl) -> str:
    """Return the pod whose operator has the Lease."""

    def held() -> str | None:
        holder = lease(kubectl).get("holderIdentity") or ""
        return holder.rpartition("_")[0] if holder.rpartition("_")[0] in operators(kubectl) else None

    return kubectl.until(held, 30, lambda: f"{lease(kubectl)} {kubectl.picture(strikes.RELEASE)}", pause=0.2)


def says_that_it_leads(kubectl: Kubectl, pod: str) -> bool:
    """Read the metric of the leader from one operator's own page."""
    page = kubectl("get", "--raw", f"/api/v1/namespaces/{strikes.RELEASE}/pods/{pod}:8080/proxy/metrics", check=False)
    return "\ncasewarden_leader 1.0" in page


def run(kubectl: Kubectl, namespace: str, name: str, seconds: float, **spec: Any) -> None:
    """Apply a run of four cases whose candidate thinks for so long and then finishes: all fail, the score is 0.35."""
    kubectl.apply(
        workspace(namespace, name, {"main.py": FINISHES_AFTER.format(seconds=seconds)}),
        evalrun(namespace, name, **({"task": {"name": "support-routing"}, "seeds": {"values": [17]}, "parallelism": 1,
                                     "candidate": {"program": {"workspace": {"configMap": name}}}} | spec)),
    )  # fmt: skip
    kubectl.until(lambda: strikes.playing(kubectl, namespace).get(name), 90, lambda: kubectl.picture(namespace))


def is_whole(kubectl: Kubectl, namespace: str, name: str) -> None:
    """Hold that every case of such a run was assessed by one attempt, and counted once."""
    status = kubectl.finished(namespace, name)
    rows = strikes.ledger(kubectl, namespace, name)
    found = [(row["kind"], row["status"], row["attempt"]) for row in rows]
    assert found == [("verdict", "failed", 1)] * SUPPORT_CASES, rows
    assert status["attempts"]["total"] == SUPPORT_CASES
    assert status["score"] == "0.35"
    assert condition(status, "Complete") == "True"
    kubectl.until(
        lambda: kubectl.pods_of(namespace, name) == [], 60, lambda: f"pods stay: {kubectl.pods_of(namespace, name)}"
    )


def seconds_until_another_leads(kubectl: Kubectl, first: str, since: float) -> float:
    """Wait for another holder of the Lease, and return the seconds from ``since`` to when it got it."""

    def other() -> dict[str, Any] | None:
        spec = lease(kubectl)
        return spec if spec.get("holderIdentity") not in ("", None, first) else None

    spec = kubectl.until(other, 60, lambda: f"{lease(kubectl)}: {kubectl.picture(strikes.RELEASE)}", pause=0.2)
    return datetime.fromisoformat(spec["acquireTime"]).timestamp() - since


def test_both_are_ready_and_one_says_that_it_leads(kubectl: Kubectl) -> None:
    kubectl.until(lambda: len(ready(kubectl)) == 2, 60, lambda: kubectl.picture(strikes.RELEASE))
    first = leader(kubectl)
    kubectl.until(
        lambda: [name for name in operators(kubectl) if says_that_it_leads(kubectl, name)] == [first],
        30,
        lambda: f"{first} holds the Lease; {[(n, says_that_it_leads(kubectl, n)) for n in operators(kubectl)]}",
    )


def test_a_leader_that_is_killed_is_followed_in_seconds_and_nothing_is_lost_or_doubled(
    kubectl: Kubectl, namespace: str, record_property: Any
) -> None:
    run(kubectl, namespace, "killed", 4)
    first, holder = leader(kubectl), lease(kubectl)["holderIdentity"]
    killed_at = time.time()
    os.kill(strikes.process(operators(kubectl)[first], DEPLOYMENT), signal.SIGKILL)
    seconds = seconds_until_another_leads(kubectl, holder, killed_at)
    record_property("failover_seconds", seconds)
    print(f"failover: {seconds:.1f} s")
    assert 0 < seconds < FAILOVER_SECONDS
    is_whole(kubectl, namespace, "killed")


def test_a_leader_that_was_frozen_writes_nothing_over_its_follower_and_ends(kubectl: Kubectl, namespace: str) -> None:
    """It wakes with requests on their way and a view of long ago: only the guards of its writes stand in between."""
    run(kubectl, namespace, "frozen", 4)
    first, holder = leader(kubectl), lease(kubectl)["holderIdentity"]
    pod = operators(kubectl)[first]
    (before,) = [status["restartCount"] for status in pod["status"]["containerStatuses"]]
    with strikes.frozen(strikes.process(pod, DEPLOYMENT)):
        assert seconds_until_another_leads(kubectl, holder, time.time()) < FAILOVER_SECONDS
        # The follower counts what the frozen one does not know of.
        rows = len(strikes.ledger(kubectl, namespace, "frozen"))
        kubectl.until(
            lambda: len(strikes.ledger(kubectl, namespace, "frozen")) > rows, 40, lambda: kubectl.picture(namespace)
        )
    is_whole(kubectl, namespace, "frozen")
    kubectl.until(
        lambda: operators(kubectl)[first]["status"]["containerStatuses"][0]["restartCount"] > before,
        40,
        lambda: "the operator that lost its place goes on",
    )


def test_an_upgrade_of_operator_and_relay_goes_through_a_run_without_a_trace(kubectl: Kubectl, namespace: str) -> None:
    run(kubectl, namespace, "upgraded", 6, parallelism=2)
    old = set(operators(kubectl))
    stamp = f"at-{int(time.time())}"
    upgrade(kubectl, f"operator.podAnnotations.upgraded={stamp}", f"relay.podAnnotations.upgraded={stamp}")
    kubectl("-n", strikes.RELEASE, "rollout", "status", "deployment/casewarden-relay", "--timeout=90s", seconds=100)
    assert not old & set(operators(kubectl))
    assert leader(kubectl) in operators(kubectl)
    is_whole(kubectl, namespace, "upgraded")
