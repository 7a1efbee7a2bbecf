"""The circuit breaker: a run whose first attempts all fail for one reason of ours is stopped before it burns more."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Final

from casewarden.api.reasons import RunReason
from casewarden.core.model import FinishRun, LedgerRow

__all__ = ["common_cause"]

FIRST_ATTEMPTS: Final = 5
# A run of few pods at a time has a retry budget, which one failure must not take from it.
FEWEST_ATTEMPTS: Final = 3


def common_cause(rows: Iterable[LedgerRow], parallelism: int, reasons: Set[str]) -> FinishRun | None:
    """Return the failure of a run whose first attempts all ended for one of ``reasons``, or None.

    They are as many as its parallelism, but 3 to 5.

    Attempts that somebody stopped say nothing. One verdict is enough to show that the run can work.
    """
    told = [row for row in rows if row.kind in ("verdict", "environment")]
    count = max(FEWEST_ATTEMPTS, min(parallelism, FIRST_ATTEMPTS))
    if len(told) < count or any(row.kind == "verdict" for row in told):
        return None
    first = sorted(told, key=lambda row: (row.ended_at, row.key))[:count]
    cause = first[0].reason
    if cause not in reasons or any(row.reason != cause for row in first):
        return None
    message = f"the first {count} attempts all ended with {cause}: {first[0].error or 'no more is known'}"
    return FinishRun(False, RunReason.CIRCUIT_BREAKER, message)
