from __future__ import annotations

import io
from typing import Any

from casewarden.cli.progress import RunProgress


def status(done: int, finished: str = "False", reason: str = "Running", message: str = "") -> dict[str, Any]:
    condition = {"type": "Finished", "status": finished, "reason": reason, "message": message}
    complete = {"type": "Complete", "status": finished}
    return {"conditions": [condition, complete], "cases": {"total": 4, "passed": done, "running": 4 - done}}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_away_from_a_terminal_a_change_is_a_line_and_at_most_one_in_two_seconds() -> None:
    stream, now = io.StringIO(), [0.0]
    with RunProgress("kv", stream, lambda: now[0]) as progress:
        for second in range(6):
            now[0] = float(second)
            progress.show(status(min(second, 3)))
        progress.show(status(4, "True"), last=True)

    assert stream.getvalue().splitlines() == [
        "kv: running, 0/4 done (4 running)",
        "kv: running, 2/4 done (2 passed, 2 running)",
        "kv: running, 3/4 done (3 passed, 1 running)",
        "kv: complete, 4/4 done (4 passed)",
    ]


def test_the_same_is_not_said_twice() -> None:
    stream = io.StringIO()
    with RunProgress("kv", stream, lambda: 0.0) as progress:
        for _ in range(5):
            progress.show(status(1), last=True)

    assert len(stream.getvalue().splitlines()) == 1


def test_on_a_terminal_there_is_a_bar_that_no_message_can_steer() -> None:
    stream = Terminal()
    with RunProgress("kv", stream) as progress:
        progress.show(status(1, reason="ImagePull", message="\x1b]0;owned\x07 [bold]x[/bold]"))
        progress.show(status(2), last=True)

    assert "2/4" in stream.getvalue()
    assert "owned" not in stream.getvalue()
