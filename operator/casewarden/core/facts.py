"""What can be said of a pod from its record alone. The outcome table and the policies are written in these words.

Nothing here judges. Every fact was seen on a real cluster; where the kubelet misleads, the comment says how.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from casewarden.api.names import CANDIDATE, EVIDENCE, TASK
from casewarden.api.reasons import AttemptReason, RunReason
from casewarden.core.model import ContainerRecord, PodCondition, PodRecord

__all__ = [
    "CANDIDATE_SHM", "CANDIDATE_TMP", "ENVIRONMENT_PREFIX", "FORSAKEN_SECONDS", "OVERDUE_SECONDS", "SKEW_SECONDS",
    "STATE", "STOPPED", "STUCK_SECONDS", "Trouble", "disruption", "ended_by_itself", "forsaken_at", "has_ended",
    "is_oom_killed", "is_shim_killed", "never_played", "past_deadline", "start_trouble", "storage_culprit", "task_of",
    "was_deleted", "was_forsaken", "was_told_to_stop", "will_end",
]  # fmt: skip

STATE: Final = "state"
CANDIDATE_TMP: Final = "candidate-tmp"
CANDIDATE_SHM: Final = "candidate-shm"
ENVIRONMENT_PREFIX: Final = "env-"
_CANDIDATE_VOLUMES: Final = frozenset({STATE, CANDIDATE_TMP, CANDIDATE_SHM})

# A pod that is still there so long after its deletion was asked for sits on a node that nobody hears from. It is three
# times the grace period of a case pod.
STUCK_SECONDS: Final = 90.0
# A kubelet that lives kills a pod at its active deadline, within the grace period.
OVERDUE_SECONDS: Final = 60.0
# The kubelet's times are whole seconds of another clock than the API server's.
SKEW_SECONDS: Final = 2.0
# A driver whose candidate's container dies hears of it in seconds, if ever: a shim that never called is not missed.
FORSAKEN_SECONDS: Final = 20.0
# The shim's exit code where nobody listened.
_GAVE_UP: Final = 1
_KILLED: Final = 137
# The driver's exit code where it was sent SIGTERM.
STOPPED: Final = 143

_DISRUPTIONS: Final = {
    "EvictionByEvictionAPI": AttemptReason.EVICTED,
    "TerminationByKubelet": AttemptReason.EVICTED,
    "PreemptionByScheduler": AttemptReason.PREEMPTED,
    "DeletionByTaintManager": AttemptReason.NODE_LOST,
    "DeletionByPodGC": AttemptReason.NODE_LOST,
}
_POD_REASONS: Final = {
    "Evicted": AttemptReason.EVICTED,
    "Preempting": AttemptReason.PREEMPTED,
    "NodeLost": AttemptReason.NODE_LOST,
    # A node that shuts down in good order.
    "Terminated": AttemptReason.NODE_LOST,
    "NodeShutdown": AttemptReason.NODE_LOST,
    "Shutdown": AttemptReason.NODE_LOST,
    # The kubelet refused what the scheduler had placed: the node's state had changed in between.
    "NodeAffinity": AttemptReason.EVICTED,
    "UnexpectedAdmissionError": AttemptReason.EVICTED,
    "TopologyAffinityError": AttemptReason.EVICTED,
}
_VOLUME_LIMIT = re.compile(r'Usage of EmptyDir volume "([^"]+)" exceeds the limit')
_CONTAINER_LIMIT = re.compile(r"Container (\S+) exceeded its local ephemeral storage limit")
_POD_LIMIT = "Pod ephemeral local storage usage exceeds the total limit of containers"

_PULL = frozenset({
    "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
    "RegistryUnavailable", "SignatureValidationFailed",
})  # fmt: skip
_CREATE = frozenset({
    "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PostStartHookError",
    "CreatePodSandboxError", "ConfigPodSandboxError",
})  # fmt: skip
_START = frozenset({"StartError", "ContainerCannotRun"})
_HOPELESS = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_DENIED = re.compile(
    r"not found|manifest unknown|does not exist|unauthorized|authorization failed|access denied|forbidden"
    r"|no match for platform",
    re.IGNORECASE,
)

_HOPES: Final = ("none", "little", "some")


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a pod does not start.

    ``hope`` tells whether waiting can help: ``none`` (the name of an image is malformed), ``little`` (it is not there,
    or the container cannot be created), ``some`` (a registry that does not answer, a full cluster). ``since`` is when
    the pod came to where it is stuck. ``certain`` is false where nothing has gone wrong but for the time it takes.
    """

    reason: RunReason
    detail: str
    hope: Literal["none", "little", "some"]
    since: float
    certain: bool = True


