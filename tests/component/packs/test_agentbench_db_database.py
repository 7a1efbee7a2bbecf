"""A case's database on a real MariaDB: what it holds, what is shown of it, what an agent can and cannot do to it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pymysql
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.mariadb import DirectHost, LocalMariaDB, local_mariadb

from casewarden_sdk.errors import CandidateError
from casewarden_tasks.agentbench_db import database as module
from casewarden_tasks.agentbench_db.database import Database
from casewarden_tasks.agentbench_db.hashing import quoted, table_hash
from casewarden_tasks.agentbench_db.rows import Table

PEOPLE = Table(
    "people_in (town)", ("name", "age", "it`s odd %"), (("Ann", "30", None), ("O'Neil", "4", "a\\b"), ("Zoë", "7", ""))
)


@pytest.fixture(scope="module")
def server() -> Iterator[LocalMariaDB]:
    with local_mariadb() as running:
        yield running


@contextlib.asynccontextmanager
async def holding(server: LocalMariaDB, table: Table = PEOPLE) -> AsyncIterator[Database]:
    """A case's database on the server, gone afterwards."""
    host = DirectHost(server)
    database = Database(host, table)
    try:
        await database.load()
        yield database
    finally:
        await host.close()


async def shown(server: LocalMariaDB, *statements: str) -> list[str]:
    async with holding(server) as database:
        return [await database.carry_out(statement) for statement in statements]


def hash_of(*rows: tuple[str | None, ...]) -> str:
    return f"[('{table_hash(rows)}',)]"


async def test_a_result_is_shown_as_a_list_of_tuples_of_pythons_types(server: LocalMariaDB) -> None:
    assert await shown(
        server,
        "SELECT name, `it``s odd %` FROM `people_in (town)` ORDER BY name",
        "SELECT COUNT(*) FROM `people_in (town)`",
        "SELECT SUM(age), AVG(age), MAX(age) FROM `people_in (town)`",
        "SELECT CAST('2020-01-02' AS DATE), CAST('2020-01-02 03:04:05' AS DATETIME), CAST('01:00:00' AS TIME)",
        "SELECT CAST('a' AS BINARY), UNHEX('ff'), b'1', 1.50, 1e0, NULL, TRUE",
        "UPDATE `people_in (town)` SET age = '8' WHERE name = 'Ann'",
        "DESCRIBE `people_in (town)`",
        "SHOW TABLES",
    ) == [
        "[('Ann', None), (\"O'Neil\", 'a\\\\b'), ('Zoë', '')]",
        "[(3,)]",
        "[(41.0, 13.666666666666666, '7')]",
        "[(datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3, 4, 5), datetime.timedelta(seconds=3600))]",
        "[(b'a', b'\\xff', b'\\x01', Decimal('1.50'), 1.0, None, 1)]",
        "[]",
        "[('name', 'text', 'YES', '', None, ''), ('age', 'text', 'YES', '', None, ''), "
        "('it`s odd %', 'text', 'YES', '', None, '')]",
        "[('people_in (town)',)]",
    ]


async def test_an_error_is_shown_with_its_number_and_state(server: LocalMariaDB) -> None:
    unknown, syntax, two, empty, grouped = await shown(
        server,
        "SELECT nothing FROM `people_in (town)`",
        "SELEC 1",
        "SELECT 1; SELECT 2",
        "",
        "SELECT name, COUNT(*) FROM `people_in (town)`",
    )
    assert unknown == "1054 (42S22): Unknown column 'nothing' in 'SELECT'"
    assert syntax.startswith("1064 (42000): You have an error in your SQL syntax")
    assert two.startswith("1064 (42000): ")
    assert empty == "1065 (42000): Query was empty"
    assert grouped.startswith("1140 (42000): ")


async def test_a_long_result_is_cut(server: LocalMariaDB) -> None:
    wide, long = await shown(server, "SELECT REPEAT('x', 5000)", "SELECT seq FROM seq_1_to_10000")
    assert wide == ("[('" + "x" * 5000)[:800] + "[TRUNCATED]"
    assert long == str([(number,) for number in range(1, 10001)])[:800] + "[TRUNCATED]"


