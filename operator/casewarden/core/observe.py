"""From a pod as the API server has it to the slim record that decisions are made over.

Ten thousand pods are watched, so only what the outcome table and the policies ask for is kept, and text of foreign
origin is cut. Nothing in a pod can make this raise: what is not ours, or not whole, is None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from casewarden.api.names import (
    ANNOTATION_ATTEMPT,
    ANNOTATION_CASE,
    ANNOTATION_REPEAT,
    ANNOTATION_SEED,
    LABEL_MANAGED_BY,
    LABEL_ROLE,
    LABEL_RUN_UID,
    MANAGER,
    case_pod_name,
)
from casewarden.core.model import AttemptKey, CaseKey, ContainerRecord, PodCondition, PodRecord

__all__ = ["MAX_MESSAGE", "MAX_REASON", "observe", "parse_time"]

# A termination message of ours is at most 1 KiB; the kubelet hands over up to 4 KiB.
MAX_MESSAGE: Final = 2048
MAX_REASON: Final = 64
_CONDITIONS: Final = frozenset({"PodScheduled", "DisruptionTarget"})
_ROLES: Final = frozenset({"case", "plan", "grade", "aggregate"})


def parse_time(text: Any) -> float | None:
    """Return an API server's time as seconds since the epoch; None for null and for what is no time with a zone."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo is not None else None


def observe(pod: Mapping[str, Any]) -> PodRecord | None:
    """Return the record of a pod of a run's, or None for a pod that is not a run's or that is malformed.

    A case pod must have the name that its run and its annotations give it and be controlled by the run that its label
    names: labels alone are anybody's to write.
    """
    try:
        return _observe(pod)
    except (AttributeError, KeyError, LookupError, TypeError, ValueError):
        return None


def _observe(pod: Mapping[str, Any]) -> PodRecord | None:
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    run_uid, role = labels.get(LABEL_RUN_UID), labels.get(LABEL_ROLE)
    if labels.get(LABEL_MANAGED_BY) != MANAGER or not run_uid or role not in _ROLES:
        return None
    owner = next((item for item in metadata.get("ownerReferences") or () if item.get("controller")), None)
    if owner is None or owner.get("uid") != run_uid:
        return None
    attempt = _attempt(metadata, owner["name"], run_uid) if role == "case" else None
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    deadline = spec.get("activeDeadlineSeconds")
    return PodRecord(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        run_uid=run_uid,
        role=role,
        resource_version=metadata.get("resourceVersion", ""),
        attempt=attempt,
        phase=status.get("phase") or "Pending",
        reason=_text(status.get("reason"), MAX_REASON),
        message=_text(status.get("message")),
        node=spec.get("nodeName") or "",
        created_at=parse_time(metadata.get("creationTimestamp")) or 0.0,
        started_at=parse_time(status.get("startTime")),
        deleted_at=_deleted_at(metadata),
        active_deadline=None if deadline is None else float(deadline),
        conditions=tuple(_conditions(status.get("conditions") or ())),
        containers=tuple(
            _container(item)
            for kind in ("initContainerStatuses", "containerStatuses")
            for item in status.get(kind) or ()
        ),
    )


def _attempt(metadata: Mapping[str, Any], run: str, run_uid: str) -> AttemptKey:
    annotations = metadata["annotations"]
    case = CaseKey(int(annotations[ANNOTATION_SEED]), annotations[ANNOTATION_CASE], int(annotations[ANNOTATION_REPEAT]))
    key = AttemptKey(case, int(annotations[ANNOTATION_ATTEMPT]))
    if metadata["name"] != case_pod_name(run, run_uid, case.seed, case.case_id, case.repeat, key.attempt):
        raise ValueError("the name is another attempt's")
    if key.attempt < 1:
        raise ValueError("attempts count from 1")
    return key


def _deleted_at(metadata: Mapping[str, Any]) -> float | None:
    """Return when deletion was asked for. The API has when the grace period is over."""
    end = parse_time(metadata.get("deletionTimestamp"))
    return None if end is None else end - float(metadata.get("deletionGracePeriodSeconds") or 0)


def _conditions(conditions: Any) -> Iterator[PodCondition]:
    for item in conditions:
        if item.get("type") in _CONDITIONS:
            yield PodCondition(
                type=item["type"],
                status=item.get("status") or "Unknown",
                reason=_text(item.get("reason"), MAX_REASON),
                message=_text(item.get("message")),
                since=parse_time(item.get("lastTransitionTime")),
            )


def _container(status: Mapping[str, Any]) -> ContainerRecord:
    state = status.get("state") or {}
    ended, running, waiting = state.get("terminated"), state.get("running"), state.get("waiting") or {}
    last = (status.get("lastState") or {}).get("terminated") or {}
    now = ended if ended is not None else running if running is not None else waiting
    return ContainerRecord(
        name=status["name"],
        state="terminated" if ended is not None else "running" if running is not None else "waiting",
        reason=_text(now.get("reason"), MAX_REASON),
        message=_text(now.get("message")),
        exit_code=now.get("exitCode"),
        signal=now.get("signal"),
        started_at=parse_time(now.get("startedAt")),
        finished_at=parse_time(now.get("finishedAt")),
        restarts=int(status.get("restartCount") or 0),
        image_id=_text(status.get("imageID"), 512),
        ready=bool(status.get("ready")),
        last_exit_code=last.get("exitCode"),
        last_reason=_text(last.get("reason"), MAX_REASON),
    )


def _text(value: Any, size: int = MAX_MESSAGE) -> str:
    return value[:size] if isinstance(value, str) else ""
