"""The multi-choice rounds of one sample: five candidates at a time, until one or none is left."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .page import Page
from .records import Operation, Sample

__all__ = ["Choice", "Rounds", "action_f1", "parsed"]

_AT_ONCE: Final = 5
_LETTERS: Final = "ABCDEF"
_PREVIOUS: Final = 5
_ANSWER: Final = re.compile(r"Answer:\s*([A-F])\b")
_ACTION: Final = re.compile(r"Action:\s*(CLICK|SELECT|TYPE)\b")
_VALUE: Final = re.compile(r"Value:[ \t]*(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Choice:
    """What a reply says: a letter, and what to do with that element."""

    letter: str
    operation: Operation


def parsed(reply: str) -> Choice:
    """Read a reply; where it names none, the letter is A, none of the above."""
    answer, action, value = (pattern.search(reply) for pattern in (_ANSWER, _ACTION, _VALUE))
    operation = Operation(action.group(1) if action else "", value.group(1).strip() if value else "")
    return Choice(answer.group(1) if answer else "A", operation)


class Rounds:
    """The pool of candidates of one sample, in an order that is the sample's own, or that a generator draws.

    ``element`` and ``operation`` are the prediction so far. So many rounds are asked at ``least``: a candidate that is
    alone is asked about, too.
    """

    def __init__(self, sample: Sample, draw: random.Random | None = None, least: int = 0) -> None:
        self.element: str | None = None
        self.operation = Operation("", "")
        self.asked = 0
        self._least = least
        self._sample = sample
        self._page = Page(sample.html)
        self._pool = list(sample.candidates)
        (draw or random.Random(f"order of {sample.key}")).shuffle(self._pool)  # noqa: S311 - repeatable draws are the point
        self._shown: list[str] = []

    @property
    def goes_on(self) -> bool:
        """Whether more than one candidate is left, or none was asked about yet."""
        return len(self._pool) > 1 or (self.asked < self._least and bool(self._pool))

    @property
    def prediction(self) -> tuple[str, str]:
        """The element and what is done with it; two empty texts where nothing was chosen in the end."""
        if self.element is None or not self._pool:
            return "", ""
        return self.element, self.operation.words

    def next(self) -> str:
        """Take the next candidates and return what is asked about them."""
        taken, self._pool = self._pool[:_AT_ONCE], self._pool[_AT_ONCE:]
        self._shown = self._page.in_order(taken)
        self.asked += 1
        choices = [f"{_LETTERS[place + 1]}. {self._page.choice(node, place)}" for place, node in enumerate(self._shown)]
        return question(self._page.around(self._shown), self._sample.task, self._sample.previous, choices)

    def take(self, choice: Choice) -> None:
        """Take the reply: what was chosen goes back into the pool."""
        place = _LETTERS.index(choice.letter) - 1
        if 0 <= place < len(self._shown):
            self.element, self.operation = self._shown[place], choice.operation
            self._pool.append(self.element)


def question(page: str, task: str, previous: Sequence[str], choices: Sequence[str]) -> str:
    """Return what an agent is asked."""
    done = "\n".join(previous[-_PREVIOUS:]) or "None"
    return (
        f"'''\n{page}\n'''\n\nThis is a part of a web page on which this task is being done.\nTask: {task}\n"
        f"Previous actions:\n{done}\nWhich of these elements is the next action on? If it is on none of them, "
        "choose A.\n\n" + "\n".join(["A. None of the above", *choices])
    )


def action_f1(predicted: str, wanted: str) -> float:
    """Return F1 of the two as sets of words."""
    left, right = set(predicted.split()), set(wanted.split())
    shared = len(left & right)
    if not left and not right:
        return 1.0
    return 2 * shared / (len(left) + len(right)) if shared else 0.0
