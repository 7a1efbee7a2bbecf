"""Budgets are counts of rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.pod_json import attempt

from casewarden.core.model import LedgerRow, RunPolicy
from casewarden.core.policies.retry import LONGEST_DELAY_SECONDS, standing

KINDS = ("verdict", "environment", "interruption", "suspended")


def rows(kinds: list[str]) -> list[LedgerRow]:
    return [
        LedgerRow(
            attempt(0, number), kind, "passed" if kind == "verdict" else "environment_error", "1", ended_at=number
        )  # type: ignore[arg-type]
        for number, kind in enumerate(kinds, start=1)
    ]


def policy(environment: int, interruptions: int) -> RunPolicy:
    return RunPolicy(1, environment, interruptions, 900.0, False, None)


@given(st.lists(st.sampled_from(KINDS), max_size=12), st.integers(0, 3), st.integers(0, 3), st.randoms())
def test_a_case_is_settled_by_its_verdict_or_by_a_spent_budget_whatever_the_order_of_rows(
    kinds, environment, interruptions, random
):
    written = rows(kinds)
    shuffled = list(written)
    random.shuffle(shuffled)
    found = standing(shuffled, policy(environment, interruptions))
    assert found == standing(written, policy(environment, interruptions))
    spent = kinds.count("environment") > environment or kinds.count("interruption") > interruptions
    assert (found.settled is not None) == ("verdict" in kinds or spent)
    if "verdict" in kinds:
        assert found.settled == written[kinds.index("verdict")]


@given(st.lists(st.sampled_from(("environment", "interruption", "suspended")), max_size=8))
def test_what_settled_a_case_goes_on_settling_it_when_rows_are_added(kinds):
    for count in range(len(kinds)):
        earlier = standing(rows(kinds[:count]), policy(1, 1)).settled
        assert earlier is None or standing(rows(kinds), policy(1, 1)).settled == earlier


@given(st.integers(1, 12))
def test_the_pause_grows_to_a_bound_and_starts_at_the_last_failure(count):
    found = standing(rows(["environment"] * count), policy(99, 99))
    assert count + 5 <= found.not_before <= count + LONGEST_DELAY_SECONDS