def task_of(pod: PodRecord) -> ContainerRecord | None:
    """Return the task container if it has terminated: then the attempt is over, whatever the pod's phase says."""
    task = pod.container(TASK)
    return task if task is not None and task.state == "terminated" else None


def will_end(pod: PodRecord) -> float | None:
    """Return when the pod counts as ended even if nothing more is heard of it; None where no such time is known yet."""
    ends = []
    if pod.deleted_at is not None:
        ends.append(pod.deleted_at + STUCK_SECONDS)
    if pod.started_at is not None and pod.active_deadline is not None:
        ends.append(pod.started_at + pod.active_deadline + OVERDUE_SECONDS)
    return min(ends, default=None)


def has_ended(pod: PodRecord, now: float) -> bool:
    """Tell whether the attempt is over: its task terminated, its pod did, or its node is not heard from any more."""
    return pod.phase in ("Succeeded", "Failed") or task_of(pod) is not None or _is_lost(pod, now)


def _before_the_end(pod: PodRecord, moment: float | None, skew: float = SKEW_SECONDS) -> bool:
    """Tell whether something came before the task ended, so that it can be why; a drain marks finished pods too."""
    task = task_of(pod)
    if task is None or task.finished_at is None or moment is None:
        return True
    return moment <= task.finished_at + skew


def _disruption_target(pod: PodRecord) -> PodCondition | None:
    return next((item for item in pod.conditions if item.type == "DisruptionTarget" and item.status == "True"), None)


def disruption(pod: PodRecord, now: float) -> AttemptReason | None:
    """Return what the cluster did to the pod before its task ended, or None."""
    target = _disruption_target(pod)
    if pod.reason in _POD_REASONS:
        return _POD_REASONS[pod.reason]
    if pod.reason.startswith("OutOf"):
        return AttemptReason.EVICTED
    if target is not None and _before_the_end(pod, target.since):
        return _DISRUPTIONS.get(target.reason, AttemptReason.EVICTED)
    if pod.phase == "Unknown" or _is_lost(pod, now):
        return AttemptReason.NODE_LOST
    return None


def _is_lost(pod: PodRecord, now: float) -> bool:
    """Tell whether the pod should have come to its end long ago, and has not."""
    if pod.phase in ("Succeeded", "Failed") or task_of(pod) is not None:
        return False
    end = will_end(pod)
    return end is not None and now >= end


def was_told_to_stop(pod: PodRecord) -> bool:
    """Tell whether the driver ended on SIGTERM: only a stop of the whole pod reaches it, never a candidate."""
    task = task_of(pod)
    return task is not None and task.exit_code == STOPPED


def was_deleted(pod: PodRecord) -> bool:
    """Tell whether somebody asked for the pod's deletion before its task ended."""
    # When a kubelet removes a pod that has stopped, the API server moves its deletion to that moment, with no grace
    # period: seconds after the end that it caused.
    return pod.deleted_at is not None and (was_told_to_stop(pod) or _before_the_end(pod, pod.deleted_at))


def past_deadline(pod: PodRecord) -> bool:
    """Tell whether the kubelet stopped the pod at its ``activeDeadlineSeconds``."""
    return pod.reason == "DeadlineExceeded"


def storage_culprit(pod: PodRecord) -> tuple[Literal["candidate", "sandbox"], str] | None:
    """Return whose storage an eviction names, with the kubelet's words.

    ``candidate`` is its own volumes, its container or the pod's total, ``sandbox`` an environment that it acts upon.
    None for an eviction that names other storage, or none: what evidence and task write is not for the candidate to
    fill, and a container that is named because its node runs low was within its limits.
    """
    target = _disruption_target(pod)
    for text in (pod.message, target.message if target else ""):
        if _POD_LIMIT in text:
            return "candidate", text
        found = _VOLUME_LIMIT.search(text)
        if found and found[1] in _CANDIDATE_VOLUMES:
            return "candidate", text
        found = found or _CONTAINER_LIMIT.search(text)
        if found and found[1] == CANDIDATE:
            return "candidate", text
        if found and found[1].startswith(ENVIRONMENT_PREFIX):
            return "sandbox", text
    return None


def is_oom_killed(container: ContainerRecord | None) -> bool:
    """Tell whether a container's first process was killed for memory.

    The reason alone misleads: where a child was killed and the first process lived on, a container ends with exit code
    0 and reason OOMKilled.
    """
    return (
        container is not None
        and container.state == "terminated"
        and container.reason == "OOMKilled"
        and container.exit_code == 137
    )


