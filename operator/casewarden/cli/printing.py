"""Results on standard output: a table for people, JSON or YAML for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from casewarden.cli.text import one_line

__all__ = ["Output", "emit", "print_line", "print_rows", "table"]


class Output(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def print_line(text: str = "") -> None:
    """Write a line to standard output, whatever its encoding can hold."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding) + "\n")
    sys.stdout.flush()


def emit(value: Any, output: Output, show: Callable[[], None]) -> None:
    """Write ``value`` as JSON or YAML, or let ``show`` write it for people."""
    if output is Output.JSON:
        print_line(json.dumps(value, indent=2, ensure_ascii=True))
    elif output is Output.YAML:
        import yaml

        print_line(yaml.safe_dump(value, sort_keys=False, allow_unicode=False).rstrip())
    else:
        show()


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines of left-aligned columns; every cell becomes one line of harmless text."""
    cells = [list(columns), *([one_line(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(columns))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def print_rows(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as a table; ``columns`` maps a row's keys to headings, None and absent cells are empty."""
    cells = [["" if row.get(key) is None else str(row[key]) for key in columns] for row in rows]
    for line in table(list(columns.values()), cells):
        print_line(line)
