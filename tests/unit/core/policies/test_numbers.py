"""Places and numbers: how many pods may start, and what the next attempt is called."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.pod_json import attempt

from casewarden.core.policies.concurrency import free_slots
from casewarden.core.policies.next_attempt import next_attempt

small = st.integers(0, 50)


@given(small, st.none() | small, small, small)
def test_what_runs_and_what_may_start_never_pass_a_limit(parallelism, slots, alive, in_flight):
    free = free_slots(parallelism, slots, alive, in_flight)
    limit = parallelism if slots is None else min(parallelism, slots)
    assert free >= 0
    assert free == 0 or alive + in_flight + free == limit


@given(st.sets(st.integers(1, 100)))
def test_the_next_attempt_is_one_that_nobody_has_seen(seen):
    key = next_attempt(attempt().case, [attempt(0, number) for number in seen])
    assert key.attempt not in seen
    assert key.attempt == max(seen, default=0) + 1
