"""One JSON value per line, as candidates speak it: finite, bounded, strict."""

from __future__ import annotations

import json
from typing import Any, Iterable

from .errors import CandidateError

__all__ = ["MAX_DEPTH", "dump_line", "parse_line"]

MAX_DEPTH = 200
"""How deeply an answer may be nested.

A parser that has room for a value may have none for the record around it; where the limit is the parser's own, a
candidate could choose a depth that breaks the driver, and with it turn a loss into a case that is not assessed.
"""


def dump_line(value: Any) -> bytes:
    """Return ``value`` as one ASCII line without its newline; ``ValueError`` for what JSON cannot hold."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False).encode("ascii")


def parse_line(line: bytes) -> Any:
    """Return the JSON value of a candidate's line.

    ``CandidateError`` (``Protocol``) for anything but one finite JSON value in UTF-8: ``NaN``, ``Infinity``, ``1e999``
    and nesting beyond ``MAX_DEPTH`` are refused.
    """
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_refuse)
        # An exponent such as 1e999 becomes infinity without being a constant of the grammar.
        json.dumps(value, allow_nan=False)
        if _is_deeper(value, MAX_DEPTH):
            raise ValueError(f"nested more than {MAX_DEPTH} deep")
    except (ValueError, RecursionError) as error:
        shown = line[:80].decode("utf-8", "backslashreplace")
        raise CandidateError("Protocol", f"the answer is no finite JSON value: {shown!r} ({error})") from None
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    layer = [value]
    for _ in range(levels):
        layer = [child for item in layer for child in _children(item)]
        if not layer:
            return False
    return True


def _children(item: Any) -> Iterable[Any]:
    if isinstance(item, dict):
        return item.values()
    return item if isinstance(item, list) else ()


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")
