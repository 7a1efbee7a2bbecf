"""What an agent's reply says: an operation to carry out, or an answer. Pure, and no reply makes it raise."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["ANSWER", "OPERATION", "action_of", "answer_of", "sql_of"]

OPERATION: Final = "Operation"
ANSWER: Final = "Answer"
_ACTION: Final = re.compile(r"Action: (.*?)\n")
_SQL: Final = re.compile(r"```sql\n(.*?)\n```", re.DOTALL)
_FINAL: Final = re.compile(r"\nFinal Answer:(.*)")


def action_of(reply: str) -> str | None:
    """Return what follows the first ``Action: `` on its line; None where there is none, or the line has no end."""
    found = _ACTION.search(reply)
    return found.group(1) if found else None


def sql_of(reply: str) -> str | None:
    """Return the statement in the first block that is fenced as sql, on one line; None where there is no such block."""
    found = _SQL.search(reply)
    return found.group(1).strip().replace("\n", " ") if found else None


def answer_of(reply: str) -> str | None:
    """Return what follows the first ``Final Answer:`` at the beginning of a line but the first; None without one."""
    found = _FINAL.search(reply)
    return found.group(1) if found else None
