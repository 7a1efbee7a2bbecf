"""Admission to one endpoint: how many calls at once, how many requests and tokens in any minute, exactly.

A try takes its place in all three before it leaves, and every further try of a call takes a place of its own. Those
that wait go by priority, and every half minute of waiting is worth one step of it, so that nobody waits for ever.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections import deque
from collections.abc import Callable

__all__ = ["Gate", "Place", "WaitedTooLong"]

# A little over a minute: what left a minute apart may arrive less than a minute apart.
WINDOW_SECONDS = 60.5
_SECONDS_PER_PRIORITY = 30.0


class WaitedTooLong(Exception):
    """No place became free in the time that the caller had."""


class Place:
    """A try's place. ``leave`` it once; ``settle`` says how many tokens it really used."""

    def __init__(self, gate: Gate, entry: list[float]) -> None:
        self._gate = gate
        self._entry = entry
        self._inside = True

    def settle(self, tokens: int) -> None:
        """Count what was used in the place of what was reserved."""
        self._gate.correct(self._entry, tokens)

    def leave(self) -> None:
        """Give the slot back; again without effect."""
        if self._inside:
            self._inside = False
            self._gate.left()


class Gate:
    """One endpoint's limits over all runs. ``monotonic`` is in seconds."""

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._concurrency = concurrency
        self._requests = requests_per_minute
        self._tokens = tokens_per_minute
        self._monotonic = monotonic
        self._inside = 0
        self._paused_until = 0.0
        self._sent: deque[float] = deque()
        self._used: deque[list[float]] = deque()
        self._waiting: list[tuple[float, int, int, asyncio.Future[Place]]] = []
        self._numbers = itertools.count()
        self._alarm: asyncio.TimerHandle | None = None

    @property
    def inside(self) -> int:
        """Tries that are under way."""
        return self._inside

    @property
    def waiting(self) -> int:
        """Tries that wait for a place."""
        return sum(not future.done() for *_, future in self._waiting)

    async def enter(self, tokens: int, priority: int, seconds: float) -> Place:
        """Wait for a place; ``WaitedTooLong`` after ``seconds``. ``tokens`` are reserved until ``settle``."""
        future: asyncio.Future[Place] = asyncio.get_running_loop().create_future()
        order = self._monotonic() - priority * _SECONDS_PER_PRIORITY
        heapq.heappush(self._waiting, (order, next(self._numbers), tokens, future))
        self._admit()
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(future)
        except BaseException as error:
            if future.done() and not future.cancelled():
                future.result().leave()
            future.cancel()
            self._admit()
            if isinstance(error, TimeoutError):
                raise WaitedTooLong from None
            raise

    def pause(self, seconds: float) -> None:
        """Let nobody in for ``seconds``: the endpoint said so."""
        self._paused_until = max(self._paused_until, self._monotonic() + seconds)

    def correct(self, entry: list[float], tokens: int) -> None:
        """Put ``tokens`` in the place of a reservation."""
        entry[1] = float(tokens)
        self._admit()

    def left(self) -> None:
        """Free a slot."""
        self._inside -= 1
        self._admit()

    def _admit(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        while self._waiting:
            _, _, tokens, future = self._waiting[0]
            if future.done():
                heapq.heappop(self._waiting)
                continue
            if self._inside >= self._concurrency:
                return
            wait = self._wait_for(tokens)
            if wait > 0:
                self._alarm = asyncio.get_running_loop().call_later(wait, self._admit)
                return
            heapq.heappop(self._waiting)
            now = self._monotonic()
            entry = [now, float(tokens)]
            self._inside += 1
            self._sent.append(now)
            self._used.append(entry)
            future.set_result(Place(self, entry))

    def _wait_for(self, tokens: int) -> float:
        """Return the seconds until a try of so many tokens fits; 0 when it does now."""
        now = self._monotonic()
        old = now - WINDOW_SECONDS
        while self._sent and self._sent[0] <= old:
            self._sent.popleft()
        while self._used and self._used[0][0] <= old:
            self._used.popleft()
        wait = max(0.0, self._paused_until - now)
        if self._requests is not None and len(self._sent) >= self._requests:
            wait = max(wait, self._sent[len(self._sent) - self._requests] - old)
        if self._tokens is not None:
            # What can never fit is let in alone.
            room, total = max(0.0, self._tokens - tokens), sum(entry[1] for entry in self._used)
            for at, amount in self._used:
                if total <= room:
                    break
                wait = max(wait, at - old)
                total -= amount
        return wait
