"""What the rows of a run say, case by case, kept up to date row by row.

A run of ten thousand cases steps at every pod that ends. Rows are only ever added, so what they say is brought up to
date by the new ones; it is then what all of them together would say (property-tested). Not thread-safe, and nobody but
the run's own play may add to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from casewarden.core.model import CaseKey, LedgerRow, RunPolicy
from casewarden.core.policies.retry import standing

__all__ = ["Standings"]


class Standings:
    """The standings of ``cases``, the run's in the order in which they start, under the budgets of ``policy``."""

    def __init__(self, cases: tuple[CaseKey, ...], policy: RunPolicy) -> None:
        self._order, self._policy = cases, policy
        self._last: LedgerRow | None = None
        self.count = 0
        self.cases = frozenset(cases)
        self.rows: dict[CaseKey, list[LedgerRow]] = {}
        """The rows of each case that has any."""
        self.settled: set[CaseKey] = set()
        """Cases that need no more work; no later row makes one of them need some."""
        self.unsettled: dict[CaseKey, None] = dict.fromkeys(cases)
        """Cases that need more work, in their order."""
        self.not_before: dict[CaseKey, float] = {}
        """When an unsettled case that was tried may get another attempt at the earliest."""
        self.environment: list[LedgerRow] = []
        """The rows of attempts that failed for no fault of the candidate's."""
        self.has_verdict = False
        self.last_end = 0.0
        """When the last attempt of all ended; 0.0 before the first."""

    @classmethod
    def of(
        cls, cases: tuple[CaseKey, ...], rows: Sequence[LedgerRow], policy: RunPolicy, before: Standings | None = None
    ) -> Standings:
        """Return the standings by these rows: those of ``before``, brought up to date, where it saw the first rows.

        ``before`` is not to be used any more then.
        """
        found = before if before is not None and before._is_of(cases, rows, policy) else cls(cases, policy)
        found._add(rows[found.count :])
        return found

    def _is_of(self, cases: tuple[CaseKey, ...], rows: Sequence[LedgerRow], policy: RunPolicy) -> bool:
        if self._order is not cases or _budgets(self._policy) != _budgets(policy) or len(rows) < self.count:
            return False
        # A ledger that is read anew has new rows, all of them.
        return self.count == 0 or rows[self.count - 1] is self._last

    def _add(self, new: Sequence[LedgerRow]) -> None:
        for row in new:
            self.rows.setdefault(row.key.case, []).append(row)
            self.last_end = max(self.last_end, row.ended_at)
            self.has_verdict = self.has_verdict or row.kind == "verdict"
            if row.kind == "environment":
                self.environment.append(row)
        for case in dict.fromkeys(row.key.case for row in new):
            found = standing(self.rows[case], self._policy)
            if found.settled is not None:
                self.settled.add(case)
                self.unsettled.pop(case, None)
                self.not_before.pop(case, None)
            elif case in self.cases:
                self.not_before[case] = found.not_before
        self.count += len(new)
        self._last = new[-1] if new else self._last


def _budgets(policy: RunPolicy) -> tuple[int, int]:
    return policy.environment_retries, policy.interruption_retries
