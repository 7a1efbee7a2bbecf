"""What a run has counted: a row per attempt, in ConfigMaps of the run's, written once and only at the end.

A shard has batches, each a key of its own, so a write sends what is new and not what was there. Every write is guarded
by the shard's resourceVersion: an operator that lost its place cannot overwrite anything, it gets ``LedgerMoved``. The
rolling digest over all rows goes into the status, and with it a shard that somebody deleted or changed is noticed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from casewarden.controller.identity import RunIdentity
from casewarden.core.evidence import result_row, row_of_result
from casewarden.core.model import AttemptKey, LedgerRow
from casewarden.ports.kube import (
    CONFIG_MAPS,
    AlreadyExists,
    Conflict,
    KubeApi,
    Manifest,
    NotFound,
    list_all,
    selector,
)
from casewarden_sdk.canonical import canonical

__all__ = ["Ledger", "LedgerBroken", "LedgerMoved"]

_BATCH_BYTES = 64 << 10
_SHARD_BYTES = 600 << 10


class LedgerMoved(Exception):
    """Somebody else, or an earlier try of this very write, changed the ledger: load it again, then decide anew."""


class LedgerBroken(Exception):
    """The ledger is not what the status says that it was; the message says in what."""


class Ledger:
    """The rows of one run. Load it before anything else, and after ``LedgerMoved``."""

    def __init__(self, api: KubeApi, run: RunIdentity) -> None:
        self._api, self._run = api, run
        self._digest = ""
        self._shards: list[_Shard] = []
        self.is_loaded = False
        self.rows: list[LedgerRow] = []
        self.keys: set[AttemptKey] = set()

    @property
    def digest(self) -> str:
        """The rolling digest over all rows, an empty string for none."""
        return self._digest

    async def load(self) -> None:
        """Read every shard from the newest state; ``LedgerBroken`` for what no ledger of ours looks like."""
        labels = selector(self._run.labels("ledger"))
        found = [_Shard(item) for item in await list_all(self._api, CONFIG_MAPS, self._run.namespace, labels)]
        self._shards = sorted(found, key=lambda shard: shard.number)
        self._digest, self.rows, self.keys = "", [], set()
        for shard in self._shards:
            self._count(shard.rows())
        self.is_loaded = True

    def check(self, rows: int, digest: str) -> None:
        """Compare with what the status says; ``LedgerBroken`` where rows are missing or others than they were."""
        if [shard.number for shard in self._shards] != list(range(len(self._shards))):
            raise LedgerBroken(f"shards {[shard.number for shard in self._shards]} are left of the ledger")
        if len(self.rows) < rows:
            raise LedgerBroken(f"the ledger has {len(self.rows)} rows where the status counts {rows}")
        if _roll("", self.rows[:rows]) != digest:
            raise LedgerBroken(f"the first {rows} rows of the ledger are not those that the status counted")

    async def mend(self, rows: Iterable[LedgerRow]) -> None:
        """Write rows that were lost, in shards whose numbers are missing; ``LedgerMoved`` where somebody else does."""
        missing = list(rows)
        numbers = [shard.number for shard in self._shards]
        gaps = [number for number in range(max(numbers, default=0)) if number not in numbers]
        for place, number in enumerate(gaps):
            share = missing if place == len(gaps) - 1 else []
            text = "".join(canonical(result_row(row)) + "\n" for row in share)
            body = self._run.config_map(f"ledger-{number}", "ledger", data={_batch_key(0): text})
            try:
                await self._api.create(CONFIG_MAPS, self._run.namespace, body)
            except AlreadyExists as error:
                raise LedgerMoved(str(error)) from None
        await self.load()
        await self.write(missing)

    async def write(self, rows: Iterable[LedgerRow]) -> tuple[LedgerRow, ...]:
        """Append the rows that are not there yet and return them; ``LedgerMoved`` where the ledger has moved on."""
        new = [row for row in rows if row.key not in self.keys]
        for batch in _batches(new):
            await self._append(batch)
            self._count(batch)
        return tuple(new)

    async def _append(self, batch: Sequence[LedgerRow]) -> None:
        text = "".join(canonical(result_row(row)) + "\n" for row in batch)
        shard = self._shards[-1] if self._shards else None
        try:
            if shard is None or shard.size + len(text) > _SHARD_BYTES:
                number = 0 if shard is None else shard.number + 1
                body = self._run.config_map(f"ledger-{number}", "ledger", data={_batch_key(0): text})
                self._shards.append(_Shard(await self._api.create(CONFIG_MAPS, self._run.namespace, body)))
                return
            patch = {"metadata": {"resourceVersion": shard.version}, "data": {_batch_key(len(shard.data)): text}}
            self._shards[-1] = _Shard(await self._api.patch(CONFIG_MAPS, self._run.namespace, shard.name, patch))
        except (AlreadyExists, Conflict, NotFound) as error:
            raise LedgerMoved(str(error)) from None

    def _count(self, rows: Iterable[LedgerRow]) -> None:
        for row in rows:
            if row.key in self.keys:
                raise LedgerBroken(f"attempt {row.key} is in the ledger twice")
            self.rows.append(row)
            self.keys.add(row.key)
            self._digest = _roll(self._digest, (row,))


class _Shard:
    def __init__(self, manifest: Manifest) -> None:
        meta = manifest["metadata"]
        self.name: str = meta["name"]
        self.version: str = meta["resourceVersion"]
        self.number = int(self.name.rpartition("-")[2])
        self.data: dict[str, str] = manifest.get("data") or {}
        self.size = sum(len(text) for text in self.data.values())

    def rows(self) -> list[LedgerRow]:
        if sorted(self.data) != [_batch_key(number) for number in range(len(self.data))]:
            raise LedgerBroken(f"{self.name} has batches {sorted(self.data)}")
        try:
            return [
                row_of_result(json.loads(line)) for key in sorted(self.data) for line in self.data[key].splitlines()
            ]
        except (ValueError, KeyError, TypeError) as error:
            raise LedgerBroken(f"{self.name} has a row that is none: {error}") from None


def _batch_key(number: int) -> str:
    return f"batch-{number:06d}"


def _batches(rows: Sequence[LedgerRow]) -> Iterable[list[LedgerRow]]:
    batch: list[LedgerRow] = []
    size = 0
    for row in rows:
        length = len(canonical(result_row(row))) + 1
        if batch and size + length > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += length
    if batch:
        yield batch


def _roll(digest: str, rows: Iterable[LedgerRow]) -> str:
    for row in rows:
        digest = hashlib.sha256(f"{digest}{canonical(result_row(row))}".encode()).hexdigest()
    return digest
