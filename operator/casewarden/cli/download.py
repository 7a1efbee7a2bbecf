"""A whole run from the relay into a folder."""

from __future__ import annotations

import asyncio
from pathlib import Path

from casewarden.cli.sources import RunFiles
from casewarden.core.evidence import parse_evidence_key

__all__ = ["download"]

_AT_ONCE = 4


async def download(files: RunFiles, folder: Path) -> None:
    """Write every file of a run below ``folder``, but for claims, which prove nothing."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def fetch(path: str) -> None:
        key = parse_evidence_key(path)
        if key is not None and key.kind == "claim":
            return
        async with places:
            data = await files.read(path)
        if data is not None:
            await asyncio.to_thread(_write, folder / path, data)

    await asyncio.gather(*(fetch(path) for path in await files.paths()))


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
