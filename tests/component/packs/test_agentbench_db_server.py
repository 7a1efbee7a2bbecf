"""A case's server in an environment container, over the real shim: it comes up, and whose fault its end is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.mariadb import installed
from support.shim import shim

from casewarden_sdk.environment import Environment
from casewarden_sdk.errors import CandidateError, EnvironmentFailure
from casewarden_tasks.agentbench_db import server as module
from casewarden_tasks.agentbench_db.database import Database
from casewarden_tasks.agentbench_db.hashing import table_hash
from casewarden_tasks.agentbench_db.rows import Table
from casewarden_tasks.agentbench_db.server import Server, start_server

TABLE = Table("t", ("a", "b"), (("1", "x"), ("2", None)))


@contextlib.asynccontextmanager
async def container(scratch: Path) -> AsyncIterator[Environment]:
    installed()
    path = str(scratch / "shim.sock")
    process = await asyncio.create_subprocess_exec(
        str(shim()), "--local", "--dial", path, stdin=subprocess.DEVNULL, start_new_session=True
    )
    environment = await Environment.connect("db", path, 60, loss_grace=0.0)
    try:
        yield environment
    finally:
        await environment.close()
        assert await asyncio.wait_for(process.wait(), 30) == 0


def end(server: Server) -> None:
    """End the server as a crash would."""
    os.kill(int((Path(server.folder) / "pid").read_text()), signal.SIGKILL)


async def test_a_case_is_played_on_a_server_of_its_own_which_leaves_nothing_behind(tmp_path: Path) -> None:
    async with container(tmp_path) as environment:
        server = await start_server(environment)
        database = Database(server, TABLE)
        await database.load()
        assert await database.carry_out("INSERT INTO t VALUES ('3', 'z')") == "[]"
        assert await database.carry_out("SELECT a FROM t WHERE b = 'Z'") == "[('3',)]"
        assert await database.printed_hash() == f"[('{table_hash([*TABLE.rows, ('3', 'z')])}',)]"
        # Its stream may have 16 MiB; then it is cut, and the next has its own.
        endless = await database.carry_out("SELECT REPEAT('x', 1000) FROM seq_1_to_50000")
        assert endless == "2013 (HY000): Lost connection to MySQL server during query"
        assert await database.carry_out("SELECT 1") == "[(1,)]"
        await server.close()
        assert not Path(server.folder).exists()


async def test_a_server_that_dies_before_the_agent_acted_is_the_environments(tmp_path: Path) -> None:
    async with container(tmp_path) as environment:
        server = await start_server(environment)
        end(server)
        with pytest.raises(EnvironmentFailure, match=r"its database server ended with signal 9"):
            await Database(server, TABLE).load()
        await server.close()


async def test_a_server_that_dies_after_the_agent_acted_is_the_agents(tmp_path: Path) -> None:
    async with container(tmp_path) as environment:
        server = await start_server(environment)
        database = Database(server, TABLE)
        await database.load()
        assert await database.carry_out("SELECT 1") == "[(1,)]"
        end(server)
        for what in (database.carry_out("SELECT 1"), database.printed_hash()):
            with pytest.raises(CandidateError, match=r"SandboxKilled: .*its database server ended with signal 9"):
                await what
        await server.close()


async def test_a_server_that_does_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with container(tmp_path) as environment:
        made = module.files
        monkeypatch.setattr(
            module, "files", lambda words: {**made(words), "mariadb.cnf": b"[mariadbd]\nno_such_option = 1\n"}
        )
        with pytest.raises(
            EnvironmentFailure, match=r"(?s)MariaDB did not start within 60 s: .*unknown variable 'no_such_option"
        ):
            await start_server(environment)
