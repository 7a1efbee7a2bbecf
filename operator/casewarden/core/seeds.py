"""Seeds that a run draws for itself."""

from __future__ import annotations

import hashlib
from typing import Final

__all__ = ["ENTROPY_BYTES", "draw_seeds"]

ENTROPY_BYTES: Final = 16
# Short enough to read out, long enough that nobody prepares for them all.
_BITS: Final = 31


def draw_seeds(count: int, entropy: bytes) -> list[int]:
    """Return ``count`` different seeds below 2^31 made of ``entropy``, at least 16 random bytes.

    The same bytes give the same seeds; a longer draw begins with a shorter one. ``ValueError`` for too few bytes.
    """
    if len(entropy) < ENTROPY_BYTES:
        raise ValueError(f"{len(entropy)} bytes of entropy: give at least {ENTROPY_BYTES}")
    seeds: dict[int, None] = {}
    block = 0
    while len(seeds) < count:
        digest = hashlib.sha256(block.to_bytes(8, "big") + entropy).digest()
        seeds.setdefault(int.from_bytes(digest[:4], "big") >> (32 - _BITS))
        block += 1
    return list(seeds)
