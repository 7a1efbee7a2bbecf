"""The hash of a table: what it sees of it and what it does not. Its twin in SQL is tested on a real server."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from casewarden_tasks.agentbench_db.hashing import hash_query, quoted, table_hash

Rows = list[tuple[str | None, ...]]
tables: st.SearchStrategy[Rows] = st.lists(st.lists(st.one_of(st.none(), st.text(max_size=5)), max_size=3).map(tuple))


def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def test_it_is_what_the_facts_say() -> None:
    first, second = md5("b,2")[:5], md5("a,1")[:5]
    assert table_hash([("b", "2"), ("a", "1")]) == md5(",".join(sorted([first, second])))
    assert table_hash([]) is None


@given(tables, st.randoms())
def test_the_order_of_rows_does_not_count(rows: Rows, chance: object) -> None:
    again = list(rows)
    chance.shuffle(again)  # type: ignore[attr-defined]
    assert table_hash(again) == table_hash(rows)


@given(tables)
def test_a_row_more_shows_and_an_empty_cell_does_not(rows: Rows) -> None:
    assert table_hash([*rows, ("one more",)]) != table_hash(rows)
    assert table_hash([(*row, None) for row in rows]) == table_hash(rows)


def test_names_are_quoted_whatever_they_hold() -> None:
    assert quoted("a`b") == "`a``b`"
    assert hash_query("t, (x)", ["a b", "c`"]) == (
        "SELECT MD5(GROUP_CONCAT(rowhash ORDER BY rowhash)) AS hash FROM "
        "(SELECT SUBSTRING(MD5(CONCAT_WS(',', `a b`, `c```)), 1, 5) AS rowhash FROM `t, (x)`) AS sub"
    )
