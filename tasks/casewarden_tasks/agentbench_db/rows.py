"""The rows of a DBBench data set: reading them, and telling which can be played.

A file has one JSON object a line. A line that is none of these objects is refused with its place. A row that is one but
whose table no database can hold is *broken*: it stays in the set, with what is wrong, and is excluded from the plan.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from casewarden_sdk.errors import ContractError

__all__ = ["CHANGES", "SELECTS", "Cell", "Row", "Table", "parse_rows"]

Cell = str | int | float | None

SELECTS: Final = (
    "other", "counting", "comparison", "ranking",
    "aggregation-SUM", "aggregation-MIN", "aggregation-MAX", "aggregation-AVG",
)  # fmt: skip
CHANGES: Final = ("INSERT", "UPDATE", "DELETE")
_MD5: Final = re.compile(r"\[\('[0-9a-f]{32}',\)\]\Z")
# Of a database, a table and a column; names are kept as UTF-8 of three bytes at most.
_NAME: Final = re.compile(r"[\u0001-\uffff]{0,63}(?![\t-\r ])[\u0001-\uffff]\Z")


@dataclass(frozen=True, slots=True)
class Table:
    """The table that a row is about; its database has its name."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def broken(self) -> str | None:
        """What keeps a database from holding it; None where nothing does."""
        for name in (self.name, *self.columns):
            if not _NAME.match(name):
                return f"{name!r} cannot be the name of a table or column: 1 to 64 characters, no space at the end"
        seen: set[str] = set()
        for name in self.columns:
            if name.casefold() in seen:
                return f"two of its columns are called {name!r}"
            seen.add(name.casefold())
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                return f"row {number} of its table has {len(row)} cells for {len(self.columns)} columns"
        return None


@dataclass(frozen=True, slots=True)
class Row:
    """A sample. ``label`` holds the right answers, or the one right statement; ``answer_md5`` what it leaves behind."""

    description: str
    add_description: str
    type: str
    label: tuple[str, ...]
    answer_md5: str | None
    table: Table

    @property
    def changes(self) -> bool:
        """Tell whether the table as it ends is judged, and not what the agent answers."""
        return self.type in CHANGES

    def to_json(self) -> dict[str, Any]:
        """Return what a case's content holds of it: all that is asked, played and judged by."""
        return {
            "description": self.description,
            "add_description": self.add_description,
            "type": self.type,
            "label": list(self.label),
            "answer_md5": self.answer_md5,
            "table": {
                "name": self.table.name,
                "columns": list(self.table.columns),
                "rows": [list(row) for row in self.table.rows],
            },
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Row:
        """Read ``to_json`` back."""
        table = content["table"]
        return cls(
            content["description"],
            content["add_description"],
            content["type"],
            tuple(content["label"]),
            content["answer_md5"],
            Table(table["name"], tuple(table["columns"]), tuple(tuple(row) for row in table["rows"])),
        )


def parse_rows(text: str, source: str) -> list[Row]:
    """Return the rows of a JSON-lines file; ``ContractError`` with file and line for the first that is malformed."""
    # Not splitlines(): a text of the data may hold characters that it takes for ends of lines.
    lines = text.split("\n")
    rows = [_row(line, f"{source}:{number}") for number, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise ContractError(f"{source}: has no row; give a file with a JSON object a line")
    return rows


def _row(line: str, where: str) -> Row:
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ContractError(f"{where}: is no JSON: {error}; each line must be one JSON object") from None
    if not isinstance(raw, dict):
        raise ContractError(f"{where}: is a {type(raw).__name__}; each line must be one JSON object")
    types = raw.get("type")
    kind = types[0] if isinstance(types, list) and len(types) == 1 else None
    if kind not in (*SELECTS, *CHANGES):
        raise ContractError(f"{where}: type is {types!r}; give a list of one of {', '.join((*SELECTS, *CHANGES))}")
    labels = _texts(raw.get("label"), f"{where}: label")
    md5 = raw.get("answer_md5")
    if kind in CHANGES:
        if not isinstance(md5, str) or not _MD5.match(md5):
            raise ContractError(f"{where}: answer_md5 is {md5!r}; {kind} needs the printed hash, [('<32 hex>',)]")
        if len(labels) != 1:
            raise ContractError(f"{where}: label has {len(labels)} texts; {kind} needs the one right statement")
    return Row(
        _text(raw.get("description"), f"{where}: description"),
        _text(raw.get("add_description"), f"{where}: add_description"),
        kind,
        labels,
        md5 if kind in CHANGES else None,
        _table(raw.get("table"), f"{where}: table"),
    )


def _table(raw: Any, where: str) -> Table:
    info = raw.get("table_info") if isinstance(raw, dict) else None
    if not isinstance(info, dict):
        raise ContractError(f"{where} is no object with table_name and table_info; give both")
    columns, rows = info.get("columns"), info.get("rows")
    if not isinstance(columns, list) or not columns or not all(isinstance(item, dict) for item in columns):
        raise ContractError(f"{where}.table_info.columns is {columns!r:.80}; give a list of objects with a name")
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise ContractError(f"{where}.table_info.rows is {rows!r:.80}; give a list of lists")
    for number, row in enumerate(rows):
        for cell in row:
            if isinstance(cell, bool) or not isinstance(cell, str | int | float | None) or cell != cell:
                raise ContractError(f"{where}.table_info.rows[{number}] has {cell!r:.80}; a cell is a text or a number")
    return Table(
        _text(raw.get("table_name"), f"{where}.table_name"),
        tuple(_text(item.get("name"), f"{where}.table_info.columns[].name") for item in columns),
        tuple(tuple(row) for row in rows),
    )


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise ContractError(f"{where} is {value!r:.80}; give a text")
    return value


def _texts(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
        raise ContractError(f"{where} is {value!r:.80}; give a list of one or more texts")
    return tuple(value)
