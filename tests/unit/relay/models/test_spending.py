"""How near a run is to the end of its budget, and for how long that is told."""

from __future__ import annotations

from decimal import Decimal

import pytest

from casewarden.relay.models.spending import Spending, share
from casewarden.relay.models.usage import Budget, RunUsage


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (Budget(), 0.0),
        (Budget(tokens=1000), 0.3),
        (Budget(calls=8), 0.5),
        (Budget(cost=Decimal("0.5")), 0.5),
        (Budget(tokens=1000, calls=8, cost=Decimal(1)), 0.5),
        (Budget(calls=0), 1.0),
    ],
)
def test_the_part_that_is_used_most_counts(budget: Budget, expected: float) -> None:
    usage = RunUsage(prompt=150, completion=50, calls=3, cost=Decimal("0.2"))
    usage.reserve(Budget(), 100, Decimal("0.05"))
    assert share(usage, budget) == pytest.approx(expected)


def test_a_run_counts_for_a_quarter_of_an_hour_after_its_last_call() -> None:
    now = [0.0]
    spending = Spending(lambda: now[0])
    assert spending.most("team") == 0.0
    spending.note("team", "one", 0.9)
    now[0] = 800.0
    spending.note("team", "two", 0.4)
    spending.note("other", "three", 1.0)
    assert spending.most("team") == 0.9
    now[0] = 901.0
    assert spending.most("team") == 0.4
    now[0] = 2000.0
    assert spending.most("team") == 0.0
