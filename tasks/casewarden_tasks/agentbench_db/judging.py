"""Whether an answer is right: the benchmark's own rules, without its ``eval`` of what an agent wrote."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from typing import Any, Final

__all__ = ["equal_answers", "parse_answer", "right_answer"]

_LONGEST: Final = 1 << 16  # characters; a longer text is no list of anything that a table here holds


def parse_answer(text: str) -> list[Any]:
    """Return the list that an answer's text is, as Python writes lists; a text that is none is the one element.

    Python's other literals count where ``list`` takes them: a tuple, a set, a dict (its keys), a quoted text (its
    characters). Nothing is evaluated: what would have to be, a sum or a call, is a plain text.
    """
    if len(text) > _LONGEST:
        return [text]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return list(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return [text]


def equal_answers(given: Sequence[Any], right: Sequence[str]) -> bool:
    """Compare two lists: one element each as numbers, exactly, else as they are; otherwise as sets."""
    if len(given) == len(right) == 1:
        try:
            return float(given[0]) == float(right[0])
        except (ValueError, TypeError, OverflowError):
            return bool(given[0] == right[0])
    try:
        return set(given) == set(right)
    except TypeError:  # a list or a dict is in it, which no right answer has
        return False


def right_answer(text: str, label: Sequence[str]) -> bool:
    """Judge the text of a final answer."""
    return equal_answers(parse_answer(text), label)
