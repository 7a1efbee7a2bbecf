"""How near to the end of their budgets the runs are that call models now."""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from casewarden.relay.models.usage import Budget, RunUsage

__all__ = ["Spending", "share"]

_WINDOW_SECONDS: Final = 900.0


def share(usage: RunUsage, budget: Budget) -> float:
    """Return the used share of that part of a budget which is used most, calls under way included; 0 without one."""
    parts = (
        (usage.prompt + usage.completion + usage.reserved_tokens, budget.tokens),
        (usage.calls + usage.reserved_calls, budget.calls),
        ((usage.cost or Decimal(0)) + usage.reserved_cost, budget.cost),
    )
    return max((float(used / bound) if bound else 1.0 for used, bound in parts if bound is not None), default=0.0)


class Spending:
    """The largest share of each endpoint; a run that has made no call for a quarter of an hour no longer counts."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._noted: dict[str, dict[str, tuple[float, float]]] = {}

    def note(self, endpoint: str, run_uid: str, used: float) -> None:
        """Remember what share of its budget a run has used."""
        self._noted.setdefault(endpoint, {})[run_uid] = (self._monotonic(), used)

    def most(self, endpoint: str) -> float:
        """Return the largest share of the runs that called lately."""
        since = self._monotonic() - _WINDOW_SECONDS
        noted = self._noted.get(endpoint, {})
        for run_uid in [run_uid for run_uid, (at, _) in noted.items() if at < since]:
            del noted[run_uid]
        return max((used for _, used in noted.values()), default=0.0)
