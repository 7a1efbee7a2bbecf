"""A thousand random histories of a run, through the operator's own code: nothing is lost, doubled or forged in any.

To play one again: ``play_history(draw(SEED))``, or paste the ``History(…)`` that a failure prints.
"""

from __future__ import annotations

from unittest import mock

import pytest
from support.histories.history import History, Step, draw, shrink
from support.histories.invariants import Violation
from support.histories.virtual import Deadlock, Restless
from support.histories.world import play_history

HISTORIES, BATCH = 1000, 50
FAILURES = (Violation, Deadlock, Restless)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")


def fails(history: History) -> bool:
    try:
        play_history(history)
    except FAILURES:
        return True
    return False


@pytest.mark.parametrize("first", range(0, HISTORIES, BATCH))
def test_every_invariant_holds_after_every_step_of_a_random_history(first: int) -> None:
    for seed in range(first, first + BATCH):
        try:
            play_history(draw(seed))
        except FAILURES as error:
            smallest = shrink(draw(seed), fails)
            pytest.fail(f"seed {seed}: {error!r}\nsmallest history that fails:\n{smallest!r}", pytrace=False)


def test_a_history_plays_the_same_every_time() -> None:
    first, second = play_history(draw(9)), play_history(draw(9))
    assert first.requests == second.requests
    assert first.rows() == second.rows()


def test_a_fault_of_the_operator_is_found_and_its_history_made_small() -> None:
    """An operator that does not look whether it is behind: what two of them write last then wins."""
    with mock.patch("casewarden.controller.status_writer._is_behind", return_value=False):
        history = next(history for history in map(draw, range(400)) if fails(history))
        smallest = shrink(history, fails)
        assert fails(smallest)
        assert len(smallest.steps) <= len(history.steps)
        assert len(smallest.steps) <= 4
    assert not fails(smallest)


def test_a_history_is_shrunk_to_what_it_takes() -> None:
    steps = tuple(Step(float(at), "kill" if at == 3 else "compact") for at in range(8))
    history = History(1, 4, 3, (("lost", "passed"),) * 4, (1.0,) * 4, steps)
    smallest = shrink(history, lambda h: any(step.kind == "kill" for step in h.steps))
    assert smallest.steps == (Step(3.0, "kill"),)
    assert (smallest.cases, smallest.parallelism) == (1, 1)
    assert smallest.outcomes == (("passed",),)
