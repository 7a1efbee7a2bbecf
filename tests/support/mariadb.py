"""A MariaDB of the tests' own on this machine: the pack's configuration and start, without shim and container."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from casewarden_sdk.errors import CandidateError
from casewarden_tasks.agentbench_db import server
from casewarden_tasks.agentbench_db.client import GRADER, Account, Connection, converse
from casewarden_tasks.agentbench_db.hashing import quoted
from devkit import debian
from devkit.settings import cache_root

__all__ = ["DirectHost", "LocalMariaDB", "installed", "local_mariadb"]

_SECONDS = 60.0
_KEPT = ("information_schema", "mysql")


@dataclass(frozen=True)
class LocalMariaDB:
    """A running server: the folder with its socket, and its accounts' passwords."""

    folder: Path
    passwords: dict[Account, str]

    @property
    def socket(self) -> str:
        """Where it listens."""
        return str(self.folder / "sock")


class _Direct:
    """A stream to its socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, data: bytes) -> bool:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError:
            return False
        return True

    async def receive(self, seconds: float | None = None) -> bytes:
        try:
            return await asyncio.wait_for(self._reader.read(1 << 16), seconds)
        except OSError:
            return b""

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


@dataclass
class DirectHost:
    """What a ``Database`` asks, without a container around the server. ``gone`` plays a server that has ended."""

    server: LocalMariaDB
    gone: bool = False
    passwords: dict[Account, str] = field(init=False)

    def __post_init__(self) -> None:
        self.passwords = self.server.passwords

    async def connect(self, account: Account) -> _Direct:
        return _Direct(*(await asyncio.open_unix_connection(self.server.socket)))

    async def require(self) -> None:
        if self.gone:
            raise CandidateError("SandboxKilled", "its database server ended")

    async def close(self) -> None:
        """Leave it running for the next case, without what this one made."""
        await self.run(
            "DROP DATABASE " + quoted(name) for (name,) in await self.run(["SHOW DATABASES"]) if name not in _KEPT
        )

    async def run(self, statements: Iterable[str]) -> list[tuple[Any, ...]]:
        """Carry out statements as the grader and return the rows of the last."""

        def work(connection: Connection) -> list[tuple[Any, ...]]:
            rows: Sequence[tuple[Any, ...]] = ()
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
                    rows = cursor.fetchall()
            return list(rows)

        stream = await self.connect(GRADER)
        return await converse(stream, GRADER, self.passwords[GRADER], None, work, _SECONDS)


@contextlib.contextmanager
def local_mariadb() -> Iterator[LocalMariaDB]:
    """Run a server for as long as the context is open; the Debian packages are installed where they are missing."""
    installed()
    # A unix socket's path is short; pytest's folders are not.
    with tempfile.TemporaryDirectory(prefix="cw-db-", dir="/dev/shm") as scratch:
        folder = Path(scratch)
        passwords = {account: f"{account}-of-the-tests" for account in Account}
        for name, data in server.files(passwords).items():
            (folder / name).write_bytes(data)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                ["/bin/sh", str(folder / "start.sh"), str(folder)],
                env={**os.environ, "PATH": debian.SEARCH},
                stdout=log, stderr=log,
            )  # fmt: skip
        try:
            _await(process, folder / "log")
            yield LocalMariaDB(folder, passwords)
        finally:
            process.kill()
            process.wait(10)


def installed() -> None:
    """Install the Debian packages where they are missing."""
    # Workers of a test session may come here at once, and apt has one lock.
    lock = cache_root() / "apt.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        debian.require(debian.DATABASE)


def _await(process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _SECONDS
    while server.READY not in log.read_bytes():
        if process.poll() is not None or time.monotonic() > until:
            raise AssertionError(f"MariaDB did not start: {log.read_text()[-2000:]}")
        time.sleep(0.02)
