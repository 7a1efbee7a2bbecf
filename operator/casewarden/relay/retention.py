"""Removing the evidence of runs that are gone, after their time.

A run whose EvalRun is not in the cluster any more gets a mark with the time at which that was first seen; when the mark
is old enough all of the run is deleted. A run that is there again (a restored cluster) loses its mark. Nothing is
removed by a sweep that could not list the runs, and uploaded folders are not swept.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable

from casewarden.core.evidence import META, json_file, run_key
from casewarden.ports.store import NotFound, Store, StoreError
from casewarden.relay.auth import ReviewUnavailable
from casewarden.relay.metrics import RelayMetrics

__all__ = ["GONE", "keep_sweeping", "sweep"]

GONE = "gone.json"
_LOG = logging.getLogger("casewarden.relay")
_DAY = 86_400.0


async def sweep(store: Store, alive: set[str], *, days: float, now: float) -> list[str]:
    """Mark, unmark and remove; return the UIDs of the runs that were removed. ``now`` is in seconds since the epoch."""
    removed = []
    run_uids = [entry.key.split("/")[1] async for entry in store.list("runs/", deep=False) if entry.key.endswith("/")]
    for run_uid in run_uids:
        if run_uid in alive:
            await store.delete(run_key(run_uid, GONE))
            continue
        since = await _gone_since(store, run_uid, now)
        if now - since >= days * _DAY:
            await _remove(store, run_uid)
            removed.append(run_uid)
    return removed


async def _gone_since(store: Store, run_uid: str, now: float) -> float:
    put = await store.put_if_absent(run_key(run_uid, GONE), json_file({"v": 1, "at": now}), limit=1024)
    if put.created:
        return now
    return float(json.loads(await store.get(run_key(run_uid, GONE), limit=1024))["at"])


async def _remove(store: Store, run_uid: str) -> None:
    """Delete everything; ``meta.json`` and the mark go last, so that a sweep that is cut short is taken up again."""
    keys = [entry.key async for entry in store.list(run_key(run_uid, ""))]
    last = [run_key(run_uid, META), run_key(run_uid, GONE)]
    for key in [key for key in keys if key not in last] + last:
        await store.delete(key)


async def keep_sweeping(
    store: Store,
    run_uids: Callable[[], Awaitable[set[str]]],
    *,
    days: float,
    metrics: RelayMetrics,
    every_seconds: float = 3600.0,
) -> None:
    """Sweep once an hour until cancelled; with ``days`` 0 never."""
    if days <= 0:
        return
    while True:
        try:
            removed = await sweep(store, await run_uids(), days=days, now=time.time())
            metrics.swept_runs.inc(len(removed))
            if removed:
                _LOG.info("removed the evidence of %d runs that are gone for %g days", len(removed), days)
        except (StoreError, NotFound, ReviewUnavailable, ValueError) as error:
            _LOG.warning("evidence was not swept: %s", error)
        await asyncio.sleep(every_seconds)
