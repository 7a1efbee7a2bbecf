"""The controls of agentbench-db do what they are declared to do, on a real MariaDB; the cluster audits them again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.agentbench_db import DirectDb
from support.mariadb import DirectHost, LocalMariaDB, local_mariadb

import casewarden_tasks.agentbench_db
from casewarden_sdk.contract import AGENT_ERROR, FAILED, PASSED, Control, Verdict
from casewarden_sdk.testing import play
from casewarden_tasks.agentbench_db import PACK
from casewarden_tasks.agentbench_db.database import Database
from casewarden_tasks.agentbench_db.rows import parse_rows

DATA = Path(casewarden_tasks.agentbench_db.__file__).parent / "data.jsonl"
CONTROLS = {control.name: control for control in PACK.controls}
FAULTS = [control for control in CONTROLS.values() if control.kind == "fault"]
DO_NOTHING = ("null-agent", "crashing-agent")
PAGE = Path(__file__).resolve().parents[3] / "docs" / "packs" / "agentbench-db.md"


@pytest.fixture(scope="module")
def server() -> Iterator[LocalMariaDB]:
    with local_mariadb() as running:
        yield running


@pytest.fixture(scope="module")
def judged(server: LocalMariaDB) -> dict[str, list[Verdict]]:
    """The verdicts of every control over every case; of those that do nothing, over some of each kind."""
    pack = DirectDb(server)
    cases = pack.cases(0, {})
    return {
        name: [play(pack, case, control).verdict for case in (cases[::5] if name in DO_NOTHING else cases)]
        for name, control in CONTROLS.items()
    }


def test_the_reference_resolves_every_case(judged: dict[str, list[Verdict]]) -> None:
    assert [verdict.to_json() for verdict in judged["reference"] if not verdict.passed] == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_caught_in_its_target_and_breaks_what_it_declares_and_nothing_else(
    fault: Control, judged: dict[str, list[Verdict]]
) -> None:
    verdicts = judged[fault.name]
    failed = {name for verdict in verdicts for name, right in verdict.checks.items() if not right}
    assert failed == {fault.target, *fault.collateral}
    assert {verdict.status for verdict in verdicts} <= {PASSED, FAILED}


def test_neither_the_null_agent_nor_the_crashing_agent_resolves_a_case(judged: dict[str, list[Verdict]]) -> None:
    for name in DO_NOTHING:
        assert {verdict.status for verdict in judged[name]} == {AGENT_ERROR}


def test_the_page_for_users_lists_every_control_with_the_number_of_cases_that_catch_it(
    judged: dict[str, list[Verdict]],
) -> None:
    lines = PAGE.read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines if line.startswith("| ")]
    told = {row[0]: row[3] for row in rows if row[0] in CONTROLS}
    caught = {name: str(sum(not verdict.passed for verdict in verdicts)) for name, verdicts in judged.items()}
    assert told == {**caught, **dict.fromkeys(DO_NOTHING, "all")}


async def test_the_gold_statements_of_the_data_give_its_labels(server: LocalMariaDB) -> None:
    raw = [json.loads(line) for line in DATA.read_text().splitlines()]
    rows = parse_rows(DATA.read_text(), DATA.name)
    for written, row in zip(raw, rows, strict=True):
        if row.changes:
            continue
        host = DirectHost(server)
        database = Database(host, row.table)
        await database.load()
        cells = [cell for (cell,) in await host.run([f"USE `{row.table.name}`", written["sql"]["query"]])]
        await host.close()
        right = [
            float(cell) == float(text) if text[:1].isdigit() else cell == text
            for cell, text in zip(cells, row.label, strict=True)
        ]
        assert all(right), row.description
