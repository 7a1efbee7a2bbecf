from __future__ import annotations

import asyncio

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from casewarden.relay.models.gate import WINDOW_SECONDS, Gate, WaitedTooLong


async def test_a_slot_that_is_left_goes_to_the_highest_priority_that_waits() -> None:
    gate, order = Gate(1), []
    first = await gate.enter(1, 0, 1)

    async def wait(priority: int) -> None:
        place = await gate.enter(1, priority, 5)
        order.append(priority)
        place.leave()

    tasks = [asyncio.create_task(wait(priority)) for priority in (0, 2, 1)]
    await asyncio.sleep(0)
    first.leave()
    await asyncio.gather(*tasks)
    assert order == [2, 1, 0]


async def test_half_a_minute_of_waiting_is_worth_a_step_of_priority() -> None:
    now, order = [0.0], []
    gate = Gate(1, monotonic=lambda: now[0])
    first = await gate.enter(1, 0, 1)

    async def wait(priority: int) -> None:
        place = await gate.enter(1, priority, 5)
        order.append(priority)
        place.leave()

    old = asyncio.create_task(wait(0))
    await asyncio.sleep(0)
    now[0] = 31.0
    new = asyncio.create_task(wait(1))
    await asyncio.sleep(0)
    first.leave()
    await asyncio.gather(old, new)
    assert order == [0, 1]


async def test_who_waits_too_long_takes_no_slot_with_him() -> None:
    gate = Gate(1)
    place = await gate.enter(1, 0, 1)
    with pytest.raises(WaitedTooLong):
        await gate.enter(1, 0, 0.01)
    assert gate.waiting == 0
    place.leave()
    place.leave()
    assert gate.inside == 0
    (await gate.enter(1, 0, 0.01)).leave()


@settings(deadline=None, max_examples=60)
@given(
    calls=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 80), st.floats(0, 50)), min_size=1, max_size=40),
    requests=st.integers(1, 5),
    tokens=st.integers(60, 200),
)
@example(calls=[(1, 0, 2.0), (1, 0, 0.0), (1, 0, 0.0), (1, 0, 0.0), (1, 0, 1.0), (1, 0, 0.0)], requests=2, tokens=60)
def test_no_window_holds_more_than_its_requests_and_reserved_tokens(
    calls: list[tuple[int, int, float]], requests: int, tokens: int
) -> None:
    now = [0.0]
    gate = Gate(100, requests, tokens, monotonic=lambda: now[0])
    admitted: list[tuple[float, int]] = []

    async def play() -> None:
        for reserved, used, pause in calls:
            task = asyncio.create_task(gate.enter(reserved, 0, 5))
            await _settled()
            while not task.done():
                now[0] += 1.0
                gate._admit()
                await _settled()
            admitted.append((now[0], max(reserved, used)))
            task.result().settle(min(reserved, used))
            task.result().leave()
            now[0] += pause
            entries = [amount for at, amount in gate._used if at > now[0] - WINDOW_SECONDS]
            assert sum(entries) <= tokens

    asyncio.run(play())
    for at, _ in admitted:
        assert sum(at - WINDOW_SECONDS < other <= at for other, _ in admitted) <= requests


async def _settled() -> None:
    """Let a call that was let in hear of it before the clock moves: its future, its shield and its task take turns."""
    for _ in range(5):
        await asyncio.sleep(0)
