"""How long a pod may take to start before its run is given up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from casewarden.api.reasons import RunReason
from casewarden.core.facts import Trouble, start_trouble
from casewarden.core.model import PodRecord, RunPolicy

__all__ = ["Pending", "pending"]

# Something that is not there may yet come (an image that is being pushed, a Secret that is being made), but whoever
# mistyped a name should not wait a quarter of an hour to hear of it.
LITTLE_HOPE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Pending:
    """A pod that does not start. ``until`` is when it is given up; None while the cluster is only full of our own."""

    trouble: Trouble
    until: float | None

    def is_given_up(self, now: float) -> bool:
        """Tell whether the wait is over."""
        return self.until is not None and now >= self.until


def pending(pod: PodRecord, policy: RunPolicy, progress: Iterable[float]) -> Pending | None:
    """Return why a pod has not started and until when it is waited for, or None where it has started.

    ``progress`` are the moments at which other attempts of the run started or ended. A pod that fits on no node while
    others of its run come and go waits for its turn; it is given up when nothing has moved for ``pending_seconds``.
    """
    trouble = start_trouble(pod)
    if trouble is None:
        return None
    patience = {
        "none": 0.0,
        "little": min(LITTLE_HOPE_SECONDS, policy.pending_seconds),
        "some": policy.pending_seconds,
    }[trouble.hope]
    since = trouble.since
    if trouble.reason == RunReason.UNSCHEDULABLE:
        since = max((since, *progress))
    return Pending(trouble, since + patience)