async def test_comparison_ignores_case_and_accents_as_that_of_mysql_does(server: LocalMariaDB) -> None:
    assert await shown(
        server,
        "SELECT age FROM `people_in (town)` WHERE name = 'ZOE'",
        "SELECT COUNT(*) FROM `people_in (town)` WHERE name = 'Ann '",
    ) == ["[('7',)]", "[(0,)]"]


FORBIDDEN = (
    "DROP DATABASE `people_in (town)`",
    "DROP TABLE `people_in (town)`",
    "ALTER TABLE `people_in (town)` ADD COLUMN x TEXT",
    "TRUNCATE TABLE `people_in (town)`",
    "CREATE TABLE `people_in (town)`.t (a INT)",
    "CREATE TEMPORARY TABLE `people_in (town)`.t (a INT)",
    "CREATE DATABASE other",
    "CREATE USER x",
    "SELECT * FROM mysql.global_priv",
    "UPDATE mysql.global_priv SET priv = '{}'",
    "SET GLOBAL max_connections = 1",
    "SET PASSWORD FOR 'grader'@'localhost' = ''",
    "SHUTDOWN",
    "LOAD DATA INFILE '/etc/passwd' INTO TABLE `people_in (town)`",
    "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE `people_in (town)`",
    "SELECT 'x' INTO OUTFILE '/tmp/x'",
    "LOCK TABLES `people_in (town)` WRITE",
    "FLUSH TABLES WITH READ LOCK",
    "INSTALL SONAME 'ha_connect'",
    "CREATE FUNCTION sys_exec RETURNS INTEGER SONAME 'x.so'",
    "GRANT ALL ON *.* TO 'agent'@'localhost'",
    "DO RELEASE_LOCK(GET_LOCK('a', 1)); SHUTDOWN",
)


async def test_what_the_task_does_not_need_is_refused_and_leaves_the_table_as_it_was(server: LocalMariaDB) -> None:
    async with holding(server) as database:
        said = {statement: await database.carry_out(statement) for statement in FORBIDDEN}
        assert {statement: text for statement, text in said.items() if not text[:4].isdigit()} == {}
        assert await database.carry_out("SELECT LOAD_FILE('/etc/passwd')") == "[(None,)]"
        assert await database.printed_hash() == hash_of(*PEOPLE.rows)


async def test_underscores_and_percents_of_its_name_let_the_agent_into_no_other_database(server: LocalMariaDB) -> None:
    async with holding(server, Table("a_b%", ("x",), (("1",),))) as database:
        await DirectHost(server).run(["CREATE DATABASE `aXbc`", "CREATE TABLE `aXbc`.t (a INT)"])
        assert (await database.carry_out("SELECT * FROM `aXbc`.t")).startswith("1142 (42000): ")
        assert await database.carry_out("SELECT * FROM `a_b%`") == "[('1',)]"


async def test_nothing_of_a_connection_outlives_its_statement_and_each_is_committed(server: LocalMariaDB) -> None:
    assert await shown(
        server,
        "SET @x = 1",
        "SELECT @x",
        "START TRANSACTION",
        "INSERT INTO `people_in (town)` VALUES ('Bo', '1', '')",
        "ROLLBACK",
        "SELECT COUNT(*) FROM `people_in (town)`",
    ) == ["[]", "[(None,)]", "[]", "[]", "[]", "[(4,)]"]


async def test_a_killed_connection_is_an_error_and_the_next_statement_has_another(server: LocalMariaDB) -> None:
    killed, after = await shown(server, "KILL CONNECTION_ID()", "SELECT 1")
    assert killed.split(" ")[0] in ("1927", "1317", "2013")
    assert after == "[(1,)]"


async def test_a_server_that_is_gone_is_not_shown_to_the_agent_as_an_error_of_its_statement(
    server: LocalMariaDB,
) -> None:
    host = DirectHost(server)
    database = Database(host, PEOPLE)
    await database.load()
    try:
        host.gone = True
        with pytest.raises(CandidateError, match="SandboxKilled"):
            await database.carry_out("KILL CONNECTION_ID()")
    finally:
        await host.close()


