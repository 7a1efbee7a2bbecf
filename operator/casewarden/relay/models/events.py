"""Server-sent events as model servers stream them: cut at blank lines, each under a size."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["EventCutter", "EventTooLarge", "event_data"]

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")


class EventTooLarge(Exception):
    """An event has no end within the limit."""


class EventCutter:
    """Takes bytes as they come and gives whole events, their blank line included."""

    def __init__(self, limit: int = 1 << 20) -> None:
        self._limit = limit
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the events that are whole now."""
        start = max(0, len(self._rest) - 3)
        self._rest += data
        events, at = [], 0
        for match in _END.finditer(self._rest, start):
            events.append(bytes(self._rest[at : match.end()]))
            at = match.end()
        del self._rest[:at]
        if len(self._rest) > self._limit:
            raise EventTooLarge(f"an event is over {self._limit} bytes")
        return events

    def rest(self) -> bytes:
        """Return what came after the last whole event."""
        return bytes(self._rest)


def event_data(event: bytes) -> Any:
    """Return the JSON of an event's data lines, the text where it is none, None where there are no such lines."""
    lines = [line[5:].removeprefix(b" ") for line in event.splitlines() if line.startswith(b"data:")]
    if not lines:
        return None
    text = b"\n".join(lines)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.decode("utf-8", "replace")
