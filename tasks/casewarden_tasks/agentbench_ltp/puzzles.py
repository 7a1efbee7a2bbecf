"""Puzzles: our own, and those of a sheet in AgentBench's form."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from openpyxl import load_workbook
from openpyxl.utils.exceptions import InvalidFileException

from casewarden_sdk.errors import ContractError

__all__ = ["FIELD", "Puzzle", "own_puzzles", "sheet_puzzles"]

FIELD: Final = "spec.task.params.dataset"
_OWN: Final = Path(__file__).parent / "puzzles.json"
_COLUMNS: Final = ("story", "answer", "Story keys", "Answer keys")
_MARK: Final = re.compile(r"\s*(?:\d{1,3}\s*[.)]|[-•*])\s*")


@dataclass(frozen=True)
class Puzzle:
    """A story with something odd in it, the truth behind it, and both as lists of statements."""

    story: str
    truth: str
    story_keys: tuple[str, ...]
    answer_keys: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {
            "story": self.story,
            "truth": self.truth,
            "story_keys": list(self.story_keys),
            "answer_keys": list(self.answer_keys),
        }

    @classmethod
    def from_json(cls, document: Any) -> Puzzle:
        """Read ``to_json`` back."""
        return cls(document["story"], document["truth"], tuple(document["story_keys"]), tuple(document["answer_keys"]))


def own_puzzles() -> list[Puzzle]:
    """Return the puzzles that the pack brings."""
    rows = json.loads(_OWN.read_text(encoding="utf-8"))
    return [Puzzle(row["story"], row["answer"], tuple(row["story_keys"]), tuple(row["answer_keys"])) for row in rows]


def sheet_puzzles(data: bytes, name: str, empty_lines: bool = False) -> list[Puzzle]:
    """Return the puzzles of an xlsx file: a header, then story, answer, story keys and answer keys in each row.

    Keys are lines; a number or a dash before them is left out. ``empty_lines`` keeps empty ones, as v0.2 counts them.
    ``ContractError`` names file, row and column.
    """
    rows = _rows(data, name)
    header = [_text(cell) for cell in rows[0]] if rows else []
    if [cell.casefold() for cell in header[2:4]] != [column.casefold() for column in _COLUMNS[2:]]:
        raise ContractError(
            f"{FIELD}: {name} row 1 is {header[:4]}; the first sheet needs a header of the four columns "
            f"{', '.join(_COLUMNS)}"
        )
    found = []
    for number, row in enumerate(rows[1:], start=2):
        cells = [_text(cell) for cell in (*row, None, None, None, None)[:4]]
        if not any(cells):
            continue
        for column, cell in zip(_COLUMNS, cells, strict=True):
            if not cell:
                raise ContractError(f"{FIELD}: {name} row {number} has no {column}; fill in the cell, or drop the row")
        found.append(Puzzle(cells[0], cells[1], _keys(cells[2], False), _keys(cells[3], empty_lines)))
    if not found:
        raise ContractError(f"{FIELD}: {name} has no row below its header; give one puzzle at least")
    return found


def _rows(data: bytes, name: str) -> list[Sequence[Any]]:
    try:
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        sheet: Iterable[Sequence[Any]] = book.worksheets[0].iter_rows(values_only=True)
        return list(sheet)
    except (InvalidFileException, zipfile.BadZipFile, KeyError, IndexError, ValueError, TypeError, OSError) as error:
        raise ContractError(
            f"{FIELD}: {name} is no xlsx file with a sheet: {type(error).__name__}: {error}; save it as one"
        ) from None


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _keys(cell: str, empty_lines: bool) -> tuple[str, ...]:
    lines = [line[match.end() :].strip() if (match := _MARK.match(line)) else line.strip() for line in cell.split("\n")]
    return tuple(line for line in lines if line or empty_lines)
