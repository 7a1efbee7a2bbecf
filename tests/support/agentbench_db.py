"""agentbench-db over a server of the tests', for tests that need no container around it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from support.mariadb import DirectHost, LocalMariaDB

from casewarden_sdk.agentbench import Session
from casewarden_tasks.agentbench_db import AgentBenchDb
from casewarden_tasks.agentbench_db.task import DBBench

__all__ = ["DirectDb"]


class DirectDb(AgentBenchDb):
    """The pack, whose cases are played one after another on one server."""

    def __init__(self, server: LocalMariaDB) -> None:
        self.server = server

    def task(self, params: Mapping[str, Any], seed: int) -> DBBench:
        """Return the task, with another server."""
        task = super().task(params, seed)

        async def host(session: Session) -> DirectHost:
            return DirectHost(self.server)

        task.host = host  # type: ignore[method-assign]
        return task
