"""A suspended run starts nothing and stops what runs; what seals before it is stopped counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from casewarden.core.model import DeletePod, PodRecord

__all__ = ["stop"]


def stop(alive: Iterable[PodRecord], why: str) -> Iterator[DeletePod]:
    """Yield a deletion for each living pod that nobody is deleting yet.

    They are recorded after their end, not here: between this and their SIGTERM they may still seal, and then the seal
    is what counts.
    """
    for pod in alive:
        if pod.deleted_at is None:
            yield DeletePod(pod.name, pod.uid, why)
