"""How a run is going: a bar on a terminal, a line per change elsewhere. On stderr, so that results stay clean."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from casewarden.cli.outcome import state_of
from casewarden.cli.text import one_line

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["RunProgress", "progress_text"]

_LINE_SECONDS = 2.0


def progress_text(status: Mapping[str, Any]) -> str:
    """Return the counts that change while a run is going on."""
    counts, attempts = status.get("cases") or {}, status.get("attempts") or {}
    names = {"passed": "passed", "failed": "failed", "agentErrors": "agent errors", "running": "running"}
    said = [f"{counts[key]} {name}" for key, name in names.items() if counts.get(key)]
    again = attempts.get("environmentRetries", 0) + attempts.get("interruptions", 0)
    if counts.get("environmentErrors"):
        said.append(f"{counts['environmentErrors']} environment errors")
    if again:
        said.append(f"{again} tried again")
    return ", ".join(said)


class RunProgress:
    """Shows each status that it is given. Use as a context manager."""

    def __init__(
        self, name: str, stream: TextIO | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._stream = stream or sys.stderr
        self._monotonic = monotonic
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._line = ""
        self._said_at = float("-inf")

    def __enter__(self) -> Self:
        if self._stream.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.completed:.0f}/{task.total:.0f}"),
                TextColumn("{task.fields[said]}", markup=False),
                TimeElapsedColumn(),
            )
            self._bar = Progress(*columns, console=Console(file=self._stream), transient=True)
            self._task = self._bar.add_task(self._name, total=1, said="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, status: Mapping[str, Any], *, last: bool = False) -> None:
        """Show a status; away from a terminal at most a line every two seconds, and always the last."""
        counts = status.get("cases") or {}
        done = sum(counts.get(key, 0) for key in ("passed", "failed", "agentErrors", "environmentErrors"))
        total, said = counts.get("total", 0), one_line(progress_text(status), 100)
        state = one_line(state_of(status), 160)
        if self._bar is not None and self._task is not None:
            shown = said if state == "running" else f"{state} {said}".rstrip()
            self._bar.update(self._task, completed=done, total=total or 1, said=shown)
            return
        line = f"{self._name}: {state}" + (f", {done}/{total} done" if total else "") + (f" ({said})" if said else "")
        now = self._monotonic()
        if line == self._line or (not last and now - self._said_at < _LINE_SECONDS):
            return
        self._line, self._said_at = line, now
        print(line, file=self._stream, flush=True)
