"""Two operators and a Lease: one dies in the middle of a run, then the release is upgraded, and nothing shows."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.candidates import FINISHES_AFTER
from support.kubectl import Kubectl, evalrun, workspace

RELEASE, DEPLOYMENT = "casewarden-system", "deployment/casewarden-operator"
FAILOVER_SECONDS = 15.0


def holder(kubectl: Kubectl) -> str:
    """Who holds the Lease: the pod's name, then what is the process's own."""
    lease = kubectl.find("lease", RELEASE, "casewarden-operator") or {}
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


def rolled_out(kubectl: Kubectl, deployment: str) -> None:
    kubectl("-n", RELEASE, "rollout", "status", deployment, "--timeout=150s", seconds=160)


def pid_of(pod: str) -> int:
    """Find the process of a pod's operator on this machine."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            is_operator = b"casewarden" in words and b"operator" in words
            if is_operator and (entry / "root/etc/hostname").read_text().strip() == pod:
                return int(entry.name)
    pytest.fail(f"no process of {pod} on this machine")


@pytest.fixture(scope="module")
def two_operators(kubectl: Kubectl) -> Iterator[None]:
    kubectl("-n", RELEASE, "scale", DEPLOYMENT, "--replicas=2")
    try:
        rolled_out(kubectl, DEPLOYMENT)
        kubectl.until(lambda: holder(kubectl), 60, lambda: "nobody holds the Lease")
        yield
    finally:
        kubectl("-n", RELEASE, "scale", DEPLOYMENT, "--replicas=1")


@pytest.mark.usefixtures("two_operators")
def test_a_run_outlives_its_operator_and_an_upgrade_of_the_release(kubectl: Kubectl, namespace: str) -> None:
    kubectl.apply(
        workspace(namespace, "ha", {"main.py": FINISHES_AFTER.format(seconds=3)}),
        evalrun(namespace, "ha", task={"name": "support-routing"}, seeds={"values": list(range(1, 7))}, parallelism=2,
                candidate={"program": {"workspace": {"configMap": "ha"}}}),
    )  # fmt: skip

    def failed() -> int:
        return int(kubectl.status(namespace, "ha").get("cases", {}).get("failed", 0))

    kubectl.until(lambda: failed() >= 1, 240, lambda: kubectl.picture(namespace))
    leader = holder(kubectl)
    os.kill(pid_of(leader.partition("_")[0]), signal.SIGKILL)
    killed, before = time.monotonic(), failed()
    kubectl.until(lambda: holder(kubectl) not in ("", leader), 60, lambda: f"{leader} still holds the Lease")
    taken = time.monotonic() - killed
    kubectl.until(lambda: failed() > before, 120, lambda: kubectl.picture(namespace))
    counted = time.monotonic() - killed
    print(f"the Lease was taken over {taken:.1f} s after the kill, the next case counted after {counted:.1f} s")
    assert taken < FAILOVER_SECONDS

    kubectl("-n", RELEASE, "rollout", "restart", DEPLOYMENT, "deployment/casewarden-relay")
    rolled_out(kubectl, DEPLOYMENT)
    rolled_out(kubectl, "deployment/casewarden-relay")
    status = kubectl.finished(namespace, "ha", seconds=400)
    assert status["progress"] == "24/24"
    assert status["valid"] is True
    assert status["score"] == "0.35"
    assert status["attempts"]["total"] == 24, "nothing was run again"
