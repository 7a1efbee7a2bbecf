"""The check programs that compare an answer with a reference, under AgentBench's names, and matching. Pure.

AgentBench runs them as Python scripts in the container that the agent controls; here they are functions of the grader.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

__all__ = ["PROGRAMS", "matches"]

_LONGEST: Final = 10_000  # characters of an answer that a comparison of numbers looks at
_UNITS: Final = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5}
_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([KMGTP]?)(?:I?B|BYTES?)?", re.IGNORECASE)


def _integer(text: str) -> int:
    """Read an integer as Python does; ``ValueError`` for what is none, or one that nobody would write."""
    if len(text) > _LONGEST:
        raise ValueError("too long for a number")
    return int(text)


def _integer_match(answer: str, reference: str) -> bool:
    try:
        return _integer(answer) == _integer(reference)
    except ValueError:
        return False


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def _string_match(answer: str, reference: str) -> bool:
    return _plain(answer) == _plain(reference)


def _containing(answer: str, reference: str) -> bool:
    return bool(_plain(reference)) and _plain(reference) in _plain(answer)


def _in(answer: str, reference: str) -> bool:
    # An empty answer is in everything and says nothing.
    return bool(_plain(answer)) and _plain(answer) in _plain(reference)


def _bytes(text: str) -> Decimal:
    """Return a size in bytes: a number and a unit, of 1024 each. ``ValueError`` for what is none."""
    found = _SIZE.fullmatch(text.strip()[:_LONGEST])
    if found is None:
        raise ValueError(f"{text[:40]!r} is no size")
    try:
        return Decimal(found[1]) * Decimal(1024) ** _UNITS[found[2].upper()]
    except InvalidOperation:
        raise ValueError(f"{text[:40]!r} is no size") from None


def _size_match(answer: str, reference: str) -> bool:
    try:
        return _bytes(answer) == _bytes(reference)
    except ValueError:
        return False


PROGRAMS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "integer-match": _integer_match,
    "string-match": _string_match,
    "containing": _containing,
    "in": _in,
    "size-match": _size_match,
}


def matches(rule: Mapping[str, Any], answer: str | None) -> bool:
    """Tell whether an answer is the one that ``rule`` (``answer`` or ``regex``, ``strip``) names; none never is."""
    if answer is None:
        return False
    if rule["strip"]:
        answer = answer.strip()
    if "regex" in rule:
        return re.search(rule["regex"], answer) is not None
    return bool(answer == rule["answer"])
