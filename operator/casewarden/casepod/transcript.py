"""Everything that went between driver and candidate, as rows, up to a size that no candidate can push."""

from __future__ import annotations

from collections.abc import Callable

from casewarden_sdk.bundle import TranscriptDigest, transcript_row
from casewarden_sdk.canonical import canonical

__all__ = ["MAX_TRANSCRIPT_BYTES", "Transcript"]

MAX_TRANSCRIPT_BYTES = 16 << 20
_STDERR_TAIL = 2048
_STDERR_ROW = 8192


class _Stderr:
    """One session's stderr: lines for rows, and the last bytes of it."""

    def __init__(self) -> None:
        self.tail = bytearray()
        self.pending = bytearray()


class Transcript:
    """Collects rows. After ``limit`` bytes one row of the direction ``truncated`` stands for all that follows.

    ``in`` and ``out`` rows count into the digest in the order in which the driver sent and took the lines, so that the
    digest does not depend on how fast a candidate was.
    """

    def __init__(self, now: Callable[[], float], limit: int = MAX_TRANSCRIPT_BYTES) -> None:
        self._now = now
        self._limit = limit
        self._rows: list[bytes] = []
        self._size = 0
        self._full = False
        self._digest = TranscriptDigest()
        self._stderr: dict[int, _Stderr] = {}

    def add(self, session: int, direction: str, data: bytes) -> None:
        """Add a row, unless the transcript is full."""
        if self._full:
            return
        row = transcript_row(self._now(), session, direction, data)
        text = canonical(row).encode("ascii") + b"\n"
        if self._size + len(text) > self._limit:
            self._full = True
            row = transcript_row(self._now(), session, "truncated", f"more than {self._limit} bytes".encode())
            text = canonical(row).encode("ascii") + b"\n"
        self._digest.add(row)
        self._rows.append(text)
        self._size += len(text)

    def stderr(self, session: int, data: bytes) -> None:
        """Take stderr as it comes; it becomes rows line by line."""
        stream = self._stderr.setdefault(session, _Stderr())
        stream.tail = (stream.tail + data)[-_STDERR_TAIL:]
        stream.pending += data
        while (end := stream.pending.find(b"\n")) >= 0 or len(stream.pending) > _STDERR_ROW:
            cut = end + 1 if 0 <= end < _STDERR_ROW else _STDERR_ROW
            self.add(session, "err", bytes(stream.pending[:cut]).removesuffix(b"\n"))
            del stream.pending[:cut]

    def stderr_end(self, session: int) -> None:
        """Write what is left of a session's stderr."""
        stream = self._stderr.get(session)
        if stream is not None and stream.pending:
            self.add(session, "err", bytes(stream.pending))
            stream.pending.clear()

    def stderr_tail(self, session: int) -> str:
        """Return the last 2048 bytes of a session's stderr as text."""
        stream = self._stderr.get(session)
        if stream is None:
            return ""
        # The cut may lie inside a character; what is left of it says nothing.
        tail = bytes(stream.tail)
        cut = len(tail) == _STDERR_TAIL
        start = next((at for at in range(min(4, len(tail))) if tail[at] & 0xC0 != 0x80), 0) if cut else 0
        return tail[start:].decode("utf-8", "replace")

    def sha256(self) -> str:
        """Return the digest over the ``in`` and ``out`` rows so far."""
        return self._digest.hexdigest()

    def data(self) -> bytes:
        """Return all rows as JSON lines."""
        return b"".join(self._rows)
