"""How many pods may start now."""

from __future__ import annotations

__all__ = ["free_slots"]


def free_slots(parallelism: int, slots: int | None, alive: int, in_flight: int) -> int:
    """Return how many pods may be created.

    ``alive`` are pods whose task has not terminated: a slot frees when the task ends, not when the pod is gone. Never
    negative: a run whose parallelism was lowered waits until its pods end by themselves.
    """
    allowed = parallelism if slots is None else min(parallelism, slots)
    return max(allowed - alive - in_flight, 0)
