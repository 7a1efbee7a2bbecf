"""The pack: its parameters, what it excludes, how it judges, what all samples come to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from casewarden_sdk.agentbench import TaskOutput
from casewarden_sdk.agentbench.dataset import VARIABLE
from casewarden_sdk.errors import ContractError
from casewarden_sdk.plan import build_plan
from casewarden_tasks.agentbench_db import PACK
from casewarden_tasks.agentbench_db.metrics import MAIN

HASH = f"[('{'0' * 32}',)]"


def line(**changed: Any) -> str:
    table = {"table_name": "t", "table_info": {"columns": [{"name": "a"}], "rows": [["1"]]}}
    row = {
        "description": "How many?",
        "add_description": "The table is t.",
        "type": ["counting"],
        "label": ["2"],
        "table": table,
    }
    return json.dumps({**row, **changed})


ROWS = (
    line(),
    line(description="Add 2.", type=["INSERT"], label=["INSERT INTO t VALUES ('2')"], answer_md5=HASH),
    line(description="Which?", table={"table_name": "t", "table_info": {"columns": [{"name": "a"}] * 2, "rows": []}}),
    line(description="Make it 3.", type=["UPDATE"], label=["UPDATE t SET a = '3'"], answer_md5=HASH),
)


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A data set of four rows, and what names it."""
    file = tmp_path / "set" / "data" / "dbbench" / "standard.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("\n".join(ROWS))
    monkeypatch.setenv(VARIABLE, json.dumps({"mine": {"path": str(tmp_path / "set")}}))
    return {"dataset": "mine"}


def test_it_brings_data_of_its_own_and_reads_a_data_set_by_name(dataset: dict[str, Any]) -> None:
    assert len(PACK.cases(0, {})) == 31
    cases = PACK.cases(0, dataset)
    assert [case.id for case in cases] == ["0", "1", "2", "3"]
    assert [case.dimensions for case in cases] == [("select",), ("insert",), ("select",), ("update",)]
    assert cases[1].content["row"]["answer_md5"] == HASH


def test_a_broken_row_is_excluded_by_its_number_with_the_reason(dataset: dict[str, Any]) -> None:
    plan = build_plan(PACK, [0], dataset)
    assert plan["excluded"] == [{"seed": 0, "id": "2", "reason": "row 2: two of its columns are called 'a'"}]
    assert [case["id"] for case in plan["cases"]] == ["0", "1", "3"]


def test_the_controls_are_those_of_the_data_that_is_played(dataset: dict[str, Any]) -> None:
    (reference,) = (row for row in build_plan(PACK, [0], dataset)["controls"] if row["name"] == "reference")
    assert "Make it 3." in reference["files"]["main.py"]
    own = next(control for control in PACK.controls if control.name == "reference")
    assert "Harbour Ferries" in own.files["main.py"]


def test_rows_are_picked_by_their_places(dataset: dict[str, Any]) -> None:
    assert [case.id for case in PACK.cases(0, {**dataset, "indices": [3, 0]})] == ["3", "0"]


BAD = {
    "an index that is none": ({"indices": [31]}, r"indices: no row 31; there are 0 to 30"),
    "an index below": ({"indices": [-1]}, r"indices: no row -1"),
    "an index twice": ({"indices": [1, 1]}, r"indices: \[1, 1\] is no list of different whole numbers"),
    "an index that is a text": ({"indices": ["1"]}, r"indices: "),
    "no index": ({"indices": []}, r"indices: "),
    "no rounds": ({"maxRound": 0}, r"maxRound: 0 is no whole number from 1"),
    "a file without a data set": ({"dataFile": "x.jsonl"}, r"dataFile: names a file of a data set; give dataset too"),
    "a name of its own": ({"max_round": 3}, r"max_round: agentbench-db has dataset, .*; remove it"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_wrong_parameter_is_refused_by_its_field_and_with_the_cure(name: str) -> None:
    params, message = BAD[name]
    with pytest.raises(ContractError, match=rf"^spec\.task\.params\.{message}"):
        PACK.cases(0, params)


def test_a_missing_file_a_wrong_digest_and_a_malformed_row_each_say_so(dataset: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ContractError, match=r"data set 'mine' .* has no file 'data/dbbench/dev\.jsonl'"):
        PACK.cases(0, {**dataset, "dataFile": "data/dbbench/dev.jsonl"})
    with pytest.raises(ContractError, match=r"spec\.task\.params\.dataFile: 7 is no path"):
        PACK.cases(0, {**dataset, "dataFile": 7})
    with pytest.raises(ContractError, match=rf"has the digest .* and sha256:{'0' * 64} is wanted"):
        PACK.cases(0, {**dataset, "datasetDigest": "0" * 64})
    (tmp_path / "set" / "data" / "dbbench" / "standard.jsonl").write_text(f"{ROWS[0]}\n{line(label=[])}\n")
    with pytest.raises(ContractError, match=r"data/dbbench/standard\.jsonl:2: label is \[\]"):
        PACK.cases(0, dataset)


@pytest.mark.parametrize(
    ("index", "result", "right"),
    [
        (0, {"answer": ' ["2"]'}, True),
        (0, {"answer": "3"}, False),
        (1, {"answer": HASH}, True),
        (1, {"answer": "[(None,)]"}, False),
        (1, {"answer": None}, False),
        (1, None, False),
        (0, ["2"], False),
    ],
)
def test_a_sample_is_judged_by_its_row(dataset: dict[str, Any], index: int, result: Any, right: bool) -> None:
    case = PACK.cases(0, dataset)[index]
    output = TaskOutput(index, "completed", result, [])  # type: ignore[arg-type]
    assert PACK.passed(case, output, {}) is right
    assert right or PACK.explain(case, output, {})


def test_a_sample_without_a_result_counts_as_wrong(dataset: dict[str, Any]) -> None:
    task = PACK.task(dataset, 0)
    right = [
        TaskOutput(index, "completed", {"answer": answer}, [])  # type: ignore[arg-type]
        for index, answer in ((0, "2"), (1, HASH), (3, HASH))
    ]
    assert task.calculate_overall(right)[MAIN] == 1
    lost = TaskOutput(3, "unknown", None, [])  # type: ignore[arg-type]
    assert task.calculate_overall([*right[:2], lost])[MAIN] == pytest.approx(2 / 3)
