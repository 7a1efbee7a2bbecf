"""Foreign text on a terminal: what a candidate wrote must not be able to steer it."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["clean", "cut", "one_line"]

# CSI, OSC and the other string sequences with their bodies, then two-character escapes.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
# Marks that turn the direction of the text around them.
_TURNING = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def clean(text: str) -> str:
    """Return ``text`` without escape sequences and control characters; tabs and newlines stay."""
    kept = []
    for character in _ESCAPES.sub("", text):
        if character in "\n\t" or (character not in _TURNING and unicodedata.category(character) not in ("Cc", "Cs")):
            kept.append(character)
        elif character != "\r":
            kept.append("�")
    return "".join(kept)


def one_line(text: str, width: int = 0) -> str:
    """Return cleaned text as one line, cut to ``width`` characters where that is not 0."""
    line = " ".join(clean(text).split())
    return cut(line, width) if width else line


def cut(text: str, width: int) -> str:
    """Return at most ``width`` characters, with a mark where something is missing."""
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"
