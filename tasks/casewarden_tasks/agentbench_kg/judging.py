"""How far an answer is the one that was asked for: two sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Found", "judged"]


@dataclass(frozen=True)
class Found:
    """``precision`` and ``recall`` are 0 where nothing was found."""

    executable: bool
    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Their harmonic mean; 0 where nothing right was found."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0

    @property
    def exact(self) -> bool:
        """Whether the sets are equal."""
        return self.precision == self.recall == 1


def judged(answer: Sequence[str], result: Any) -> Found:
    """Hold a sample's result (``predict``) against the answer; None and anything else without one found nothing."""
    predicted = set(result["predict"]) if isinstance(result, Mapping) else set()
    wanted = set(answer)
    right = len(predicted & wanted)
    if not right:
        return Found(bool(predicted), 0.0, 0.0)
    return Found(True, right / len(predicted), right / len(wanted))
