"""Which attempts are tried again. Budgets are counts of ledger rows: no restart and no second operator resets them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from casewarden.core.model import LedgerRow, RunPolicy

__all__ = ["Standing", "standing"]

# An environment error seldom heals at once; other cases go first meanwhile.
FIRST_DELAY_SECONDS: Final = 5.0
LONGEST_DELAY_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a case stands.

    ``settled`` is the row that says what the case came to: its verdict, or the row that spent a budget. None where it
    needs another attempt, which may start at ``not_before`` at the earliest.
    """

    settled: LedgerRow | None = None
    not_before: float = 0.0


def standing(rows: Sequence[LedgerRow], policy: RunPolicy) -> Standing:
    """Judge a case by its rows. Budgets are how often it is tried *again*: two retries are three attempts."""
    if len(rows) == 1 and rows[0].kind == "verdict":
        return Standing(rows[0])
    ordered = sorted(rows, key=lambda row: row.key.attempt)
    verdict = next((row for row in ordered if row.kind == "verdict"), None)
    if verdict is not None:
        return Standing(verdict)
    left = {"environment": policy.environment_retries, "interruption": policy.interruption_retries}
    failures, last = 0, 0.0
    for row in ordered:
        if row.kind not in left:
            continue
        if left[row.kind] == 0:
            return Standing(row)
        left[row.kind] -= 1
        if row.kind == "environment":
            failures, last = failures + 1, row.ended_at
    if not failures:
        return Standing()
    return Standing(None, last + min(FIRST_DELAY_SECONDS * 2 ** (failures - 1), LONGEST_DELAY_SECONDS))
