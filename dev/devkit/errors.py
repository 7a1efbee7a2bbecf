"""What can go wrong here, said so that it can be cured."""

from __future__ import annotations

from pathlib import Path


class DevError(Exception):
    """A step that failed. The message names the cure, or the log to read."""


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log, each indented; a word for a log that is not there."""
    try:
        text = log.read_text(errors="replace").splitlines()[-lines:]
    except OSError:
        return "    (no such file)"
    return "\n".join(f"    {line[:400]}" for line in text)
