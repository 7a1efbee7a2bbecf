"""MySQL's protocol over any stream of bytes: PyMySQL in a thread, at one end of a pair of sockets."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import pymysql
from pymysql.constants import FIELD_TYPE
from pymysql.converters import conversions, convert_date, convert_datetime
from pymysql.cursors import SSCursor

__all__ = ["AGENT", "GRADER", "LOST", "Account", "Connection", "Stream", "converse"]

T = TypeVar("T")
if TYPE_CHECKING:
    Connection = pymysql.connections.Connection[SSCursor]
else:
    Connection = pymysql.connections.Connection
COLLATION: Final = "utf8mb4_uca1400_nopad_ai_ci"
LOST: Final = (1053, 1317, 1927, 2006, 2013)
"""Numbers of errors that also the end of the whole server may show as."""
_CHUNK: Final = 1 << 16


class Account(enum.StrEnum):
    """Who connects."""

    AGENT = "agent"
    GRADER = "grader"


AGENT, GRADER = Account.AGENT, Account.GRADER


class Stream(Protocol):
    """A connection's bytes; ``casewarden_sdk.running.Running`` is one."""

    async def send(self, data: bytes) -> bool:
        """Write; false where nobody reads."""

    async def receive(self, seconds: float | None = None) -> bytes:
        """Return what came, at least a byte; empty at the end."""

    async def close(self) -> None:
        """Hang up."""


async def converse(
    stream: Stream,
    account: Account,
    password: str,
    database: str | None,
    work: Callable[[Connection], T],
    seconds: float,
) -> T:
    """Connect over ``stream``, let ``work`` use the connection in a thread, and hang up.

    ``TimeoutError`` after ``seconds``; what ``work`` raises, and what the stream does, which goes first.
    """
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    pumps = [asyncio.ensure_future(_up(ours, stream)), asyncio.ensure_future(_down(stream, ours))]
    working = asyncio.ensure_future(asyncio.to_thread(_work, theirs, account, password, database, work))
    try:
        done, _ = await asyncio.wait({working}, timeout=seconds)
    finally:
        # The end of its socket ends the thread too, wherever it is.
        with contextlib.suppress(OSError):
            ours.shutdown(socket.SHUT_RDWR)
        for pump in pumps:
            pump.cancel()
        ended = await asyncio.gather(*pumps, return_exceptions=True)
        await asyncio.wait({working})
        ours.close()
        await stream.close()
    failed = working.exception()
    for error in ended:
        if isinstance(error, Exception):
            raise error
    if not done:
        raise TimeoutError
    if failed is not None:
        raise failed
    return working.result()


async def _up(ours: socket.socket, stream: Stream) -> None:
    loop = asyncio.get_running_loop()
    while data := await _received(loop, ours):
        if not await stream.send(data):
            break


async def _received(loop: asyncio.AbstractEventLoop, ours: socket.socket) -> bytes:
    try:
        return await loop.sock_recv(ours, _CHUNK)
    except OSError:  # its thread was quicker
        return b""


async def _down(stream: Stream, ours: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):
        while data := await stream.receive():
            await loop.sock_sendall(ours, data)
        ours.shutdown(socket.SHUT_WR)


def _work(
    theirs: socket.socket, account: Account, password: str, database: str | None, work: Callable[[Connection], T]
) -> T:
    try:
        connection: Connection = pymysql.connect(
            user=str(account),
            password=password,
            database=database,
            charset="utf8mb4",
            collation=COLLATION,
            cursorclass=SSCursor,
            conv=_CONVERSIONS,
            defer_connect=True,
        )
        connection.connect(theirs)
        try:
            return work(connection)
        finally:
            with contextlib.suppress(pymysql.Error, OSError):
                connection.close()
    finally:
        theirs.close()


def _bit(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _or_none(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """Give None for what is no date of Python's (0000-00-00), where PyMySQL gives the text."""

    def converted(text: str) -> Any:
        value = convert(text)
        return None if isinstance(value, str) else value

    return converted


# The types of Python that the benchmark's connector gives.
_CONVERSIONS: Final[dict[Any, Any]] = {
    **conversions,
    FIELD_TYPE.BIT: _bit,
    FIELD_TYPE.DATE: _or_none(convert_date),
    FIELD_TYPE.DATETIME: _or_none(convert_datetime),
    FIELD_TYPE.TIMESTAMP: _or_none(convert_datetime),
}
