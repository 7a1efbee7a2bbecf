"""One heap calls everything when it is due, and nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from casewarden.controller.timers import Timers
from casewarden.ports.clock import ManualClock


class Setup:
    def __init__(self) -> None:
        self.clock = ManualClock(start=0.0)
        self.timers = Timers(self.clock)
        self.called: list[tuple[float, str]] = []

    def set(self, key: str, due: float) -> None:
        self.timers.set(key, due, lambda: self.called.append((self.clock.now(), key)))


@pytest.fixture
async def setup() -> AsyncIterator[Setup]:
    made = Setup()
    task = asyncio.create_task(made.timers.run())
    await asyncio.sleep(0)
    yield made
    task.cancel()


async def test_calls_come_when_they_are_due_and_in_order(setup: Setup) -> None:
    for key, due in (("late", 30.0), ("early", 5.0), ("past", -1.0), ("far", 1000.0)):
        setup.set(key, due)
    await setup.clock.advance(50)
    assert [key for _, key in setup.called] == ["past", "early", "late"]
    assert {key: at for at, key in setup.called}["early"] == 5.0
    await setup.clock.advance(1000)
    assert setup.called[-1] == (1000.0, "far")


async def test_a_key_that_is_set_again_moves(setup: Setup) -> None:
    setup.set("a", 5)
    setup.set("a", 20)
    assert setup.timers.due("a") == 20
    await setup.clock.advance(10)
    assert setup.called == []
    await setup.clock.advance(20)
    assert setup.called == [(20.0, "a")]


async def test_a_cancelled_key_is_not_called(setup: Setup) -> None:
    setup.set("a", 5)
    setup.timers.cancel("a")
    setup.timers.cancel("never set")
    await setup.clock.advance(10)
    assert setup.called == []


async def test_a_call_that_fails_does_not_stop_the_others(setup: Setup) -> None:
    setup.timers.set("bad", 1, lambda: 1 / 0)
    setup.set("good", 2)
    await setup.clock.advance(5)
    assert setup.called == [(2.0, "good")]


async def test_a_call_may_set_its_own_key_again(setup: Setup) -> None:
    def again() -> None:
        setup.called.append((setup.clock.now(), "again"))
        if len(setup.called) < 3:
            setup.timers.set("again", setup.clock.now() + 10, again)

    setup.timers.set("again", 10, again)
    await setup.clock.advance(100)
    assert [at for at, _ in setup.called] == [10, 20, 30]
