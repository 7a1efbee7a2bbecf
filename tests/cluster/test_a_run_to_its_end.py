"""What happens to a run when something happens to its pods, its operator or itself."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.candidates import EXITS_127, FINISHES_AFTER
from support.kubectl import Kubectl, condition, evalrun, message, reason, workspace

RELEASE = "casewarden-system"
ALL_SUPPORT_CASES = 4


def slow_run(kubectl: Kubectl, namespace: str, name: str, seconds: float, **spec: Any) -> None:
    """Apply a support-routing run whose candidate thinks for so long and then finishes: 0.35, all failed."""
    kubectl.apply(
        workspace(namespace, name, {"main.py": FINISHES_AFTER.format(seconds=seconds)}),
        evalrun(namespace, name, **({"task": {"name": "support-routing"}, "seeds": {"values": [17]},
                                     "candidate": {"program": {"workspace": {"configMap": name}}}} | spec)),
    )  # fmt: skip


def running_pods(kubectl: Kubectl, namespace: str, run: str) -> list[dict[str, Any]]:
    """Return the case pods whose candidate has started and whose task has not ended."""
    return [
        pod
        for pod in kubectl.pods_of(namespace, run)
        if any(c["name"] == "task" and "running" in c["state"] for c in pod["status"].get("containerStatuses", ()))
    ]


def counted(kubectl: Kubectl, namespace: str, run: str, failed: int) -> None:
    """Wait until so many cases of a run have been counted as failed."""
    kubectl.until(
        lambda: kubectl.status(namespace, run).get("cases", {}).get("failed", 0) >= failed,
        120,
        lambda: kubectl.picture(namespace),
    )


def operator_pids() -> list[int]:
    """Find the operator's process on this machine."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"casewarden" in words and b"operator" in words:
                found.append(int(entry.name))
    return found


@contextmanager
def operator_away(kubectl: Kubectl) -> Iterator[None]:
    """Scale the operator to nothing for a while."""
    kubectl("-n", RELEASE, "scale", "deployment/casewarden-operator", "--replicas=0")
    kubectl("-n", RELEASE, "wait", "--for=delete", "pod", "-l", "app.kubernetes.io/component=operator", "--timeout=60s")
    try:
        yield
    finally:
        kubectl("-n", RELEASE, "scale", "deployment/casewarden-operator", "--replicas=1")
        kubectl("-n", RELEASE, "rollout", "status", "deployment/casewarden-operator", "--timeout=90s", seconds=100)


def assert_whole(status: dict[str, Any], cases: int) -> None:
    """Every case counted once, and the score that a candidate earns that does nothing."""
    assert status["assessed"] == f"{cases}/{cases}"
    assert status["cases"]["total"] == cases
    assert status["cases"]["failed"] == cases
    assert status["score"] == "0.35"
    assert status["valid"] is True


def test_an_image_that_cannot_be_pulled_fails_the_run_after_its_first_pods(kubectl: Kubectl, namespace: str) -> None:
    slow_run(kubectl, namespace, "no-image", 0, seeds={"values": list(range(10))}, parallelism=3,
             candidate={"program": {"image": "127.0.0.1:1/none:1", "workspace": {"configMap": "no-image"}}},
             limits={"pendingSeconds": 20})  # fmt: skip
    status = kubectl.finished(namespace, "no-image")
    assert condition(status, "Failed") == "True"
    assert reason(status, "Failed") == "ImagePull"
    assert "127.0.0.1:1/none:1" in message(status, "Failed")
    assert status["attempts"]["total"] <= 3
    assert "score" not in status


def test_a_candidate_that_exits_127_is_an_agent_error(kubectl: Kubectl, namespace: str) -> None:
    kubectl.apply(
        workspace(namespace, "exits", {"main.py": EXITS_127}),
        evalrun(namespace, "exits", task={"name": "support-routing"}, seeds={"values": [17]},
                candidate={"program": {"workspace": {"configMap": "exits"}}}),
    )  # fmt: skip
    status = kubectl.finished(namespace, "exits")
    assert status["cases"]["agentErrors"] == ALL_SUPPORT_CASES
    assert status["attempts"]["total"] == ALL_SUPPORT_CASES
    assert {failure["reason"] for failure in status["failures"]} == {"Exited"}


def test_a_pod_deleted_by_hand_is_tried_again_and_counted(kubectl: Kubectl, namespace: str) -> None:
    slow_run(kubectl, namespace, "deleted", 8)
    victim = kubectl.until(
        lambda: running_pods(kubectl, namespace, "deleted"), 90, lambda: kubectl.picture(namespace)
    )[0]["metadata"]["name"]  # fmt: skip
    kubectl("delete", "pod", victim, "-n", namespace, "--wait=false")
    status = kubectl.finished(namespace, "deleted")
    assert_whole(status, ALL_SUPPORT_CASES)
    assert status["attempts"]["interruptions"] == 1
    assert status["attempts"]["total"] == ALL_SUPPORT_CASES + 1


