"""AgentBench's dev split of DB on a real MariaDB: the hash of every changed table is the data's own ``answer_md5``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.agentbench_data import DATA
from support.agentbench_db import DirectDb
from support.mariadb import LocalMariaDB, local_mariadb

from casewarden_sdk.agentbench.dataset import VARIABLE
from casewarden_sdk.plan import build_plan, controls_of
from casewarden_sdk.testing import play

PARAMS = {"dataset": "checkout", "dataFile": "data/dbbench/dev.jsonl"}
# docs/packs/agentbench-db.md said so before the rows were first played.
EXCLUDED = {"5"}


@pytest.fixture(scope="module")
def server() -> Iterator[LocalMariaDB]:
    with local_mariadb() as running:
        yield running


def test_from_its_labels_every_row_but_the_broken_one_is_right_and_every_hash_is_the_datas(
    server: LocalMariaDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, json.dumps({"checkout": {"path": str(DATA)}}))
    pack = DirectDb(server)
    assert {row["id"] for row in build_plan(pack, [0], PARAMS)["excluded"]} == EXCLUDED
    (reference,) = (control for control in controls_of(pack, PARAMS) if control.kind == "reference")
    wrong: list[Any] = []
    hashes = 0
    for case in pack.cases(0, PARAMS):
        if case.id in EXCLUDED:
            continue
        result = play(pack, case, reference)
        answer, row = result.record["output"]["result"]["answer"], case.content["row"]
        hashes += answer == row["answer_md5"]
        if not result.verdict.passed:
            wrong.append((case.id, answer, result.verdict.error))
    assert wrong == []
    assert hashes == 40
