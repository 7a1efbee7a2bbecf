"""Zstandard with a lid: what it unpacks to is bounded, whatever the data claims of itself."""

from __future__ import annotations

import io

import zstandard

__all__ = ["compress", "decompress"]

_MAX_WINDOW = 1 << 27


def compress(data: bytes) -> bytes:
    """Return one frame that names its size; equal data gives equal bytes."""
    return zstandard.ZstdCompressor(level=3).compress(data)


def decompress(data: bytes, limit: int) -> bytes:
    """Return at most ``limit`` bytes; ``ValueError`` for more, for what is no Zstandard and for what follows it."""
    unpacked = bytearray()
    decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
    try:
        with decompressor.stream_reader(io.BytesIO(data), read_across_frames=True) as reader:
            while piece := reader.read(min(1 << 20, limit + 1 - len(unpacked))):
                unpacked += piece
                if len(unpacked) > limit:
                    raise ValueError(f"unpacks to more than {limit} bytes")
    except zstandard.ZstdError as error:
        raise ValueError(f"is no Zstandard data: {error}") from None
    if not data:
        raise ValueError("is empty")
    return bytes(unpacked)
