"""Pods as the API server has them, in the states that a real cluster was seen to bring them to."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from casewarden.api import names
from casewarden.api.attempt import TerminationMessage
from casewarden.core.model import AttemptKey, CaseKey, PodRecord
from casewarden.core.observe import observe

RUN, RUN_UID, NAMESPACE = "kv", "9b2f6f0e-6f0a-4d6e-9df3-0c5a2f6a1b2c", "evals"
DIGEST = "ab" * 32

Json = dict[str, Any]


def attempt(number: int = 0, attempt: int = 1, seed: int = 17, repeat: int = 0) -> AttemptKey:
    return AttemptKey(CaseKey(seed, f"case-{number:03}", repeat), attempt)


def time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def waiting(name: str, reason: str = "PodInitializing", message: str = "") -> Json:
    return {"name": name, "state": {"waiting": {"reason": reason, "message": message}}, "restartCount": 0}


def running(name: str, since: float = 10, restarts: int = 0, last: Json | None = None) -> Json:
    status: Json = {
        "name": name,
        "state": {"running": {"startedAt": time(since)}},
        "restartCount": restarts,
        "ready": True,
    }
    return {**status, "lastState": {"terminated": last}} if last else status


def terminated(
    name: str,
    code: int = 0,
    reason: str | None = None,
    message: str = "",
    at: float = 100,
    restarts: int = 0,
    since: float = 10,
) -> Json:
    state = {
        "exitCode": code,
        "reason": reason or ("Completed" if code == 0 else "Error"),
        "message": message,
        "startedAt": time(since),
        "finishedAt": time(at),
    }
    return {"name": name, "state": {"terminated": state}, "restartCount": restarts}


def told(status: str = "passed", checks: str = "1", digest: str | None = DIGEST, **fields: Any) -> str:
    return TerminationMessage(status=status, checks=checks, digest=digest, **fields).format()


def disruption(reason: str, at: float = 90, message: str = "") -> Json:
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": time(at),
    }


def pod_json(
    key: AttemptKey | None = None,
    *containers: Json,
    phase: str = "Running",
    uid: str = "pod-1",
    node: str = "node-1",
    created: float = 1,
    deleted: float | None = None,
    grace: int = 30,
    conditions: tuple[Json, ...] = (),
    **status: Any,
) -> Json:
    """Return a pod; evidence and candidate run unless they are given. ``status`` is reason, message, startTime."""
    key = key or attempt()
    given = {item["name"]: item for item in containers}
    evidence = given.pop("evidence", None) or running("evidence", restarts=0)
    given.setdefault("candidate", running("candidate"))
    metadata: Json = {
        "name": names.case_pod_name(RUN, RUN_UID, key.case.seed, key.case.case_id, key.case.repeat, key.attempt),
        "namespace": NAMESPACE,
        "uid": uid,
        "resourceVersion": "1",
        "creationTimestamp": time(created),
        "labels": {names.LABEL_MANAGED_BY: names.MANAGER, names.LABEL_RUN_UID: RUN_UID, names.LABEL_ROLE: "case"},
        "annotations": {
            names.ANNOTATION_SEED: str(key.case.seed),
            names.ANNOTATION_CASE: key.case.case_id,
            names.ANNOTATION_REPEAT: str(key.case.repeat),
            names.ANNOTATION_ATTEMPT: str(key.attempt),
        },
        "ownerReferences": [{"kind": "EvalRun", "name": RUN, "uid": RUN_UID, "controller": True}],
    }
    if deleted is not None:
        metadata |= {"deletionTimestamp": time(deleted + grace), "deletionGracePeriodSeconds": grace}
    scheduled = {"type": "PodScheduled", "status": "True" if node else "False", "lastTransitionTime": time(created)}
    return {
        "metadata": metadata,
        "spec": {"nodeName": node, "activeDeadlineSeconds": 2000},
        "status": {
            "phase": phase,
            "startTime": time(created + 1) if node else None,
            "conditions": [*([] if any(c["type"] == "PodScheduled" for c in conditions) else [scheduled]), *conditions],
            "initContainerStatuses": [evidence],
            "containerStatuses": list(given.values()),
            **status,
        },
    }


def pod(key: AttemptKey | None = None, *containers: Json, **changes: Any) -> PodRecord:
    """Return the record of such a pod."""
    record = observe(pod_json(key, *containers, **changes))
    assert record is not None
    return record


def alive(key: AttemptKey | None = None, **changes: Any) -> PodRecord:
    """Return a pod whose case runs."""
    return pod(key, running("task"), **changes)


def finished(key: AttemptKey | None = None, message: str | None = None, **changes: Any) -> PodRecord:
    """Return a pod whose driver told its verdict and exited 0."""
    return pod(key, terminated("task", 0, message=told() if message is None else message), **changes)
