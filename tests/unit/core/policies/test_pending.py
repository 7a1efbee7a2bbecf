"""How long a pod that does not start is waited for, by what stands in its way."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from support.pod_json import alive, pod, running, terminated, waiting

from casewarden.core.facts import start_trouble
from casewarden.core.model import PodRecord, RunPolicy
from casewarden.core.policies.pending import pending

POLICY = RunPolicy(2, 1, 2, 900.0, False, None)
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: taint"}


def _waits(reason: str, message: str = "", container: str = "candidate") -> PodRecord:
    rest = [running("task")] if container != "task" else []
    return pod(None, waiting(container, reason, message), *rest, phase="Pending", created=100)


class Wait(NamedTuple):
    what: str
    pod: PodRecord
    reason: str
    seconds: float


UNHEARD = pod(phase="Pending", created=100, initContainerStatuses=[], containerStatuses=[])
WAITS = [
    Wait("a malformed image name", _waits("InvalidImageName"), "ImagePull", 0),
    Wait("an image that may not be pulled", _waits("ErrImageNeverPull"), "ImagePull", 0),
    Wait("no such image", _waits("ErrImagePull", 'failed: "x:1": not found'), "ImagePull", 60),
    Wait("no such tag", _waits("ImagePullBackOff", "manifest unknown"), "ImagePull", 60),
    Wait("no right to pull", _waits("ErrImagePull", "401 Unauthorized"), "ImagePull", 60),
    Wait("a registry that does not answer", _waits("ErrImagePull", "i/o timeout"), "ImagePull", 900),
    Wait("a registry that counts", _waits("ImagePullBackOff", "429 Too Many Requests"), "ImagePull", 900),
    Wait("a missing ConfigMap", _waits("CreateContainerConfigError", 'configmap "x" not found'), "CannotStart", 60),
    Wait("a runtime that refuses", _waits("CreateContainerError", "bad mount"), "CannotStart", 60),
    Wait("a failing postStart", _waits("PostStartHookError", container="evidence"), "CannotStart", 60),
    Wait("a sidecar in a crash loop", _waits("CrashLoopBackOff", container="evidence"), "CannotStart", 60),
    Wait("volumes that do not come", _waits("ContainerCreating"), "CannotStart", 900),
    Wait("no kubelet's word", UNHEARD, "CannotStart", 900),
    Wait("no such command", pod(None, terminated("candidate", 128, "StartError"), created=100), "CannotStart", 0),
    Wait("no node", pod(node="", created=100, conditions=(UNSCHEDULABLE,)), "Unschedulable", 900),
    Wait("no scheduler", pod(node="", created=100, conditions=({"type": "Initialized"},)), "Unschedulable", 900),
]  # fmt: skip


@pytest.mark.parametrize("wait", WAITS, ids=lambda wait: wait.what)
def test_each_trouble_has_its_reason_and_its_time(wait):
    found = pending(wait.pod, POLICY, [])
    assert found is not None
    assert (found.trouble.reason, found.until) == (wait.reason, 100 + wait.seconds)
    assert found.trouble.detail


def test_the_runs_own_limit_is_the_longest_of_all():
    short = RunPolicy(2, 1, 2, 10.0, False, None)
    until = {pending(wait.pod, short, []).until for wait in WAITS}  # type: ignore[union-attr]
    assert until == {100.0, 110.0}


def test_a_pod_whose_containers_have_started_waits_for_nothing():
    assert pending(alive(), POLICY, []) is None


def test_a_container_that_was_started_again_is_not_waited_for():
    """A sidecar between two starts is not a pod that does not start; its pod has its task to tell."""
    again = pod(None, {**waiting("evidence", "PodInitializing"), "restartCount": 1}, running("task"))
    assert pending(again, POLICY, []) is None


def test_the_worst_trouble_is_the_one_that_counts():
    both = pod(None, waiting("candidate", "ImagePullBackOff", "timeout"), waiting("task", "InvalidImageName"))
    trouble = start_trouble(both)
    assert trouble is not None
    assert (trouble.hope, trouble.detail) == ("none", "container task: InvalidImageName")


def test_a_full_cluster_is_given_up_when_nothing_of_the_run_moves_any_more():
    homeless = pod(node="", created=100, conditions=(UNSCHEDULABLE,))
    assert pending(homeless, POLICY, [500.0, 300.0]).until == 1400.0  # type: ignore[union-attr]


def test_progress_elsewhere_does_not_help_a_pod_without_its_image():
    assert pending(_waits("ErrImagePull", "not found"), POLICY, [5000.0]).until == 160.0  # type: ignore[union-attr]


def test_what_only_takes_its_time_is_not_called_trouble():
    assert [wait.what for wait in WAITS if not start_trouble(wait.pod).certain] == [  # type: ignore[union-attr]
        "volumes that do not come", "no kubelet's word", "no scheduler",
    ]  # fmt: skip
