"""Which pods go: those whose attempt the ledger has, whether they ended, hang, or were created late."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from casewarden.core import facts
from casewarden.core.model import DeletePod, LedgerRow, PodRecord, RunPolicy

__all__ = ["delete_recorded", "delete_strangers", "is_kept"]


def is_kept(row: LedgerRow, pod: PodRecord, policy: RunPolicy) -> bool:
    """Tell whether a recorded pod stays for people to look at; never one that could still start or run."""
    over = pod.phase in ("Succeeded", "Failed") or facts.task_of(pod) is not None
    return policy.keep_pods == "OnFailure" and row.status != "passed" and over


def delete_recorded(
    recorded: Iterable[tuple[LedgerRow, PodRecord]], policy: RunPolicy, now: float
) -> Iterator[DeletePod]:
    """Yield the deletions of pods that are of no more use. One that does not go with its node is removed by force.

    Force is safe: the attempt's number is spent, and whatever still runs of it loses against the seal.
    """
    for row, pod in recorded:
        if is_kept(row, pod, policy):
            continue
        if pod.deleted_at is None:
            yield DeletePod(pod.name, pod.uid, f"its attempt is recorded ({row.reason or row.status})")
        elif now >= pod.deleted_at + facts.STUCK_SECONDS:
            yield DeletePod(pod.name, pod.uid, "its node is not heard from", grace_seconds=0)


def delete_strangers(strangers: Iterable[PodRecord]) -> Iterator[DeletePod]:
    """Yield the deletions of pods that have the run's labels and are none of its attempts."""
    for pod in strangers:
        if pod.deleted_at is None:
            yield DeletePod(pod.name, pod.uid, "it is no attempt of the run's plan")
