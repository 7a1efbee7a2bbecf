"""Case time: from the first start, and over for good."""

from __future__ import annotations

import pytest

from casewarden.casepod.clock import CaseClock
from casewarden_sdk.errors import CandidateError


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_time_before_the_first_start_is_nobodys():
    time = Time()
    clock = CaseClock(10, time)
    time.now += 99
    assert (clock.started, clock.now(), clock.left()) == (False, 0.0, 10.0)


def test_time_runs_from_the_first_start_and_a_second_start_does_not_reset_it():
    time = Time()
    clock = CaseClock(10, time)
    clock.start()
    time.now += 4
    clock.start()
    assert clock.now() == 4.0
    assert (clock.left(), clock.left(20), clock.left(1)) == (6.0, 6.0, 1)


def test_when_it_is_over_it_is_the_candidates_time_limit():
    time = Time()
    clock = CaseClock(10, time)
    clock.start()
    time.now += 10
    with pytest.raises(CandidateError, match="more than its 10 s") as caught:
        clock.left(1)
    assert caught.value.reason == "TimeLimit"


def test_the_duration_ends_when_the_candidate_was_last_waited_for():
    time = Time()
    clock = CaseClock(10, time)
    clock.start()
    time.now += 1.25
    clock.busy()
    time.now += 5
    assert clock.seconds == 1.25


def test_what_passes_while_it_is_held_is_not_the_candidates():
    time = Time()
    clock = CaseClock(10, time)
    clock.start()
    time.now += 4
    with clock.held():
        time.now += 100
    clock.busy()
    assert (clock.left(), clock.seconds, clock.now()) == (6.0, 4.0, 104.0)
