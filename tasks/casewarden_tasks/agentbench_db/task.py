"""DBBench as a task of AgentBench: a sample is a row of the data, played over a database of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from casewarden_sdk.agentbench import SampleStatus, Session, Task, TaskOutput, TaskSampleExecutionResult
from casewarden_sdk.agentbench.messages import SampleIndex
from casewarden_sdk.errors import ContractError

from . import metrics
from .database import Database, Host
from .judging import right_answer
from .play import opening, play
from .rows import Row
from .server import start_server

__all__ = ["DBBench", "is_right"]


def is_right(row: Row, result: Any) -> bool:
    """Judge the result of a sample: what the table hashes to, or the answer."""
    answer = result.get("answer") if isinstance(result, dict) else None
    if not isinstance(answer, str):
        return False
    return answer == row.answer_md5 if row.changes else right_answer(answer, row.label)


class DBBench(Task):
    """``rows`` by their places in the data set, of which ``indices`` are played; None for all.

    ``ContractError`` for an index that is none.
    """

    def __init__(
        self, rows: Sequence[Row], max_round: int = 15, indices: Sequence[int] | None = None, name: str = "dbbench"
    ) -> None:
        super().__init__(name)
        self.rows = rows
        self.max_round = max_round
        self._indices = range(len(rows)) if indices is None else indices
        for index in self._indices:
            if not 0 <= index < len(rows):
                raise ContractError(f"spec.task.params.indices: no row {index}; there are 0 to {len(rows) - 1}")

    def get_indices(self) -> list[SampleIndex]:
        """Return the places that are played."""
        return list(self._indices)

    async def start_sample(self, index: SampleIndex, session: Session) -> TaskSampleExecutionResult:
        """Play a row. The result's ``answer`` is judged: of a change, it is the table's hash, whatever was said."""
        row, clock = self.rows[int(index)], _Clock()
        host = await self.host(session)
        try:
            clock.over("start")
            database = Database(host, row.table)
            await database.load()
            clock.over("load")
            session.inject(opening(row))
            played = await play(session, database, self.max_round)
            clock.over("play")
            result = {"answer": played.answer, "type": row.type, "error": None}
            session.facts.update(said=played.answer, statements=played.statements)
            if session.is_cancelled:
                return TaskSampleExecutionResult(SampleStatus.UNKNOWN)
            if row.changes:
                result["answer"] = await database.printed_hash()
            clock.over("hash")
            return TaskSampleExecutionResult(played.status, result)
        finally:
            await host.close()
            session.facts["seconds"] = clock.seconds

    def calculate_overall(self, results: list[TaskOutput]) -> dict[str, float]:
        """Return the figures of ``metrics``. A sample without a result is wrong: no agent may choose to be left out."""
        rows = [(self.rows[int(output.index)], output.result) for output in results if output.index is not None]
        return metrics.overall((row.type, is_right(row, result)) for row, result in rows)

    async def host(self, session: Session) -> Host:
        """Return the server of the case that the session plays."""
        return await start_server(await session.runtime.environment("db"))


class _Clock:
    """Seconds by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.monotonic()

    def over(self, phase: str) -> None:
        now = time.monotonic()
        self.seconds[phase], self._since = round(now - self._since, 3), now
