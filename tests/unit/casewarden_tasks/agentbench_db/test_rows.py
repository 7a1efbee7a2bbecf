"""Reading a data set: what is a row, what is broken, and what is refused with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import casewarden_tasks.agentbench_db
from casewarden_sdk.errors import ContractError
from casewarden_tasks.agentbench_db.rows import CHANGES, SELECTS, Row, Table, parse_rows

OWN = Path(casewarden_tasks.agentbench_db.__file__).parent / "data.jsonl"
HASH = f"[('{'0' * 32}',)]"


def raw(**changed: Any) -> dict[str, Any]:
    row = {
        "description": "How many?",
        "add_description": "The name of this table is t.",
        "type": ["counting"],
        "label": ["2"],
        "table": {"table_name": "t", "table_info": {"columns": [{"name": "a", "type": "INT"}], "rows": [["1"], [2]]}},
        "create": {"database": "unused"},
    }
    return {**row, **changed}


def table(columns: list[str], *rows: list[Any], name: str = "t") -> dict[str, Any]:
    return {"table_name": name, "table_info": {"columns": [{"name": column} for column in columns], "rows": list(rows)}}


def parsed(*rows: Any) -> list[Row]:
    return parse_rows("\n".join(json.dumps(row) for row in rows) + "\n", "data.jsonl")


def test_a_row_is_read_and_its_types_of_columns_are_not() -> None:
    (row,) = parsed(raw())
    assert row == Row(
        "How many?", "The name of this table is t.", "counting", ("2",), None, Table("t", ("a",), (("1",), (2,)))
    )
    assert not row.changes
    (change,) = parsed(raw(type=["UPDATE"], label=["UPDATE t SET a = 1"], answer_md5=HASH))
    assert change.changes
    assert change.answer_md5 == HASH


def test_ends_of_lines_within_a_text_end_no_row() -> None:
    line = json.dumps(raw(description="a\u2028b\x85c"), ensure_ascii=False)
    assert [row.description for row in parse_rows(f"{line}\n\n{line}\n", "x")] == ["a\u2028b\x85c"] * 2


BAD = {
    "no JSON": ("{", r"data\.jsonl:2: is no JSON"),
    "no object": ("[1]", r"data\.jsonl:2: is a list"),
    "a type of its own": (raw(type=["sum"]), "type is .*give a list of one of other, counting"),
    "two types": (raw(type=["other", "counting"]), "type is"),
    "no label": (raw(label=[]), "label is .*one or more texts"),
    "a number as label": (raw(label=[1]), "label is"),
    "no question": (raw(description=None), "description is None; give a text"),
    "a change without its hash": (raw(type=["INSERT"]), "answer_md5 is None; INSERT needs the printed hash"),
    "a change with half a hash": (raw(type=["INSERT"], answer_md5="[('00',)]"), "answer_md5"),
    "two statements": (raw(type=["UPDATE"], answer_md5=HASH, label=["a", "b"]), "label has 2 texts"),
    "no table": (raw(table=None), "table is no object"),
    "no columns": (raw(table=table([])), "columns is"),
    "a column without a name": (
        raw(table={"table_name": "t", "table_info": {"columns": [{}], "rows": []}}),
        r"columns\[\]\.name is None",
    ),
    "no list of rows": (raw(table={"table_name": "t", "table_info": {"columns": [{"name": "a"}]}}), "rows is"),
    "a list as a cell": (raw(table=table(["a"], [["x"]])), r"rows\[0\] has \['x'\]; a cell is a text or a number"),
    "true as a cell": (raw(table=table(["a"], ["x"], [True])), r"rows\[1\] has True"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_malformed_row_is_refused_with_its_line_and_the_cure(name: str) -> None:
    bad, message = BAD[name]
    lines = [json.dumps(raw()), bad if isinstance(bad, str) else json.dumps(bad)]
    with pytest.raises(ContractError, match=message) as refused:
        parse_rows("\n".join(lines), "data.jsonl")
    assert str(refused.value).startswith("data.jsonl:2")


def test_an_empty_file_is_refused() -> None:
    with pytest.raises(ContractError, match=r"data\.jsonl: has no row"):
        parse_rows("\n \n", "data.jsonl")


BROKEN = {
    "two columns of one name": (table(["a", "A"], ["1", "2"]), "two of its columns are called 'A'"),
    "a column without a name": (table(["", "a"], ["1", "2"]), "'' cannot be the name"),
    "a long name": (table(["a"], name="n" * 65), "cannot be the name"),
    "a space at the end": (table(["a "]), "'a ' cannot be the name"),
    "a character that no name may have": (table(["😀"]), "cannot be the name"),
    "a cell too few": (table(["a", "b"], ["1", "2"], ["3"]), "row 1 of its table has 1 cells for 2 columns"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_row_whose_table_no_database_can_hold_is_broken_and_says_why(name: str) -> None:
    made, why = BROKEN[name]
    (row,) = parsed(raw(table=made))
    assert row.table.broken is not None
    assert why in row.table.broken


def test_the_own_data_is_whole_and_has_every_kind_and_no_task_twice() -> None:
    rows = parse_rows(OWN.read_text(encoding="utf-8"), OWN.name)
    assert [row.table.broken for row in rows if row.table.broken] == []
    assert {row.type for row in rows} == {*SELECTS, *CHANGES} - {"DELETE"}
    assert len({row.description for row in rows}) == len(rows) >= 20


texts = st.text(max_size=5)
cells = st.one_of(st.none(), texts, st.integers(), st.floats(allow_nan=False, allow_infinity=False))


@given(
    st.builds(
        Row, texts, texts, st.sampled_from(SELECTS), st.lists(texts, min_size=1).map(tuple), st.none(),
        st.builds(Table, texts, st.lists(texts).map(tuple), st.lists(st.lists(cells).map(tuple)).map(tuple)),
    )
)  # fmt: skip
def test_a_row_comes_back_from_the_content_of_its_case(row: Row) -> None:
    assert Row.from_json(json.loads(json.dumps(row.to_json()))) == row


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), texts),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from([*raw(), "table_info", "columns", "rows", "name"]), inner),
        ),
    )
)
def test_whatever_a_line_is_it_is_a_row_or_refused(value: Any) -> None:
    try:
        rows = parsed({**raw(), **value} if isinstance(value, dict) else value)
    except ContractError:
        return
    assert len(rows) == 1