def ended_by_itself(pod: PodRecord, container: ContainerRecord | None) -> bool:
    """Tell whether a container failed before the task ended.

    A container that the kubelet lost sight of (ContainerStatusUnknown, 137) or that never started is not meant, nor one
    that a stop of the whole pod took along: ask for that first.
    """
    return (
        container is not None
        and container.state == "terminated"
        and container.exit_code not in (0, None)
        and container.reason not in _START
        and container.reason != "ContainerStatusUnknown"
        # Both times are the same kubelet's. The shims end when the task has, some of them with an error.
        and _before_the_end(pod, container.finished_at, skew=0.0)
    )


def is_shim_killed(pod: PodRecord, container: ContainerRecord | None) -> bool:
    """Tell whether the shim of a container died before the task ended, of what only its own container can do to it.

    Exit code 1 is the shim giving up: the other end of its socket was not there or went away.
    """
    return container is not None and container.exit_code != _GAVE_UP and ended_by_itself(pod, container)


def never_played(pod: PodRecord) -> bool:
    """Tell whether the candidate's container ended before a program can have been started in it.

    Only the driver has one started, so none was where the container ended before the driver began; nor where its shim
    gave up. Times are whole seconds, so one that ended in the second in which the driver began may have played: a
    program can have its shim killed for memory, and can send it SIGTERM. Killed otherwise it was from outside, since
    the kernel takes no SIGKILL for PID 1 from within.
    """
    candidate, task = pod.container(CANDIDATE), pod.container(TASK)
    if candidate is None or candidate.finished_at is None or not ended_by_itself(pod, candidate):
        return False
    if candidate.exit_code == _GAVE_UP or task is None or task.started_at is None:
        return True
    if candidate.finished_at == task.started_at:
        return candidate.exit_code == _KILLED and candidate.reason != "OOMKilled"
    return candidate.finished_at < task.started_at


def forsaken_at(pod: PodRecord) -> float | None:
    """Return when to stop a pod whose driver waits for a shim that will never call; None where it need not be."""
    if pod.deleted_at is not None or has_ended(pod, 0.0) or not never_played(pod):
        return None
    candidate = pod.container(CANDIDATE)
    assert candidate is not None, "it never played"
    assert candidate.finished_at is not None, "it never played"
    return candidate.finished_at + FORSAKEN_SECONDS


def was_forsaken(pod: PodRecord) -> bool:
    """Tell whether the pod was stopped only after its candidate's container had died, and played nothing."""
    candidate = pod.container(CANDIDATE)
    if pod.deleted_at is None or candidate is None or candidate.finished_at is None:
        return False
    # Three clocks are in this, the operator's among them.
    return never_played(pod) and candidate.finished_at + FORSAKEN_SECONDS / 2 <= pod.deleted_at


def _blocked(container: ContainerRecord) -> bool:
    if container.state == "terminated":
        return container.reason in _START
    if container.state != "waiting":
        return False
    if container.reason == "CrashLoopBackOff":
        return container.name == EVIDENCE
    return container.reason in _PULL or container.reason in _CREATE


def _trouble_of(pod: PodRecord, container: ContainerRecord, since: float) -> Trouble:
    detail = f"container {container.name}: {container.reason}"
    if container.message:
        detail += f": {container.message}"
    elif container.last_exit_code is not None:
        detail += f": it ended with exit code {container.last_exit_code} {container.last_reason}".rstrip()
    if container.reason in _HOPELESS:
        return Trouble(RunReason.IMAGE_PULL, detail, "none", since)
    if container.reason in _PULL:
        return Trouble(RunReason.IMAGE_PULL, detail, "little" if _DENIED.search(container.message) else "some", since)
    return Trouble(RunReason.CANNOT_START, detail, "none" if container.state == "terminated" else "little", since)


def start_trouble(pod: PodRecord) -> Trouble | None:
    """Return why the pod has not started, or None where all its containers have."""
    scheduled = next((item for item in pod.conditions if item.type == "PodScheduled"), None)
    if not pod.node and (scheduled is None or scheduled.status != "True"):
        why = f"{scheduled.reason}: {scheduled.message}" if scheduled is not None else "no scheduler has looked at it"
        certain = scheduled is not None and scheduled.reason == "Unschedulable"
        return Trouble(RunReason.UNSCHEDULABLE, why, "some", pod.created_at, certain)
    since = scheduled.since if scheduled is not None and scheduled.since is not None else pod.created_at
    blocked = [container for container in pod.containers if _blocked(container)]
    if blocked:
        troubles = (_trouble_of(pod, container, since) for container in blocked)
        return min(troubles, key=lambda trouble: _HOPES.index(trouble.hope))
    waiting = [item for item in pod.containers if item.state == "waiting" and item.restarts == 0]
    if waiting or not pod.containers:
        names = ", ".join(f"{item.name} ({item.reason or 'waiting'})" for item in waiting)
        detail = f"not started: {names}" if names else "the node has not reported any container"
        return Trouble(RunReason.CANNOT_START, detail, "some", since, certain=False)
    return None
