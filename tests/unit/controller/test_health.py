"""Health fails for what a restart would heal, and for nothing else."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import ClientSession

from casewarden.controller.health import Health, LoopLag, serve
from casewarden.ports.clock import ManualClock
from casewarden.ports.metrics import NoMetrics


class Setup:
    def __init__(self) -> None:
        self.clock = ManualClock(start=1000.0)
        self.informers: list[tuple[str, float]] = [("pods in all namespaces", 1000.0)]
        self.runs: list[tuple[str, float]] = [("evals/one", 1000.0)]
        self.lag = LoopLag(self.clock, NoMetrics())
        self.is_ready = True
        self.ended: list[str] = []
        self.health = Health(
            self.clock, self.lag, lambda: self.informers, lambda: self.runs, lambda: self.ended, lambda: self.is_ready
        )


async def test_an_operator_that_turns_is_well() -> None:
    setup = Setup()
    await setup.clock.advance(100)
    assert setup.health.problems() == []


async def test_a_watch_that_stands_still_is_a_problem() -> None:
    setup = Setup()
    await setup.clock.advance(181)
    assert setup.health.problems() == ["the watch of pods in all namespaces stands still for 181 s"]


async def test_a_part_that_ended_is_a_problem() -> None:
    setup = Setup()
    setup.ended = ["the heap of timers"]
    assert setup.health.problems() == ["the heap of timers has ended"]


async def test_a_run_that_stands_still_is_a_problem() -> None:
    setup = Setup()
    await setup.clock.advance(301)
    setup.informers = [("pods in all namespaces", setup.clock.monotonic())]
    assert setup.health.problems() == ["run evals/one stands still for 301 s"]


async def test_a_loop_that_was_late_is_a_problem_for_a_minute() -> None:
    setup = Setup()
    task = asyncio.create_task(setup.lag.run())
    await asyncio.sleep(0)
    # The loop gets its turn only after twelve seconds, where one was asked for.
    await _late(setup.clock, 12)
    setup.informers = setup.runs = []
    assert setup.health.problems() == ["the event loop was 11.0 s late"]
    await setup.clock.advance(62)
    assert setup.health.problems() == []
    task.cancel()


async def _late(clock: ManualClock, seconds: float) -> None:
    clock._now += seconds
    await clock.advance(0)


@pytest.mark.parametrize(("still", "status"), [(0, 200), (400, 500)])
async def test_the_pages_answer_for_it(still: float, status: int) -> None:
    setup = Setup()
    await setup.clock.advance(still)
    runner = await serve(setup.health, lambda: b"casewarden_runs 0\n", lambda: {"pools": []}, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    async with ClientSession() as session:
        async with session.get(f"{url}/healthz") as answer:
            assert answer.status == status
        async with session.get(f"{url}/readyz") as answer:
            assert answer.status == 200
        setup.is_ready = False
        async with session.get(f"{url}/readyz") as answer:
            assert answer.status == 503
        async with session.get(f"{url}/metrics") as answer:
            assert await answer.text() == "casewarden_runs 0\n"
        async with session.get(f"{url}/slots") as answer:
            assert await answer.json() == {"pools": []}
    await runner.cleanup()
