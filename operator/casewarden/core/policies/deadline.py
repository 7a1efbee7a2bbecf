"""A run's own deadline."""

from __future__ import annotations

from casewarden.api.reasons import RunReason
from casewarden.core.model import FinishRun, RunPolicy

__all__ = ["past_deadline"]


def past_deadline(policy: RunPolicy, now: float) -> FinishRun | None:
    """Return the failure of a run whose ``activeDeadlineSeconds`` have passed, or None."""
    if policy.deadline is None or now < policy.deadline:
        return None
    message = "the run was not complete when its activeDeadlineSeconds had passed; raise it, or raise parallelism"
    return FinishRun(False, RunReason.DEADLINE_EXCEEDED, message)