async def test_a_statement_that_takes_too_long_is_ended_by_the_server_or_else_by_the_driver(
    server: LocalMariaDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with holding(server) as database:
        late = await database.carry_out("SET STATEMENT max_statement_time = 0.2 FOR SELECT SLEEP(60)")
        monkeypatch.setattr(module, "STATEMENT_SECONDS", 0.5)
        later = await database.carry_out("SET STATEMENT max_statement_time = 0 FOR SELECT SLEEP(600)")
        monkeypatch.undo()
        assert later == "1969 (70100): Query execution was interrupted (max_statement_time exceeded)"
        assert late in (later, "[(1,)]")  # SLEEP says 1 where it was interrupted
        assert await database.printed_hash() == hash_of(*PEOPLE.rows)
        running = await DirectHost(server).run(
            ["SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'agent' AND info LIKE '%SLEEP(600)%'"]
        )
        assert running == [(0,)]


async def test_the_hash_is_that_of_the_table_as_it_is_and_of_an_empty_one_none(server: LocalMariaDB) -> None:
    async with holding(server) as database:
        assert await database.printed_hash() == hash_of(*PEOPLE.rows)
        await database.carry_out("UPDATE `people_in (town)` SET age = '31' WHERE name = 'Ann'")
        assert await database.printed_hash() == hash_of(("Ann", "31", None), *PEOPLE.rows[1:])
        await database.carry_out("DELETE FROM `people_in (town)`")
        assert await database.printed_hash() == "[(None,)]"
        await DirectHost(server).run(["DROP TABLE `people_in (town)`.`people_in (town)`"])
        assert (await database.printed_hash()).startswith("1146 (42S02): Table ")


async def test_what_an_agent_puts_into_a_table_ends_with_an_error_and_not_with_the_disk(server: LocalMariaDB) -> None:
    async with holding(server) as database:
        fill = "INSERT INTO `people_in (town)` SELECT REPEAT('x', 60000), seq, '' FROM seq_1_to_2000"
        assert (await database.carry_out(fill)).startswith("1114 (HY000): The table")
        assert await database.printed_hash() == hash_of(*PEOPLE.rows)


NAMES = st.text(st.characters(codec="utf-8", min_codepoint=1, max_codepoint=0x2FF), max_size=12)
CELLS = st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=20), st.integers(), st.just(1.5))
TABLES = st.builds(
    lambda name, columns, rows: Table(name, tuple(columns), tuple(tuple(row[: len(columns)]) for row in rows)),
    NAMES,
    st.lists(NAMES, min_size=1, max_size=4),
    st.lists(st.lists(CELLS, min_size=4, max_size=4), max_size=8),
)


@settings(max_examples=25)
@given(TABLES)
async def test_any_table_that_is_not_broken_is_held_and_hashes_as_its_rows_do(
    server: LocalMariaDB, table: Table
) -> None:
    if table.broken is not None or table.name.lower() in ("mysql", "information_schema"):
        return
    texts = [tuple(None if cell is None else str(cell) for cell in row) for row in table.rows]
    async with holding(server, table) as database:
        assert await database.printed_hash() == (f"[('{table_hash(texts)}',)]" if texts else "[(None,)]")
        assert await database.carry_out(f"SELECT COUNT(*) FROM {quoted(table.name)}") == f"[({len(texts)},)]"


@pytest.mark.parametrize(
    ("name", "columns"),
    [("t", ("",)), ("t", ("a", "A")), ("t", ("a ",)), ("t ", ("a",)), ("n" * 65, ("a",)), ("t", ("😀",))],
)
async def test_what_is_called_broken_no_server_makes(server: LocalMariaDB, name: str, columns: tuple[str, ...]) -> None:
    assert Table(name, columns, ()).broken is not None
    made = ", ".join(f"{quoted(column)} TEXT" for column in columns)
    with pytest.raises(pymysql.Error):
        await DirectHost(server).run(
            ["CREATE DATABASE broken_or_not", "USE broken_or_not", f"CREATE TABLE {quoted(name)} ({made})"]
        )
    await DirectHost(server).run(["DROP DATABASE broken_or_not"])


def test_the_configuration_names_no_place_outside_its_folder() -> None:
    text = (Path(module.__file__).parent / "mariadb.cnf").read_text()
    assert "/" not in text.replace("skip_", "")
