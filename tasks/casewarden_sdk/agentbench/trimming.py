"""What of a long history an agent is shown: AgentBench's rule, exactly, since scores depend on it."""

from __future__ import annotations

from typing import List, Sequence

from .messages import ChatItem

__all__ = ["BUDGET", "segments", "trimmed"]

BUDGET = 3500
"""Segments that a shown history stays below."""
_WORD = 7


def segments(text: str) -> int:
    """Return what a text costs: 1 for every 7 letters of a run and for a started rest, 1 for every other character.

    Spaces and newlines cost nothing and end a run.
    """
    cost = run = 0
    for character in text:
        if character.isalpha():
            # The first letter of each seven pays for them.
            cost += run % _WORD == 0
            run += 1
        else:
            run = 0
            cost += character not in " \n"
    return cost


def trimmed(history: Sequence[ChatItem]) -> List[ChatItem]:
    """Return the first message and as many of the last ones as stay below ``BUDGET``.

    ``AssertionError`` for a history of even length: its last message would not be the user's.
    """
    if len(history) % 2 == 0:
        raise AssertionError(f"the history has {len(history)} messages; before a turn of the agent it must be odd")
    first, spent, start = history[0], segments(history[0].content), len(history)
    for position in range(len(history) - 1, 0, -1):
        spent += segments(history[position].content)
        if spent >= BUDGET:
            break
        start = position
    if start < len(history) and history[start].role == "user":
        start += 1
    omitted = start - 1
    if omitted:
        first = ChatItem(first.role, f"{first.content}\n\n[NOTICE] {omitted} messages are omitted.")
    return [first, *(ChatItem(item.role, item.content) for item in history[start:])]
