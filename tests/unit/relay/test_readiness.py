"""What the relay finds out about its store before anybody needs it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from casewarden.adapters.stores.folder import FolderStore
from casewarden.adapters.stores.memory import MemoryStore
from casewarden.ports.store import Put, StoreUnavailable
from casewarden.relay.readiness import Readiness


class Away(MemoryStore):
    """A store that is away for so many calls."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.calls = calls

    async def put_if_absent(self, key: str, body: Any, *, limit: int) -> Put:
        if self.calls:
            self.calls -= 1
            raise StoreUnavailable("s3://bucket/: Client error with status 403 Forbidden")
        return await super().put_if_absent(key, body, limit=limit)


class Replacing(MemoryStore):
    """A server that does not know conditional writes."""

    async def put_if_absent(self, key: str, body: Any, *, limit: int) -> Put:
        return await self.put(key, body, limit=limit)


async def test_a_store_that_answers_is_ready_also_the_second_time(tmp_path: Path) -> None:
    for _ in range(2):
        readiness = Readiness(FolderStore(tmp_path), f"file://{tmp_path}")
        assert readiness.why is not None
        await readiness.ask()
        assert readiness.why is None


async def test_a_store_that_is_away_is_asked_again_and_the_cure_is_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    readiness = Readiness(Away(3), "s3://bucket/")
    with caplog.at_level(logging.INFO):
        await readiness.ask(every_seconds=0)
    assert readiness.why is None
    said = [record.message for record in caplog.records]
    assert len(said) == 2
    assert said[0].startswith("s3://bucket/: Client error with status 403 Forbidden; check relay.storage.s3: bucket,")


async def test_a_store_without_conditional_writes_is_never_ready() -> None:
    readiness = Readiness(Replacing(), "s3://bucket/")
    asking = asyncio.create_task(readiness.ask(every_seconds=0))
    async with asyncio.timeout(10):
        while "conditional writes" not in (readiness.why or ""):
            await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert readiness.why is not None
