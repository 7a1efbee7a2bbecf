"""Puzzles of our own, and sheets in AgentBench's form, broken ones included."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from openpyxl import Workbook

from casewarden_sdk.errors import ContractError
from casewarden_tasks.agentbench_ltp.puzzles import Puzzle, own_puzzles, sheet_puzzles

HEADER = ("story", "answer", "Story keys", "Answer keys")
ROW = ("A man did it. Why?", "He had to.", "1. A man did it.", "1. He had to.\n2. He was told to.")


def sheet(*rows: Sequence[Any]) -> bytes:
    book = Workbook()
    assert book.active is not None
    for row in rows:
        book.active.append(list(row))
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()


def test_there_are_22_of_our_own_with_two_to_five_parts_and_each_story_is_told_once() -> None:
    puzzles = own_puzzles()
    assert Counter(len(puzzle.answer_keys) for puzzle in puzzles) == {2: 6, 3: 8, 4: 6, 5: 2}
    assert len({puzzle.story for puzzle in puzzles}) == 22
    assert all(puzzle.story.endswith("Why?") and puzzle.story_keys and puzzle.truth for puzzle in puzzles)


def test_a_sheet_is_read() -> None:
    assert sheet_puzzles(sheet(HEADER, ROW), "x.xlsx") == [
        Puzzle("A man did it. Why?", "He had to.", ("A man did it.",), ("He had to.", "He was told to."))
    ]


def test_the_first_two_columns_may_be_headed_in_any_language() -> None:
    assert sheet_puzzles(sheet(("故事", "答案", "Story keys", "Answer keys"), ROW), "zh.xlsx")


@pytest.mark.parametrize(
    ("cell", "keys"),
    [
        ("One.\nTwo.", ("One.", "Two.")),
        ("1. One.\n12. Two.", ("One.", "Two.")),
        ("1) One.\n 2 . Two.", ("One.", "Two.")),
        ("- One.\n-Two.", ("One.", "Two.")),
        ("One.\n\n  \nTwo.", ("One.", "Two.")),
        ("3 men came.", ("3 men came.",)),
    ],
)
def test_keys_are_lines_without_what_numbers_them(cell: str, keys: tuple[str, ...]) -> None:
    assert sheet_puzzles(sheet(HEADER, (*ROW[:3], cell)), "x.xlsx")[0].answer_keys == keys


def test_v0_2_counts_empty_lines() -> None:
    row = (*ROW[:3], "One.\n\nTwo.")
    assert sheet_puzzles(sheet(HEADER, row), "x.xlsx", empty_lines=True)[0].answer_keys == ("One.", "", "Two.")


def test_rows_of_nothing_are_no_puzzles_and_numbers_are_texts() -> None:
    assert len(sheet_puzzles(sheet(HEADER, (), ROW, (None, None, None, None), ROW), "x.xlsx")) == 2
    assert sheet_puzzles(sheet(HEADER, (*ROW[:3], 42)), "x.xlsx")[0].answer_keys == ("42",)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"no zip", "x.xlsx is no xlsx file with a sheet: BadZipFile"),
        (sheet(), "x.xlsx row 1 is []; the first sheet needs a header"),
        (sheet(("story", "answer")), "x.xlsx row 1 is ['story', 'answer']; the first sheet needs a header"),
        (sheet(ROW, ROW), "the first sheet needs a header of the four columns story, answer, Story keys, Answer keys"),
        (sheet(HEADER), "x.xlsx has no row below its header"),
        (sheet(HEADER, ROW, (*ROW[:3], None)), "x.xlsx row 3 has no Answer keys; fill in the cell, or drop the row"),
        (sheet(HEADER, ("  ", *ROW[1:])), "x.xlsx row 2 has no story; fill in the cell, or drop the row"),
        (sheet(HEADER, ROW[:2]), "x.xlsx row 2 has no Story keys; fill in the cell, or drop the row"),
    ],
)
def test_what_is_no_such_sheet_is_refused_by_file_row_and_column(data: bytes, told: str) -> None:
    with pytest.raises(ContractError) as refused:
        sheet_puzzles(data, "x.xlsx")
    assert str(refused.value).startswith("spec.task.params.dataset: x.xlsx ")
    assert told in str(refused.value)
