"""One game: what the host makes of the agent's replies, round by round, until the truth is out or the rounds are."""

from __future__ import annotations

import re
from typing import Any, Final

from .judge import NO, YES, Judge
from .likeness import bleu1
from .puzzles import Puzzle

__all__ = ["Host", "opening"]

ASKED_LENGTH: Final = 1000  # characters of a question that are read
_ALIKE: Final = 0.85
_GIVING_UP: Final = re.compile(
    r"\b(?:new|other)\s+(?:story|game|question|round)|great job|further question", re.IGNORECASE
)
_GIVEN_UP: Final = 5
_WORDS: Final = re.compile(r"\w+")

_OPENING: Final = """Let us play a lateral thinking game. I tell you a story with something strange in it; I know the
truth behind it, and you find it out by asking me. I answer Yes, No or Irrelevant. You have {rounds} questions.

- Reply with one question and nothing else, on one line; I read the first line only.
- Ask what can be answered with yes or no, and build on what you know. A question that says all of a part of the truth,
  such as "Is it that she had known the man for years because they had worked at the same bakery?", finds that part.
- Do not restate the story, do not ask the same question twice, and do not ask for another story: go on until the
  truth is out.

The story: {story}

Your first question?"""
_RESTATED: Final = "That is part of the story already. Ask about what the story does not say."
_REPEATED: Final = "You asked that before. Ask something else."
_GAVE_UP: Final = "There is no other story: the game goes on until the truth is out. Ask a question about this story."


def opening(puzzle: Puzzle, rounds: int) -> str:
    """Return the first message of a game."""
    return _OPENING.format(rounds=rounds, story=puzzle.story)


class Host:
    """The state of a game. ``compat`` keeps to v0.2 where version 1 does what was meant; the contract page lists it."""

    def __init__(self, puzzle: Puzzle, judge: Judge, rounds: int, compat: bool) -> None:
        self.round = 0
        self.correct = 0
        self.relevant = 0
        self.hits: list[str] = []
        self.finished_at: int | None = None
        self.over = False
        self.log: list[dict[str, Any]] = []
        self._puzzle = puzzle
        self._judge = judge
        self._rounds = rounds
        self._compat = compat
        self._left = list(puzzle.answer_keys)
        self._known: list[str] = []
        self._reasoning: list[str] = []
        self._asked: set[tuple[str, ...]] = set()
        self._abort = 0

    async def take(self, reply: str) -> str:
        """Play one round with the agent's reply; return what it is told next. ``over`` says if that was the last."""
        self.round += 1
        lines = reply.strip().splitlines()
        question = lines[0].strip()[:ASKED_LENGTH] if lines else ""
        entry: dict[str, Any] = {"round": self.round, "question": question, "hit": None}
        self.log.append(entry)
        entry["outcome"], entry["host"] = await self._round(question, entry)
        self.over = self.over or self.round >= self._rounds
        return str(entry["host"])

    def result(self) -> dict[str, Any]:
        """Return AgentBench's figures of the game so far; ``history`` has a row per round."""
        finish_round = self._rounds if self.finished_at is None else self.finished_at
        return {
            "accuracy": self.correct / self._rounds,
            "efficiency": 1 - finish_round / self._rounds,
            "relevance": self.relevant / self._rounds,
            "progress": len(self.hits) / len(self._puzzle.answer_keys),
            "finish_round": finish_round,
            "finished": self.finished_at is not None,
            "hit_keys": list(self.hits),
            "history": self.log,
            "judge": self._judge.to_json(),
        }

    async def _round(self, question: str, entry: dict[str, Any]) -> tuple[str, str]:
        if not question:
            self.over = True
            return "empty", ""
        if _GIVING_UP.search(question):
            self._abort += 2
            self.over = self._abort >= _GIVEN_UP
            return "gave up", _GAVE_UP
        if any(bleu1(_full_stop(key), _full_stop(question)) > _ALIKE for key in self._puzzle.story_keys):
            return "restated", _RESTATED
        words = tuple(_WORDS.findall(question.casefold()))
        if words in self._asked and not self._compat:
            return "repeated", _REPEATED
        self._asked.add(words)
        answer, said = await self._judge.answer(question, self._known)
        if answer in (YES, NO):
            self.correct += answer == YES
            self.relevant += 1
            await self._learn(question, answer, entry)
        return answer, said

    async def _learn(self, question: str, answer: str, entry: dict[str, Any]) -> None:
        statement = await self._judge.statement(question, answer)
        self._known.append(statement)
        self._reasoning.append(statement)
        sentence = await self._judge.merged(self._reasoning)
        for key in [key for key in self._left if len(key) <= len(question.replace("?", ""))]:
            if await self._judge.contains(sentence, key):
                entry["hit"] = key
                self.hits.append(key)
                self._left.remove(key)
                self._reasoning.clear()
                break
        if self._is_finished():
            self.finished_at, self.over = self.round, True

    def _is_finished(self) -> bool:
        return len(self.hits) >= len(self._left) if self._compat else not self._left


def _full_stop(text: str) -> str:
    return text.replace("?", ".")
