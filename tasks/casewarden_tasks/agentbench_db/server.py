"""A MariaDB of a case's own, in its environment container: brought up, reached over a unix socket, ended.

It is made anew in memory for every case, listens on a socket inside its container alone, and has two accounts with
passwords that nobody has seen: the grader's, and the agent's, which may read and change the tables of its one database.
"""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from casewarden_sdk.environment import Environment
from casewarden_sdk.errors import CandidateError, EnvironmentFailure
from casewarden_sdk.running import Running

from .client import AGENT, GRADER, Account

__all__ = ["READY", "Server", "files", "start_server"]

_HERE: Final = Path(__file__).parent
READY: Final = b"ready for connections"
_START_SECONDS: Final = 60.0
_LOG_BYTES: Final = 1 << 20
# Of one connection; it bounds what a statement's result may have.
_CONNECTION_BYTES: Final = 16 << 20
_DYING_SECONDS: Final = 0.5


@dataclass(frozen=True)
class Server:
    """A running server; ``passwords`` by account."""

    environment: Environment
    folder: str
    passwords: dict[Account, str]
    process: Running

    async def connect(self, account: Account) -> Running:
        """Open a connection's stream of bytes; what the agent's is asked, it is to blame for."""
        pipe = ["socat", "-b", "65536", "STDIO", f"UNIX-CONNECT:{self.folder}/sock"]
        return await self.environment.open(pipe, max_bytes=_CONNECTION_BYTES, agent=account is AGENT)

    async def require(self) -> None:
        """Raise the error of who is to blame where the server has ended; ask after a connection was lost."""
        try:
            ended = await self.process.wait(_DYING_SECONDS)
        except TimeoutError:
            return
        how = f"signal {ended.signal}" if ended.signal is not None else f"code {ended.code}"
        raise await self.environment.lost(f"its database server ended with {how}")

    async def close(self) -> None:
        """End the server and remove what it has written."""
        with contextlib.suppress(CandidateError, EnvironmentFailure):
            await self.process.close()
            await self.environment.exec(["rm", "-rf", self.folder], seconds=30.0)


async def start_server(environment: Environment) -> Server:
    """Make and start a server; ``EnvironmentFailure`` with what it said where it does not come up."""
    made = await environment.exec(["mktemp", "-d", "-p", "/tmp", "db.XXXXXX"], seconds=30.0)  # noqa: S108 - its own
    folder = made.stdout.decode("ascii", "replace").strip()
    if made.code != 0:
        said = made.stderr.decode("utf-8", "replace").strip()
        raise EnvironmentFailure("EnvironmentFailed", f"environment {environment.name!r}: no folder in /tmp: {said}")
    passwords = {account: secrets.token_hex(16) for account in (AGENT, GRADER)}
    for name, data in files(passwords).items():
        await environment.put(f"{folder}/{name}", data, 0o600)
    process = await environment.open(["/bin/sh", f"{folder}/start.sh", folder], max_bytes=_LOG_BYTES)
    try:
        ready = await process.until_said(READY, _START_SECONDS)
    except TimeoutError:
        ready = False
    if not ready:
        said = process.errors().decode("utf-8", "replace").strip()[-800:]
        raise EnvironmentFailure("EnvironmentFailed", f"MariaDB did not start within {_START_SECONDS:g} s: {said}")
    return Server(environment, folder, passwords, process)


def files(passwords: dict[Account, str]) -> dict[str, bytes]:
    """Return the files that ``start.sh`` wants in its folder, itself included."""
    made = {name: (_HERE / name).read_bytes() for name in ("mariadb.cnf", "start.sh")}
    return {**made, "init.sql": _accounts(passwords).encode("ascii")}


def _accounts(passwords: dict[Account, str]) -> str:
    """Return what the server does before it is ready: it forgets every account that it came with, and makes two."""
    return "\n".join(
        (
            "DELETE FROM mysql.global_priv;",
            "DELETE FROM mysql.proxies_priv;",
            "FLUSH PRIVILEGES;",
            *(f"CREATE USER '{name}'@'localhost' IDENTIFIED BY '{word}';" for name, word in passwords.items()),
            f"GRANT ALL ON *.* TO '{GRADER}'@'localhost' WITH GRANT OPTION;",
            "",
        )
    )
