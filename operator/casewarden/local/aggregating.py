"""The score of a task's own rule in a local run: the same rows, answer and files as in a cluster."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from typing import Any

from casewarden.adapters.stores.zstd import decompress
from casewarden.api.reasons import RunReason
from casewarden.core.agentbench import assessed_lines, outcome_row, own_files, own_score, places, read_aggregate
from casewarden.core.bundle_check import strict_json
from casewarden.core.evidence import EvidenceKey, parse_evidence_key, run_key
from casewarden.core.model import CaseKey, LedgerRow
from casewarden.core.run_conditions import Why
from casewarden.core.scoring import OwnScore
from casewarden.ports.store import NotFound, Store

__all__ = ["NoScore", "aggregate"]

_SECONDS = 300.0
_BUNDLE_BYTES = 256 << 20


class NoScore(Exception):
    """The task's own rule made no score; ``why`` is what the status says."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.why = Why(RunReason.AGGREGATE_FAILED, message)


async def aggregate(
    store: Store,
    run_uid: str,
    pack: str,
    params: Mapping[str, Any],
    settled: Mapping[CaseKey, LedgerRow],
    variables: Mapping[str, str],
) -> tuple[OwnScore, dict[str, bytes]]:
    """Return the score and the files. ``settled`` are the rows that count, in the order of the plan."""
    index = [line async for line in _index(store, run_uid)]
    found = places(index, settled)
    rows = []
    for key, row in settled.items():
        place, data = found.get(key), None
        if place is not None:
            kind = "partial" if place.partial else "bundle"
            path = EvidenceKey(key, kind, place.attempt.attempt).path()  # type: ignore[arg-type]
            data = await store.get(run_key(run_uid, path), limit=_BUNDLE_BYTES)
        try:
            rows.append(outcome_row(key, row, params, data, decompress))
        except ValueError as error:
            raise NoScore(f"the bundle of case {key}: {error}") from None
    score, overall = await _ask(pack, assessed_lines(rows), variables)
    files = own_files(rows, overall)
    return own_score(score, files), files


async def _index(store: Store, run_uid: str) -> AsyncIterator[dict[str, Any]]:
    prefix = run_key(run_uid, "")
    async for entry in store.list(prefix):
        key = parse_evidence_key(entry.key.removeprefix(prefix))
        if key is None or key.kind not in ("sealed", "partial"):
            continue
        case = {"seed": key.case.seed, "case_id": key.case.case_id, "repeat": key.case.repeat}
        if key.kind == "partial":
            yield {"kind": "partial", **case, "attempt": key.attempt}
            continue
        try:
            sealed = strict_json(await store.get(entry.key, limit=_BUNDLE_BYTES))
        except NotFound:
            continue
        yield {"kind": "sealed", "sealed": sealed}


async def _ask(pack: str, lines: bytes, variables: Mapping[str, str]) -> tuple[str | None, dict[str, Any]]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "casewarden_sdk", pack, "aggregate"),
        env={**os.environ, **variables},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_SECONDS):
            out, err = await process.communicate(lines)
    except TimeoutError:
        raise NoScore(f"{pack}: aggregate did not end within {_SECONDS:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    if process.returncode != 0:
        last = (err.decode("utf-8", "replace").strip().splitlines() or ["it said nothing"])[-1]
        raise NoScore(f"{pack}: aggregate ended with exit code {process.returncode}: {last}")
    try:
        return read_aggregate(strict_json(out), any_assessed=bool(lines))
    except ValueError as error:
        raise NoScore(f"{pack}: {error}") from None
