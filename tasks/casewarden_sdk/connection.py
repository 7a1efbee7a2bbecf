"""One end of a socket that asks questions: requests go out, answers come back by ``id``, events go to a callback."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
from typing import Any, Callable, Dict, Optional, Tuple

from .errors import CandidateError, EnvironmentFailure
from .wire import Frame, WireError, encode, read_frame

__all__ = ["Connection", "ConnectionLost", "Refusal", "accept_once", "error_of", "refusal_of"]


class ConnectionLost(Exception):
    """The peer went away, or sent what is no frame; nothing more can be asked."""


class Refusal(Exception):
    """The peer answered a request with ``ok`` false; ``header`` is its whole answer."""

    def __init__(self, header: Dict[str, Any]) -> None:
        error = header.get("error")
        error = error if isinstance(error, dict) else {}
        self.header = header
        self.party = str(error.get("party", "environment"))
        self.reason = str(error.get("reason", "Unknown"))
        self.message = str(error.get("message", "the request was refused without a message"))
        super().__init__(f"{self.reason}: {self.message}")


def error_of(refusal: Refusal) -> Exception:
    """Turn a refusal into the error that says who is to blame."""
    kind = CandidateError if refusal.party == "candidate" else EnvironmentFailure
    return kind(refusal.reason, refusal.message)


def refusal_of(error: Exception) -> Dict[str, str]:
    """Write an error as the ``error`` object of an answer."""
    party = "candidate" if isinstance(error, CandidateError) else "environment"
    if isinstance(error, (CandidateError, EnvironmentFailure)):
        return {"party": party, "reason": error.reason, "message": error.message}
    return {"party": party, "reason": "Unknown", "message": f"{type(error).__name__}: {error}"}


async def accept_once(path: str, seconds: Optional[float]) -> Tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Listen on a unix socket at ``path`` (mode 0666), take the first connection, and no other ever.

    ``asyncio.TimeoutError`` where nobody connects within ``seconds``; None leaves the limit to the caller.
    """
    first: asyncio.Future[Tuple[asyncio.StreamReader, asyncio.StreamWriter]]
    first = asyncio.get_running_loop().create_future()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if first.done():
            writer.close()
        else:
            first.set_result((reader, writer))

    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    server = await asyncio.start_unix_server(connected, path)
    try:
        os.chmod(path, 0o666)  # noqa: S103 - the peer has another uid, and fsGroup is defeated by the umask
        return await asyncio.wait_for(first, seconds)
    finally:
        server.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


class Connection:
    """Asks over a stream pair; make it inside a running event loop and ``close`` it.

    ``on_event`` gets every frame without an ``id``, in order, as it arrives. ``lost`` is set, and
    ``on_lost`` called, once nothing more can come.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        on_event: Optional[Callable[[Dict[str, Any], bytes], None]] = None,
        on_lost: Optional[Callable[[], None]] = None,
    ) -> None:
        self.lost = asyncio.Event()
        self.why_lost = "the peer closed the connection"
        self._reader = reader
        self._writer = writer
        self._on_event = on_event
        self._on_lost = on_lost
        self._ids = itertools.count(1)
        self._waiting: Dict[int, asyncio.Future[Frame]] = {}
        self._pump = asyncio.ensure_future(self._read())

    async def ask(self, header: Dict[str, Any], payload: bytes = b"", seconds: Optional[float] = None) -> Frame:
        """Send a request and return the answer.

        ``Refusal`` where the peer answers ``ok`` false, ``ConnectionLost`` where it is gone, ``asyncio.TimeoutError``
        after ``seconds`` (the answer, should it still come, is dropped).
        """
        if self.lost.is_set():
            raise ConnectionLost(self.why_lost)
        number = next(self._ids)
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._writer.write(encode({**header, "id": number}, payload))
            frame = await asyncio.wait_for(self._sent(answer), seconds)
        finally:
            self._waiting.pop(number, None)
        if frame[0].get("ok") is not True:
            raise Refusal(frame[0])
        return frame

    async def close(self) -> None:
        """Close the socket and wait until the reader has stopped."""
        self._writer.close()
        self._pump.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._pump

    async def _sent(self, answer: asyncio.Future[Frame]) -> Frame:
        # A peer that is gone is told by the reader, which may hold an answer that came before the end.
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()
        return await answer

    async def _read(self) -> None:
        try:
            while True:
                header, payload = await read_frame(self._reader)
                if "id" not in header:
                    if self._on_event is not None:
                        self._on_event(header, payload)
                    continue
                waiting = self._waiting.get(header["id"]) if isinstance(header["id"], int) else None
                if waiting is not None and not waiting.done():
                    waiting.set_result((header, payload))
        except WireError as error:
            self.why_lost = f"the peer broke the wire protocol: {error}"
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self.lost.set()
            if self._on_lost is not None:
                self._on_lost()
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(ConnectionLost(self.why_lost))
            self._writer.close()
