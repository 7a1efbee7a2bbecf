"""The figures of a run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from casewarden_tasks.agentbench_db.metrics import MAIN, overall
from casewarden_tasks.agentbench_db.rows import CHANGES, SELECTS


def test_the_main_figure_is_the_mean_of_the_three_categories() -> None:
    figures = overall([("INSERT", True), ("INSERT", False), ("UPDATE", True), ("other", True), ("counting", False),
                       ("aggregation-SUM", False), ("ranking", False)])  # fmt: skip
    assert figures == {
        "other_accuracy": 1.0, "counting_accuracy": 0.0, "comparison_accuracy": 0.0, "ranking_accuracy": 0.0,
        "aggregation-SUM_accuracy": 0.0, "aggregation-MIN_accuracy": 0.0, "aggregation-MAX_accuracy": 0.0,
        "aggregation-AVG_accuracy": 0.0, "SELECT_accuracy": 0.25, "INSERT_accuracy": 0.5, "UPDATE_accuracy": 1.0,
        MAIN: (0.25 + 0.5 + 1.0) / 3,
    }  # fmt: skip


def test_a_kind_that_there_is_none_of_counts_as_nothing() -> None:
    assert overall([])[MAIN] == 0
    assert overall([("DELETE", True)])["SELECT_accuracy"] == 1.0


@given(st.lists(st.tuples(st.sampled_from((*SELECTS, *CHANGES)), st.booleans())))
def test_figures_are_shares_and_one_more_right_sample_lowers_none(judged: list[tuple[str, bool]]) -> None:
    figures = overall(judged)
    assert all(0 <= figure <= 1 for figure in figures.values())
    better = overall([(kind, True) for kind, _ in judged])
    assert all(better[name] >= figure for name, figure in figures.items())
