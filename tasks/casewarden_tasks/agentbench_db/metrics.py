"""The figures of a whole run: accuracy by type of question, by SELECT, INSERT and UPDATE, and their mean."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from .rows import SELECTS

__all__ = ["MAIN", "overall"]

MAIN: Final = "overall_cat_accuracy"


def overall(judged: Iterable[tuple[str, bool]]) -> dict[str, float]:
    """Return the figures of (type, right?) pairs. A type that there is none of counts as 0, as in the benchmark."""
    rows = list(judged)

    def accuracy(types: Iterable[str]) -> float:
        wanted = set(types)
        of = [right for kind, right in rows if kind in wanted]
        return sum(of) / len(of) if of else 0.0

    kinds = {kind for kind, _ in rows}
    figures = {f"{kind}_accuracy": accuracy([kind]) for kind in SELECTS}
    figures["SELECT_accuracy"] = accuracy(kinds - {"INSERT", "UPDATE"})
    figures["INSERT_accuracy"] = accuracy(["INSERT"])
    figures["UPDATE_accuracy"] = accuracy(["UPDATE"])
    figures[MAIN] = (figures["SELECT_accuracy"] + figures["INSERT_accuracy"] + figures["UPDATE_accuracy"]) / 3
    return figures
