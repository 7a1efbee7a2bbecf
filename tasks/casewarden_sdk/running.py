"""A program of an environment container that runs while its driver talks to it: a server, a shell, a pipe."""

from __future__ import annotations

from typing import Any, Awaitable, Callable, Coroutine, Optional, Protocol

from .connection import Refusal
from .supervisor import SIGKILL, Exit, Session, Supervisor

__all__ = ["Host", "Running"]

_ANSWER_SECONDS = 30.0


class Host(Protocol):
    """What a running program needs of its container's ``Environment``."""

    def asked(self, question: Coroutine[Any, Any, Any], agent: bool, late: bool = True) -> Awaitable[Any]:
        """Ask the shim; what goes wrong becomes the error of who is to blame."""

    def lost(self, why: str) -> Awaitable[Exception]:
        """Return the error of who is to blame for the loss of what should be there."""


class Running:
    """A running program, whose streams are its driver's. Use it as an async context manager: leaving kills it.

    Errors of its methods are those of ``Environment``. ``agent`` says that what it does, the agent has asked for.
    """

    def __init__(
        self, host: Host, supervisor: Supervisor, session: Session, errors: Callable[[], bytes], agent: bool
    ) -> None:
        self._host = host
        self._supervisor = supervisor
        self._session = session
        self._errors = errors
        self._agent = agent

    async def __aenter__(self) -> Running:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def exit(self) -> Optional[Exit]:
        """How it ended; None while it runs."""
        return self._session.exit

    def errors(self) -> bytes:
        """Return what it has written to standard error so far."""
        return self._errors()

    async def send(self, data: bytes) -> bool:
        """Write to its standard input and return whether it still reads it; waits until the kernel has taken all."""

        async def write() -> bool:
            try:
                await self._supervisor.write(self._session, data)
            except Refusal:
                return False
            return True

        return bool(await self._host.asked(write(), self._agent))

    async def receive(self, seconds: Optional[float] = None) -> bytes:
        """Return what it has written to standard output, waiting for a byte at least; empty once there is no more.

        ``asyncio.TimeoutError`` after ``seconds``.
        """
        session = self._session
        await self._until(lambda: bool(session.stdout) or session.stdout_eof or session.exit is not None, seconds)
        data = bytes(session.stdout)
        session.stdout.clear()
        return data

    async def until_said(self, words: bytes, seconds: float) -> bool:
        """Wait until it has written ``words`` to standard error; False where it ended without.

        ``asyncio.TimeoutError`` after ``seconds``.
        """
        await self._until(lambda: words in self._errors() or self._session.exit is not None, seconds)
        return words in self._errors()

    async def wait(self, seconds: Optional[float] = None) -> Exit:
        """Return how it ended; ``asyncio.TimeoutError`` after ``seconds``."""
        await self._until(lambda: self._session.exit is not None, seconds)
        assert self._session.exit is not None
        return self._session.exit

    async def close(self) -> None:
        """Kill it, and its process group, where it still runs."""

        async def kill() -> None:
            await self._supervisor.signal(self._session, SIGKILL, _ANSWER_SECONDS)
            await self._supervisor.wait(self._session, lambda: self._session.exit is not None, _ANSWER_SECONDS)

        if self._session.exit is None and not self._supervisor.lost.is_set():
            await self._host.asked(kill(), self._agent)
        self._supervisor.sessions.pop(self._session.number, None)

    async def _until(self, done: Callable[[], bool], seconds: Optional[float]) -> None:
        await self._host.asked(self._supervisor.wait(self._session, done, seconds), self._agent, late=False)
        if not done():
            raise await self._host.lost("it ended while a program of it was running")
