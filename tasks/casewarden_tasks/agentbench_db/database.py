"""The one database of a case: filled from its row, asked by the agent, and looked at by the grader at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol, TypeVar

import pymysql

from casewarden_sdk.errors import EnvironmentFailure

from .client import AGENT, GRADER, LOST, Account, Connection, Stream, converse
from .hashing import hash_query, quoted
from .printing import error_text, printed, shown
from .rows import Cell, Table

__all__ = ["STATEMENT_SECONDS", "Database", "Host", "insert_statements", "statement_text"]

T = TypeVar("T")
STATEMENT_SECONDS: Final = 65.0
"""The server ends a statement after 60 s, unless it was told not to."""
_LOAD_SECONDS: Final = 60.0
_BATCH: Final = 1 << 18  # characters of one INSERT statement
_TOO_LATE: Final = error_text(1969, "70100", "Query execution was interrupted (max_statement_time exceeded)")
_RIGHTS: Final = "SELECT, INSERT, UPDATE, DELETE"


class Host(Protocol):
    """The server, as a database needs it."""

    @property
    def passwords(self) -> dict[Account, str]:
        """Passwords by account."""

    async def connect(self, account: Account) -> Stream:
        """Open a connection's stream."""

    async def require(self) -> None:
        """Raise where the server is gone."""

    async def close(self) -> None:
        """End the server; the agent's part is over, so nothing that fails now counts."""


class Database:
    """The database of ``table``, of the same name."""

    def __init__(self, host: Host, table: Table) -> None:
        self._host = host
        self._table = table

    async def load(self) -> None:
        """Make database and table, fill it, and let the agent in; ``EnvironmentFailure`` where that does not go."""
        try:
            await self._as(GRADER, None, lambda connection: _load(connection, self._table), _LOAD_SECONDS)
        except (pymysql.Error, TimeoutError) as error:
            await self._host.require()
            raise EnvironmentFailure("EnvironmentFailed", f"table {self._table.name!r}: {error!r}") from None

    async def carry_out(self, statement: str) -> str:
        """Carry out a statement of the agent's, on a connection of its own, and return what it is shown of it."""
        return await self._shown(AGENT, statement)

    async def printed_hash(self) -> str:
        """End whatever the agent left running and return its table's hash as the benchmark prints it.

        Where the table is not there any more, or cannot be read, that is the text of the error.
        """
        try:
            await self._as(GRADER, None, _end_agents, STATEMENT_SECONDS)
        except (pymysql.Error, TimeoutError):
            await self._host.require()
        return await self._shown(GRADER, hash_query(self._table.name, self._table.columns))

    async def _shown(self, account: Account, statement: str) -> str:
        try:
            text = await self._as(account, self._table.name, lambda c: statement_text(c, statement), STATEMENT_SECONDS)
        except TimeoutError:
            text = _TOO_LATE
        except pymysql.Error as error:
            text = _error_text(error)
            if error.args and error.args[0] in LOST:
                await self._host.require()
        return shown(text)

    async def _as(self, account: Account, database: str | None, work: Callable[[Connection], T], seconds: float) -> T:
        stream = await self._host.connect(account)
        return await converse(stream, account, self._host.passwords[account], database, work, seconds)


def statement_text(connection: Connection, statement: str) -> str:
    """Carry out one statement and return what is shown of its result, ``[]`` where it has none."""
    cursor = connection.cursor()
    cursor.execute(statement)
    text = printed(_rows(cursor)) if cursor.description else "[]"
    cursor.close()
    connection.commit()
    return text


def insert_statements(table: Table, quote: Callable[[str], str]) -> Iterator[str]:
    """Return the statements that fill a table, many rows to each; ``quote`` makes a text a literal."""
    head = f"INSERT INTO {quoted(table.name)} ({', '.join(map(quoted, table.columns))}) VALUES "  # noqa: S608
    batch: list[str] = []
    size = 0
    for row in table.rows:
        cells = ["NULL" if cell is None else quote(_text(cell)) for cell in row]
        batch.append(f"({', '.join(cells)})")
        size += len(batch[-1])
        if size > _BATCH:
            yield head + ", ".join(batch)
            batch, size = [], 0
    if batch:
        yield head + ", ".join(batch)


def _load(connection: Connection, table: Table) -> None:
    name = quoted(table.name)
    columns = ", ".join(f"{quoted(column)} TEXT" for column in table.columns)
    # Where rights are given, _ and % stand for any character.
    pattern = quoted(table.name.replace("\\", "\\\\").replace("_", "\\_").replace("%", "\\%"))
    with connection.cursor() as cursor:
        for statement in (
            f"CREATE DATABASE {name}",
            f"USE {name}",
            f"CREATE TABLE {name} ({columns})",
            *insert_statements(table, lambda text: str(connection.escape(text))),
            f"GRANT {_RIGHTS} ON {pattern}.* TO '{AGENT}'@'localhost'",
        ):
            cursor.execute(statement)
    connection.commit()


def _end_agents(connection: Connection) -> None:
    """End the agent's connections, and with them what they still do and hold."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id FROM information_schema.processlist WHERE user = %s", (str(AGENT),))
        for (number,) in cursor.fetchall():
            try:
                cursor.execute(f"KILL HARD CONNECTION {int(number)}")
            except pymysql.Error:  # it ended by itself
                continue


def _rows(cursor: Any) -> Iterable[Sequence[Any]]:
    """Return the rows of a cursor as they come; closing it takes the rest."""
    while (row := cursor.fetchone()) is not None:
        yield row


def _text(cell: Cell) -> str:
    return cell if isinstance(cell, str) else str(cell)


def _error_text(error: pymysql.Error) -> str:
    number, message = error.args if len(error.args) == 2 else (0, str(error))
    return error_text(int(number), getattr(error, "sqlstate", None) or "HY000", str(message))
