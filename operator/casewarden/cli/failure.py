"""How a command ends when it cannot do what it was asked."""

from __future__ import annotations

from typing import Final

__all__ = ["GOOD", "INTERRUPTED", "INVALID", "NOT_GOOD", "Failure"]

GOOD: Final = 0
NOT_GOOD: Final = 1
INVALID: Final = 2
INTERRUPTED: Final = 130


class Failure(Exception):
    """What went wrong and what to do about it, in one line; ``code`` is the exit code."""

    def __init__(self, message: str, code: int = INVALID) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
