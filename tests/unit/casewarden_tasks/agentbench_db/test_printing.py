"""What is shown of a result: Python's own way to print a list of tuples, cut where it is long."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from casewarden_tasks.agentbench_db.printing import SHOWN, TRUNCATED, error_text, printed, shown


def test_values_print_as_python_prints_them() -> None:
    rows = [("a", None), (3, Decimal("5.10")), (datetime.date(2020, 1, 2), datetime.timedelta(hours=1)), (b"\xff", 1.5)]
    assert printed(rows) == (
        "[('a', None), (3, Decimal('5.10')), (datetime.date(2020, 1, 2), datetime.timedelta(seconds=3600)), "
        "(b'\\xff', 1.5)]"
    )
    assert printed([("x",)]) == "[('x',)]"
    assert printed([]) == "[]"
    assert printed([["it's"]]) == '[("it\'s",)]'


def test_what_is_long_is_cut_at_800_characters() -> None:
    assert shown("x" * SHOWN) == "x" * SHOWN
    assert shown("x" * (SHOWN + 1)) == "x" * 800 + "[TRUNCATED]"


def test_an_error_has_number_state_and_message() -> None:
    assert error_text(1054, "42S22", "Unknown column 'x'") == "1054 (42S22): Unknown column 'x'"


cells = st.one_of(st.none(), st.integers(), st.text(max_size=300), st.binary(max_size=50), st.decimals(allow_nan=False))


@given(st.lists(st.lists(cells, min_size=1, max_size=4).map(tuple), max_size=30))
def test_what_is_shown_is_that_of_the_whole_list(rows: list[tuple[object, ...]]) -> None:
    assert shown(printed(rows)) == shown(str(rows))


def test_rows_that_nobody_is_shown_are_not_waited_for() -> None:
    taken = 0

    def endless() -> Iterator[tuple[str]]:
        nonlocal taken
        while True:
            taken += 1
            yield ("x" * 90,)

    assert shown(printed(endless())).endswith(TRUNCATED)
    assert taken < 20
