"""One limit for all requests of the process: a rate with a burst, and how many may be on their way at once.

A 429 pauses everybody, not only the call that met it: the API server asks the client as a whole to slow down.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from casewarden.ports.clock import Clock

__all__ = ["Limiter"]


class Limiter:
    """A bucket of ``burst`` tokens, filled with ``rate`` a second, and ``in_flight`` places; served in order."""

    def __init__(self, rate: float, burst: int, in_flight: int, clock: Clock) -> None:
        if rate <= 0 or burst < 1 or in_flight < 1:
            raise ValueError(f"limiter: rate {rate}, burst {burst} and in_flight {in_flight} must be positive")
        self._interval = 1.0 / rate
        self._slack = (burst - 1) * self._interval
        self._clock = clock
        self._places = asyncio.Semaphore(in_flight)
        self._next = clock.monotonic() - self._slack
        self._resume_at = 0.0
        self.waited_seconds = 0.0

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold one place and spend one token."""
        async with self._places:
            await self._token()
            yield

    def pause(self, seconds: float) -> None:
        """Let nobody start for so long; a shorter pause never shortens a longer one."""
        self._resume_at = max(self._resume_at, self._clock.monotonic() + seconds)

    async def _token(self) -> None:
        now = self._clock.monotonic()
        due = max(self._next, now - self._slack)
        self._next = due + self._interval
        while (wait := max(due, self._resume_at) - self._clock.monotonic()) > 0:
            self.waited_seconds += wait
            await self._clock.sleep(wait)
