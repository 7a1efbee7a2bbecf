"""The verb ``aggregate`` in a pod: its input in parts on a volume, its answer as lines of the log."""

from __future__ import annotations

import os
import zlib
from typing import Iterable, List

from .plan import pack_lines, unpack_lines

__all__ = ["LINE_PREFIX", "MAX_BYTES", "aggregate_lines", "read_aggregate_lines", "read_outputs"]

LINE_PREFIX = "casewarden-aggregate "
MAX_BYTES = 256 << 20


def read_outputs(folder: str) -> List[str]:
    """Return the lines that lie as one zlib stream in the numbered files of ``folder``; ``ValueError`` for others."""
    packed = b""
    for name in sorted(name for name in os.listdir(folder) if name.isdigit()):
        with open(os.path.join(folder, name), "rb") as part:
            packed += part.read()
    unpacker = zlib.decompressobj()
    try:
        data = unpacker.decompress(packed, MAX_BYTES)
    except zlib.error as error:
        raise ValueError(f"{folder}: the outputs are damaged: {error}") from None
    if not unpacker.eof:
        raise ValueError(f"{folder}: the outputs are cut, or larger than {MAX_BYTES} bytes")
    return data.decode("ascii").splitlines()


def aggregate_lines(text: str) -> List[str]:
    """Write an answer as lines that survive a container's log."""
    return pack_lines(LINE_PREFIX, text)


def read_aggregate_lines(lines: Iterable[str]) -> str:
    """Return the answer in a log; ``ValueError`` where there is none, or not the whole."""
    return unpack_lines(LINE_PREFIX, lines, "answer")
