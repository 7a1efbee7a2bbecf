"""What is brought up to date row by row is what all rows together say."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.pod_json import attempt

from casewarden.core.model import LedgerRow, RunPolicy
from casewarden.core.policies.retry import standing
from casewarden.core.standings import Standings

POLICY = RunPolicy(2, 1, 2, 900.0, suspend=False, deadline=None)
CASES = tuple(attempt(number).case for number in range(4))
KINDS = ("verdict", "environment", "interruption", "suspended")
some_rows = st.lists(st.tuples(st.integers(0, 4), st.sampled_from(KINDS), st.floats(0, 100)), max_size=24)


def rows_of(drawn: list[tuple[int, str, float]]) -> tuple[LedgerRow, ...]:
    """Number the attempts; case 4 is none of the run's."""
    made: list[LedgerRow] = []
    for case, kind, ended_at in drawn:
        number = 1 + sum(row.key.case == attempt(case).case for row in made)
        made.append(LedgerRow(attempt(case, number), kind, "passed", "1", ended_at=ended_at))  # type: ignore[arg-type]
    return tuple(made)


def said(counted: Standings) -> dict[str, Any]:
    return {
        "count": counted.count,
        "rows": counted.rows,
        "settled": counted.settled,
        "unsettled": list(counted.unsettled),
        "not_before": counted.not_before,
        "environment": counted.environment,
        "has_verdict": counted.has_verdict,
        "last_end": counted.last_end,
    }


@given(some_rows, st.lists(st.integers(0, 24), max_size=6))
def test_rows_that_come_in_any_portions_say_what_they_say_together(drawn, stops):
    rows, counted = rows_of(drawn), None
    ends = [*sorted(min(stop, len(rows)) for stop in stops), len(rows)]
    for end in ends:
        counted = Standings.of(CASES, rows[:end], POLICY, counted)
        assert said(counted) == said(Standings.of(CASES, rows[:end], POLICY))


@given(some_rows)
def test_they_are_what_the_retry_policy_says_of_each_case(drawn):
    rows = rows_of(drawn)
    counted = Standings.of(CASES, rows, POLICY)
    for case in CASES:
        found = standing([row for row in rows if row.key.case == case], POLICY)
        assert (case in counted.settled) == (found.settled is not None)
        assert (case in counted.unsettled) == (found.settled is None)
        assert counted.not_before.get(case, 0.0) == (found.not_before if found.settled is None else 0.0)
    assert all(CASES.index(one) < CASES.index(other) for one, other in pairwise(counted.unsettled))


def test_what_was_counted_goes_on_while_the_same_rows_are_added_to():
    rows = rows_of([(0, "environment", 1.0), (1, "verdict", 2.0)])
    first = Standings.of(CASES, rows[:1], POLICY)
    assert Standings.of(CASES, rows, replace(POLICY, parallelism=9, suspend=True), first) is first


def test_a_ledger_that_was_read_anew_is_counted_anew():
    drawn = [(0, "environment", 1.0), (1, "verdict", 2.0)]
    first = Standings.of(CASES, rows_of(drawn), POLICY)
    again = rows_of([(2, "verdict", 1.0), *drawn])
    assert said(Standings.of(CASES, again, POLICY, first)) == said(Standings.of(CASES, again, POLICY))
    fewer = rows_of(drawn[:1])
    first = Standings.of(CASES, rows_of(drawn), POLICY)
    assert said(Standings.of(CASES, fewer, POLICY, first)) == said(Standings.of(CASES, fewer, POLICY))


def test_other_budgets_or_other_cases_are_counted_anew():
    rows = rows_of([(0, "environment", 1.0), (0, "environment", 2.0)])
    spent = Standings.of(CASES, rows, POLICY)
    assert CASES[0] in spent.settled
    assert CASES[0] in Standings.of(CASES, rows, replace(POLICY, environment_retries=2), spent).unsettled
    spent = Standings.of(CASES, rows, POLICY)
    assert Standings.of(CASES[:2], rows, POLICY, spent).cases == frozenset(CASES[:2])
