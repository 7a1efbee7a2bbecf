"""Sentence BLEU of up to four words, smoothed by the fourth way of Chen and Cherry (2014), as AgentBench has it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

__all__ = ["bleu", "nearest"]

_ORDERS = 4
_K = 5.0
_LEAST = 0.01


def bleu(reference: Sequence[str], said: Sequence[str]) -> float:
    """Return how like a reference what was said is, 0 to 1, by words."""
    if not said or not set(reference) & set(said):
        return 0.0
    total, smoothed = 0.0, 1
    for order in range(1, _ORDERS + 1):
        have, want = _grams(said, order), _grams(reference, order)
        right, count = sum((have & want).values()), max(1, sum(have.values()))
        value = right / count
        if right == 0 and len(said) > 1:
            value = 1 / (2**smoothed * _K / math.log(len(said))) / count
            smoothed += 1
        if value <= 0:
            return 0.0
        total += math.log(value) / _ORDERS
    short = 1.0 if len(said) > len(reference) else math.exp(1 - len(reference) / len(said))
    return short * math.exp(total)


def nearest(action: str, commands: Sequence[str]) -> str:
    """Return the command that an action means: itself, else the likest one, unless none is like it."""
    if action in commands or not commands:
        return action
    likest = max(commands, key=lambda command: bleu(command.split(), action.split()))
    return likest if bleu(likest.split(), action.split()) > _LEAST else action


def _grams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[at : at + order]) for at in range(len(words) - order + 1))