def test_suspend_and_resume_in_the_middle_loses_nothing(kubectl: Kubectl, namespace: str) -> None:
    slow_run(kubectl, namespace, "paused", 4, seeds={"values": [1, 2]}, parallelism=3)
    counted(kubectl, namespace, "paused", 2)
    kubectl("patch", "evalrun", "paused", "-n", namespace, "--type=merge", "-p", '{"spec":{"suspend":true}}')
    kubectl.until(lambda: condition(kubectl.status(namespace, "paused"), "Suspended") == "True"
                  and not kubectl.pods_of(namespace, "paused"), 60, lambda: kubectl.picture(namespace))  # fmt: skip
    done = kubectl.status(namespace, "paused")["cases"]["failed"]
    assert 2 <= done < 2 * ALL_SUPPORT_CASES
    time.sleep(2)
    assert not kubectl.pods_of(namespace, "paused")
    kubectl("patch", "evalrun", "paused", "-n", namespace, "--type=merge", "-p", '{"spec":{"suspend":false}}')
    status = kubectl.finished(namespace, "paused")
    assert_whole(status, 2 * ALL_SUPPORT_CASES)
    assert status["attempts"]["environmentRetries"] == 0


def test_an_operator_killed_in_the_middle_loses_nothing_and_repeats_no_sealed_attempt(
    kubectl: Kubectl, namespace: str, casewarden: Callable[..., Any]
) -> None:
    slow_run(kubectl, namespace, "orphaned", 3, seeds={"values": [1, 2, 3]}, parallelism=4)
    for count in (2, 6):
        counted(kubectl, namespace, "orphaned", count)
        pids = operator_pids()
        assert pids, "the operator's process is not on this machine"
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
    status = kubectl.finished(namespace, "orphaned")
    assert_whole(status, 3 * ALL_SUPPORT_CASES)
    assert status["attempts"] == {
        "total": 3 * ALL_SUPPORT_CASES,
        "environmentRetries": 0,
        "interruptions": 0,
        "suspended": 0,
    }


def test_deleting_a_run_leaves_no_object(kubectl: Kubectl, namespace: str) -> None:
    slow_run(kubectl, namespace, "gone", 20)
    kubectl.until(lambda: running_pods(kubectl, namespace, "gone"), 90, lambda: kubectl.picture(namespace))
    uid = kubectl.get("evalrun", namespace, "gone")["metadata"]["uid"]
    kubectl("delete", "evalrun", "gone", "-n", namespace, "--wait=true", "--timeout=30s")

    def left() -> list[dict[str, Any]]:
        own = kubectl.list("pods,configmaps,secrets", namespace, f"casewarden.dev/run-uid={uid}")
        return own + kubectl.list("networkpolicies", namespace)

    kubectl.until(lambda: not left(), 90, lambda: kubectl.picture(namespace))


def test_a_namespace_goes_while_the_operator_is_away(kubectl: Kubectl, namespace: str) -> None:
    slow_run(kubectl, namespace, "left", 20)
    kubectl.until(lambda: running_pods(kubectl, namespace, "left"), 90, lambda: kubectl.picture(namespace))
    with operator_away(kubectl):
        kubectl("delete", "namespace", namespace, "--wait=false")
        kubectl.until(lambda: not kubectl("get", "namespace", namespace, "--ignore-not-found").strip(), 120,
                      lambda: kubectl("get", "namespace", namespace, "-o", "yaml"))  # fmt: skip


@pytest.mark.parametrize("field", ["parallelism", "ttlSecondsAfterFinished"])
def test_what_may_change_can_be_changed(kubectl: Kubectl, namespace: str, field: str) -> None:
    slow_run(kubectl, namespace, "mutable", 0, suspend=True)
    kubectl("patch", "evalrun", "mutable", "-n", namespace, "--type=merge", "-p", f'{{"spec":{{"{field}":7}}}}')
    assert kubectl.get("evalrun", namespace, "mutable")["spec"][field] == 7


def test_a_run_past_its_deadline_fails_and_has_no_score(kubectl: Kubectl, namespace: str) -> None:
    slow_run(kubectl, namespace, "late", 60, activeDeadlineSeconds=8)
    status = kubectl.finished(namespace, "late", 90)
    assert reason(status, "Failed") == "DeadlineExceeded"
    assert status["assessed"] == f"0/{ALL_SUPPORT_CASES}"
    assert "score" not in status
    kubectl.until(lambda: not kubectl.pods_of(namespace, "late"), 60, lambda: kubectl.picture(namespace))


def test_a_finished_run_goes_when_its_time_is_over(kubectl: Kubectl, namespace: str) -> None:
    slow_run(kubectl, namespace, "brief", 0, ttlSecondsAfterFinished=1)
    kubectl.until(lambda: kubectl.find("evalrun", namespace, "brief") is None, 120, lambda: kubectl.picture(namespace))
