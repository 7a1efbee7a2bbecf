from __future__ import annotations

import asyncio

from casewarden.adapters.stores.memory import MemoryStore
from casewarden.relay.auth import ReviewUnavailable
from casewarden.relay.metrics import RelayMetrics
from casewarden.relay.retention import keep_sweeping, sweep

DAY = 86_400.0


async def filled() -> MemoryStore:
    store = MemoryStore()
    for key in ("runs/u1/meta.json", "runs/u1/17/a/0/sealed.json", "runs/u2/meta.json", "workspaces/evals/x.tar.zst"):
        await store.put(key, b"x", limit=10)
    return store


async def test_a_gone_runs_evidence_is_removed_only_after_its_time() -> None:
    store = await filled()

    assert await sweep(store, {"u2"}, days=30, now=0.0) == []
    assert await sweep(store, {"u2"}, days=30, now=29.9 * DAY) == []
    assert "runs/u1/17/a/0/sealed.json" in store.values
    assert await sweep(store, {"u2"}, days=30, now=30 * DAY) == ["u1"]

    assert set(store.values) == {"runs/u2/meta.json", "workspaces/evals/x.tar.zst"}


async def test_a_run_that_is_back_loses_its_mark() -> None:
    store = await filled()
    await sweep(store, {"u2"}, days=30, now=0.0)
    await sweep(store, {"u1", "u2"}, days=30, now=29 * DAY)

    assert await sweep(store, {"u2"}, days=30, now=31 * DAY) == []
    assert "runs/u1/meta.json" in store.values


async def test_nothing_is_removed_when_the_runs_cannot_be_listed() -> None:
    store = await filled()

    async def away() -> set[str]:
        raise ReviewUnavailable("no connection")

    task = asyncio.create_task(keep_sweeping(store, away, days=0.000001, metrics=RelayMetrics(), every_seconds=0.01))
    await asyncio.sleep(0.05)
    task.cancel()

    assert not task.done() or task.cancelled()
    assert len(store.values) == 4


async def test_without_a_time_nothing_is_ever_swept() -> None:
    store = await filled()

    async def none() -> set[str]:
        return set()

    await keep_sweeping(store, none, days=0, metrics=RelayMetrics())

    assert len(store.values) == 4


async def test_the_sweep_goes_on_after_a_failure() -> None:
    store = await filled()
    asked = 0

    async def flaky() -> set[str]:
        nonlocal asked
        asked += 1
        if asked == 1:
            raise ReviewUnavailable("no connection")
        return set()

    task = asyncio.create_task(keep_sweeping(store, flaky, days=1e-9, metrics=RelayMetrics(), every_seconds=0.01))
    await asyncio.sleep(0.2)
    task.cancel()

    assert asked > 2
    assert set(store.values) == {"workspaces/evals/x.tar.zst"}
