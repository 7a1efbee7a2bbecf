"""Zstandard as bundles and workspaces use it."""

from __future__ import annotations

import io

import zstandard

__all__ = ["compress", "decompress"]

_LEVEL = 3


def compress(data: bytes) -> bytes:
    """Return one frame with its content size in the header."""
    return zstandard.ZstdCompressor(level=_LEVEL).compress(data)


def decompress(data: bytes, limit: int) -> bytes:
    """Return the content of a frame of ``compress``; ``ValueError`` where it is none or over ``limit`` bytes."""
    content = bytearray()
    unpacker = zstandard.ZstdDecompressor(max_window_size=1 << 27)
    try:
        told = zstandard.frame_content_size(data)
        with unpacker.stream_reader(io.BytesIO(data)) as reader:
            while piece := reader.read(min(1 << 20, limit + 1 - len(content))):
                content += piece
                if len(content) > limit:
                    raise ValueError(f"it unpacks to more than {limit} bytes")
    except zstandard.ZstdError as error:
        raise ValueError(f"no zstandard frame: {error}") from None
    # A frame need not tell its size; those of ``compress`` do.
    if told not in (-1, len(content)):
        raise ValueError("the zstandard frame is cut")
    return bytes(content)
