"""One JSON value per line, as candidates speak it: finite, bounded, strict."""

from __future__ import annotations

import json
from typing import Any

from .errors import CandidateError

__all__ = ["dump_line", "parse_line"]


def dump_line(value: Any) -> bytes:
    """Return ``value`` as one ASCII line without its newline; ``ValueError`` for what JSON cannot hold."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False).encode("ascii")


def parse_line(line: bytes) -> Any:
    """Return the JSON value of a candidate's line.

    ``CandidateError`` (``Protocol``) for anything but one finite JSON value in UTF-8: ``NaN``, ``Infinity``, ``1e999``
    and nesting beyond what a parser takes are refused.
    """
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_refuse)
        # An exponent such as 1e999 becomes infinity without being a constant of the grammar.
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError) as error:
        shown = line[:80].decode("utf-8", "backslashreplace")
        raise CandidateError("Protocol", f"the answer is no finite JSON value: {shown!r} ({error})") from None
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")
