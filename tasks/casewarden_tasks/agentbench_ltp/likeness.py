"""How alike two texts are by AgentBench's measure: BLEU-1 over characters."""

from __future__ import annotations

import math
from collections import Counter

__all__ = ["bleu1"]


def bleu1(reference: str, text: str) -> float:
    """Return the share of the text's characters that the reference has too, less for a text that is shorter."""
    if not text or not reference:
        return 0.0
    shared = sum((Counter(text) & Counter(reference)).values())
    brevity = 1.0 if len(text) > len(reference) else math.exp(1 - len(reference) / len(text))
    return brevity * shared / len(text)
