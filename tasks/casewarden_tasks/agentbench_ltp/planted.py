"""The programs that prove the grader: the reference knows the answers, and each fault spoils one thing of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from casewarden_sdk.contract import Control
from casewarden_sdk.planted import Fault, planted, replaced

from .puzzles import Puzzle

__all__ = ["FAULTS", "controls", "reference"]

_PROGRAMS: Final = Path(__file__).parent / "controls"
_ASK: Final = "    if number >= len(keys):\n"
_KEYS: Final = "question(KEYS[story], GIVEN[story], number)"
_SAID: Final = "        print("
_FIRST: Final = "    if number == 0:\n        return {}\n    number -= 1\n" + _ASK

FAULTS: Final = (
    Fault("misses-the-last", "solved", _KEYS, "question(KEYS[story][:-1], GIVEN[story], number)"),
    Fault("asks-beside-the-point", "solved", _ASK, "    if number >= 0:\n"),
    Fault("claims-instead-of-asking", "solved", _ASK, f"    QUESTION = 'I have solved it: {{}}'\n{_ASK}"),
    Fault("restates-the-story", "conduct", _ASK, _FIRST.format("given")),
    Fault("asks-twice", "conduct", _KEYS, "question(KEYS[story], GIVEN[story], number // 2)"),
    Fault("gives-up-once", "conduct", _ASK, _FIRST.format("'A new story, please.'")),
    Fault("says-nothing-after-the-first", "conduct", _SAID,
          f"        said = said if number == 0 else ''\n{_SAID}", ("solved",)),
)  # fmt: skip


def reference(puzzles: Sequence[Puzzle]) -> str:
    """Return a program that knows the truth of these puzzles and asks for it, part by part."""
    keys = {puzzle.story: list(puzzle.answer_keys) for puzzle in puzzles}
    given = {puzzle.story: puzzle.story_keys[0] for puzzle in puzzles}
    text = (_PROGRAMS / "reference" / "main.py").read_text(encoding="utf-8")
    return replaced(
        replaced(text, "KEYS = {}", f"KEYS = {json.dumps(keys)}"), "GIVEN = {}", f"GIVEN = {json.dumps(given)}"
    )


def controls(puzzles: Sequence[Puzzle]) -> tuple[Control, ...]:
    """Return reference, null agent, crashing agent and every fault."""
    right = reference(puzzles)
    return planted(right, _PROGRAMS, FAULTS)
