"""A small ranker of what on a page a task may mean, for records that come without ranks.

Words that the element shares with the task and with what was done before count by how rare they are on the page; where
that says nothing, what can be typed into or chosen from goes before what can only be clicked.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

__all__ = ["ranked"]

_WORD = re.compile(r"[a-z0-9]+")
_KINDS: Mapping[str, float] = {"input": 0.9, "select": 0.9, "textarea": 0.9, "button": 0.6, "option": 0.3, "a": 0.2}


def ranked(task: str, previous: Sequence[str], elements: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the rank, from 0, of each element: a node id and its words, of which the first is its tag."""
    words = {node: set(_words(" ".join(said[1:]))) for node, said in elements.items()}
    often = Counter(word for said in words.values() for word in said)
    asked, done = set(_words(task)), set(_words(" ".join(previous)))

    def score(node: str) -> float:
        shared = sum(1 / math.log2(1 + often[word]) for word in words[node] & asked)
        again = sum(1 / math.log2(1 + often[word]) for word in words[node] & done)
        length = math.log2(2 + len(words[node]))
        return 2 * shared / length - 0.5 * again / length + _KINDS.get(elements[node][0], 0.0)

    order = sorted(elements, key=lambda node: (-score(node), int(node) if node.isdecimal() else 0, node))
    return {node: place for place, node in enumerate(order)}


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
