"""One heap for everything that happens at a time: deadlines, waits, the end of a finished run's stay."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
from collections.abc import Callable, Hashable

from casewarden.ports.clock import Clock

__all__ = ["Timers"]

log = logging.getLogger(__name__)
# A laptop that slept or a clock that was set: the heap looks again at least this often.
_LONGEST_SLEEP = 60.0


class Timers:
    """Calls by key: setting a key again moves it. Times are seconds since the epoch; calls are quick."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Hashable]] = []
        self._calls: dict[Hashable, tuple[int, float, Callable[[], object]]] = {}
        self._order = itertools.count()
        self._moved = asyncio.Event()

    def set(self, key: Hashable, due: float, call: Callable[[], object]) -> None:
        """Have ``call`` called at ``due``, in place of what the key stood for."""
        number = next(self._order)
        self._calls[key] = (number, due, call)
        heapq.heappush(self._heap, (due, number, key))
        if self._heap[0][1] == number:
            self._moved.set()

    def cancel(self, key: Hashable) -> None:
        """Forget a key; one that is not set is no error."""
        self._calls.pop(key, None)

    def due(self, key: Hashable) -> float | None:
        """Return when a key is due, or None."""
        found = self._calls.get(key)
        return found and found[1]

    async def run(self) -> None:
        """Call what is due until cancelled."""
        while True:
            self._moved.clear()
            now = self._clock.now()
            while self._heap and self._heap[0][0] <= now:
                _, number, key = heapq.heappop(self._heap)
                self._fire(key, number)
            wait = min(self._heap[0][0] - now, _LONGEST_SLEEP) if self._heap else _LONGEST_SLEEP
            sleeper = asyncio.ensure_future(self._clock.sleep(wait))
            mover = asyncio.ensure_future(self._moved.wait())
            try:
                await asyncio.wait((sleeper, mover), return_when=asyncio.FIRST_COMPLETED)
            finally:
                sleeper.cancel()
                mover.cancel()

    def _fire(self, key: Hashable, number: int) -> None:
        found = self._calls.get(key)
        if found is None or found[0] != number:
            return
        del self._calls[key]
        try:
            found[2]()
        except Exception:
            log.exception("the timer %s failed", key)
