"""The frames that cross the sockets of a case pod.

One frame is a 4-byte big-endian length, that many bytes of UTF-8 JSON (an object, the *header*), then ``header["n"]``
raw bytes of payload (0 when absent). Requests carry ``id``; the answer carries the same ``id`` and ``ok``. Frames
without ``id`` are events. The same codec serves shim to supervisor and driver to recorder; ``docs/internals/wire.md``
lists the messages.
"""

from __future__ import annotations

import asyncio
import json
import struct
from typing import Any, Dict, Tuple

__all__ = ["MAX_HEADER", "MAX_PAYLOAD", "WIRE_VERSION", "Frame", "WireError", "decode_header", "encode", "read_frame"]

WIRE_VERSION = 1
MAX_HEADER = 1 << 20
MAX_PAYLOAD = 64 << 20
Frame = Tuple[Dict[str, Any], bytes]


class WireError(Exception):
    """A peer sent what is no frame; the connection is of no further use."""


def encode(header: Dict[str, Any], payload: bytes = b"") -> bytes:
    """Return the bytes of one frame."""
    if payload:
        header = {**header, "n": len(payload)}
    text = json.dumps(header, ensure_ascii=False, allow_nan=False).encode("utf-8")
    if len(text) > MAX_HEADER or len(payload) > MAX_PAYLOAD:
        raise WireError(f"frame of {len(text)} + {len(payload)} bytes is over the limit")
    return struct.pack(">I", len(text)) + text + payload


def decode_header(text: bytes) -> Dict[str, Any]:
    """Parse a header; ``WireError`` for anything but a JSON object with a sane ``n``."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WireError(f"header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise WireError("header is no object")
    size = header.get("n", 0)
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= MAX_PAYLOAD:
        raise WireError(f"payload size {size!r} is out of range")
    return header


async def read_frame(reader: asyncio.StreamReader) -> Frame:
    """Read one frame; ``asyncio.IncompleteReadError`` at the end of the stream."""
    (length,) = struct.unpack(">I", await reader.readexactly(4))
    if not 2 <= length <= MAX_HEADER:
        raise WireError(f"header length {length} is out of range")
    header = decode_header(await reader.readexactly(length))
    size = header.get("n", 0)
    return header, (await reader.readexactly(size) if size else b"")
