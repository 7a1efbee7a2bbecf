"""The limiter lets a burst through, then the rate, in order; a pause is everybody's."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden.adapters.kube.limiter import Limiter
from casewarden.ports.clock import ManualClock


async def starts(limiter: Limiter, clock: ManualClock, calls: int, seconds: float) -> list[float]:
    """Let so many calls come at once, move time, and return when each began, from the start of time."""
    began: list[float] = []
    start = clock.now()

    async def call() -> None:
        async with limiter.place():
            began.append(round(clock.now() - start, 6))

    tasks = [asyncio.create_task(call()) for _ in range(calls)]
    await clock.advance(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return began


async def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    clock = ManualClock()
    assert await starts(Limiter(2.0, 3, 10, clock), clock, 6, 10) == [0, 0, 0, 0.5, 1.0, 1.5]


async def test_after_a_pause_the_burst_is_back_and_no_more() -> None:
    clock = ManualClock()
    limiter = Limiter(2.0, 3, 10, clock)
    await starts(limiter, clock, 3, 100)
    assert await starts(limiter, clock, 5, 10) == [0, 0, 0, 0.5, 1.0]


async def test_no_more_than_the_places_are_under_way() -> None:
    clock = ManualClock()
    limiter = Limiter(1000, 1000, 2, clock)
    now = most = 0

    async def call() -> None:
        nonlocal now, most
        async with limiter.place():
            now += 1
            most = max(most, now)
            await clock.sleep(1)
            now -= 1

    tasks = [asyncio.create_task(call()) for _ in range(7)]
    await clock.advance(10)
    await asyncio.gather(*tasks)
    assert most == 2


async def test_a_pause_holds_everybody_and_a_shorter_one_does_not_end_it() -> None:
    clock = ManualClock()
    limiter = Limiter(100, 100, 10, clock)
    limiter.pause(5)
    limiter.pause(1)
    assert await starts(limiter, clock, 2, 10) == [5, 5]


@given(st.integers(1, 20), st.floats(0.5, 50), st.lists(st.floats(0, 3), max_size=30))
def test_no_window_of_time_sees_more_than_burst_and_rate_allow(burst: int, rate: float, gaps: list[float]) -> None:
    async def play() -> list[float]:
        clock = ManualClock()
        limiter, began, tasks = Limiter(rate, burst, 100, clock), [], []

        async def call() -> None:
            async with limiter.place():
                began.append(clock.now())

        for gap in gaps:
            tasks.append(asyncio.create_task(call()))
            await clock.advance(gap)
        await clock.advance(200)
        await asyncio.gather(*tasks)
        return began

    began = sorted(asyncio.run(play()))
    assert len(began) == len(gaps)
    for first in range(len(began)):
        for last in range(first, len(began)):
            assert last - first + 1 <= burst + (began[last] - began[first]) * rate + 1e-3


@pytest.mark.parametrize(("rate", "burst", "places"), [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_a_limit_of_nothing_is_refused(rate: float, burst: int, places: int) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        Limiter(rate, burst, places, ManualClock())
