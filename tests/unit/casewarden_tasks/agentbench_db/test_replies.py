"""What a reply says, to the letter of the benchmark's two forms."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_tasks.agentbench_db.replies import action_of, answer_of, sql_of

OPERATION = "I look.\nAction: Operation\n```sql\nSELECT a\n  FROM t;\n```"


def test_an_operation_is_its_statement_on_one_line() -> None:
    assert action_of(OPERATION) == "Operation"
    assert sql_of(OPERATION) == "SELECT a   FROM t;"


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("Action: Answer\nFinal Answer: []", "Answer"),
        ("Action: Operation", None),  # its line has no end
        ("Action: Operation \n", "Operation "),  # which is not Operation
        ("Action: \n", ""),
        ("Action:Operation\n", None),
        ("action: Operation\n", None),
        ("Action: Answer\nAction: Operation\n", "Answer"),
        ("see Action: Operation\n", "Operation"),
        ("", None),
    ],
)
def test_the_first_action_counts_up_to_the_end_of_its_line(reply: str, action: str | None) -> None:
    assert action_of(reply) == action


@pytest.mark.parametrize(
    ("reply", "statement"),
    [
        ("```sql\n A \n```\n```sql\nB\n```", "A"),
        ("```sql\n\n```", ""),
        ("```SQL\nA\n```", None),
        ("```sql A\n```", None),
        ("```sql\nA```", None),
        ("```sql\nA", None),
        ("```\nA\n```", None),
        ("```sql\nSELECT '```'\n```", "SELECT '```'"),
    ],
)
def test_the_first_block_that_is_fenced_as_sql_counts(reply: str, statement: str | None) -> None:
    assert sql_of(reply) == statement


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ('Action: Answer\nFinal Answer: ["a"]\nmore', ' ["a"]'),
        ("\nFinal Answer:x\nFinal Answer:y", "x"),
        ("Final Answer: x", None),  # nothing before it ends a line
        ("\nFinal Answer:", ""),
        ("\n Final Answer: x", None),
        ("\nFinal answer: x", None),
    ],
)
def test_the_answer_is_the_rest_of_the_first_line_that_begins_with_the_words(reply: str, answer: str | None) -> None:
    assert answer_of(reply) == answer


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for read in (action_of, sql_of, answer_of):
        found = read(text)
        assert found is None or "\n" not in found


@given(st.text(alphabet="ab`'; \n"), st.text(alphabet="ab "))
def test_a_statement_comes_through_whole(statement: str, before: str) -> None:
    if "\n```" in f"\n{statement}":
        return
    assert sql_of(f"{before}\n```sql\n{statement}\n```") == statement.strip().replace("\n", " ")
