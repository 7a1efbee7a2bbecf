"""An event loop whose time is a number: it jumps to the next timer when there is nothing to do now."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
EPOCH = 1_800_000_000.0
TURN = 20e-6
MOST_TURNS = 100_000


class Deadlock(Exception):
    """Everybody waits, and for nothing that a timer brings."""


class Restless(Exception):
    """Somebody turns and turns while no time passes: on a real machine it would burn a core."""


class _Selector(selectors.DefaultSelector):
    loop: VirtualLoop
    turns = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # Work takes time: a float of the epoch is coarse, and a wait that rounds to nothing must end all the same.
        self.loop.passed += TURN
        self.turns += 1
        if self.turns > self.loop.most_turns:
            raise Restless(f"{self.turns} turns of the loop in {self.loop.passed:.3f} s")
        events = super().select(0)
        if not events and timeout is None:
            raise Deadlock
        if not events and timeout:
            self.loop.passed += timeout
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """``passed`` is the time since its start, in seconds."""

    def __init__(self, most_turns: int = MOST_TURNS) -> None:
        self.passed, self.most_turns = 0.0, most_turns
        selector = _Selector()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self.passed

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Do a thread's work at once: a real thread would end at a real time, and no two plays were the same."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done


class LoopClock:
    """The loop's time as a ``Clock``; ``jump`` is by how much somebody set the wall clock."""

    def __init__(self) -> None:
        self.jump = 0.0

    def now(self) -> float:
        return EPOCH + self.jump + asyncio.get_running_loop().time()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))


def play(work: Coroutine[Any, Any, T], turns: int = MOST_TURNS) -> T:
    """Run to the end in virtual time, in so many turns of the loop at most."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(turns)) as runner:
        return runner.run(work)
