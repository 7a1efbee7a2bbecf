"""What an agent is shown of a result: Python's list of tuples, as the benchmark prints it, cut to 800 characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

__all__ = ["SHOWN", "TRUNCATED", "error_text", "printed", "shown"]

SHOWN: Final = 800  # characters
TRUNCATED: Final = "[TRUNCATED]"


def printed(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as Python prints a list of tuples: ``[(Decimal('5'), None), ('a', b'b')]``.

    Rows are taken only until what they print is longer than anyone is shown; the text then ends somewhere behind that.
    """
    parts: list[str] = []
    length = 0
    for row in rows:
        parts.append(repr(tuple(row)))
        length += len(parts[-1]) + 2
        if length > SHOWN + 2:
            break
    return f"[{', '.join(parts)}]"


def error_text(number: int, state: str, message: str) -> str:
    """Return what an agent is shown of a statement that failed: ``1054 (42S22): Unknown column …``."""
    return f"{number} ({state}): {message}"


def shown(text: str) -> str:
    """Cut a text that is too long, and say so."""
    return text if len(text) <= SHOWN else text[:SHOWN] + TRUNCATED
