"""The ledger: rows once, in order, guarded; what is missing or changed is noticed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewarden.controller.identity import RunIdentity
from casewarden.controller.ledger import Ledger, LedgerBroken, LedgerMoved
from casewarden.core.model import AttemptKey, CaseKey, LedgerRow
from casewarden.ports.kube import CONFIG_MAPS
from casewarden.ports.memory_kube import MemoryKube

RUN = RunIdentity("evals", "one", "uid-1")


def row(number: int, error: str | None = None) -> LedgerRow:
    key = AttemptKey(CaseKey(17, f"case-{number:04d}", 0), 1)
    return LedgerRow(
        key, "verdict", "passed", "1", error=error, digest="d" * 64, seconds=1.5, pod_uid="p", ended_at=2.0
    )


def shards(api: MemoryKube) -> list[dict[str, Any]]:
    return [item for (plural, _, _), item in sorted(api.objects.items()) if plural == CONFIG_MAPS.plural]


async def a_ledger(api: MemoryKube | None = None, rows: list[LedgerRow] | None = None) -> Ledger:
    ledger = Ledger(api or MemoryKube(), RUN)
    await ledger.load()
    await ledger.write(rows or [])
    return ledger


async def test_what_was_written_is_read_back_in_order_with_the_same_digest() -> None:
    api = MemoryKube()
    first = await a_ledger(api, [row(3), row(1)])
    await first.write([row(2)])
    second = await a_ledger(api)
    assert second.rows == first.rows == [row(3), row(1), row(2)]
    assert second.digest == first.digest != ""
    second.check(3, first.digest)


async def test_a_row_is_written_once() -> None:
    ledger = await a_ledger(rows=[row(1)])
    assert await ledger.write([row(1), row(2)]) == (row(2),)
    assert ledger.rows == [row(1), row(2)]


async def test_a_shard_belongs_to_its_run_and_is_found_by_its_labels() -> None:
    api = MemoryKube()
    await a_ledger(api, [row(1)])
    (shard,) = shards(api)
    assert shard["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
    other = Ledger(api, RunIdentity("evals", "one", "uid-2"))
    await other.load()
    assert other.rows == []


async def test_one_write_sends_what_is_new_only() -> None:
    api = MemoryKube()
    ledger = await a_ledger(api, [row(number) for number in range(50)])
    await ledger.write([row(99)])
    assert [verb for verb, _, _ in api.calls] == ["list", "create", "patch"]
    assert len(shards(api)[0]["data"]) == 2


async def test_a_full_shard_is_followed_by_another() -> None:
    api = MemoryKube()
    big = [row(number, "x" * 4000) for number in range(400)]
    ledger = await a_ledger(api, big)
    assert len(shards(api)) > 2
    assert all(len(str(item["data"])) < 1 << 20 for item in shards(api))
    again = await a_ledger(api)
    assert (again.rows, again.digest) == (big, ledger.digest)


async def test_an_operator_that_lost_its_place_overwrites_nothing() -> None:
    api = MemoryKube()
    stale, fresh = await a_ledger(api, [row(1)]), await a_ledger(api)
    await fresh.write([row(2)])
    with pytest.raises(LedgerMoved):
        await stale.write([row(3)])
    await stale.load()
    assert stale.rows == [row(1), row(2)]


async def test_two_operators_that_both_begin_do_not_make_two_first_shards() -> None:
    api = MemoryKube()
    one, other = await a_ledger(api), await a_ledger(api)
    await one.write([row(1)])
    with pytest.raises(LedgerMoved):
        await other.write([row(2)])


async def test_missing_and_changed_rows_are_noticed() -> None:
    api = MemoryKube()
    ledger = await a_ledger(api, [row(1), row(2)])
    count, digest = len(ledger.rows), ledger.digest
    (shard,) = shards(api)
    changed = shard["data"]["batch-000000"].replace('"passed"', '"failed"', 1)
    await api.patch(CONFIG_MAPS, "evals", shard["metadata"]["name"], {"data": {"batch-000000": changed}})
    await ledger.load()
    with pytest.raises(LedgerBroken, match="not those"):
        ledger.check(count, digest)
    await api.delete(CONFIG_MAPS, "evals", shard["metadata"]["name"])
    await ledger.load()
    with pytest.raises(LedgerBroken, match="0 rows where the status counts 2"):
        ledger.check(count, digest)


async def test_rows_beyond_those_that_the_status_counts_are_no_fault() -> None:
    ledger = await a_ledger(rows=[row(1)])
    count, digest = len(ledger.rows), ledger.digest
    await ledger.write([row(2)])
    ledger.check(count, digest)


async def test_a_gap_between_shards_is_noticed_and_can_be_mended() -> None:
    api = MemoryKube()
    big = [row(number, "x" * 4000) for number in range(400)]
    ledger = await a_ledger(api, big)
    count, digest = len(ledger.rows), ledger.digest
    name = shards(api)[0]["metadata"]["name"]
    await api.delete(CONFIG_MAPS, "evals", name)
    await ledger.load()
    with pytest.raises(LedgerBroken, match="are left of the ledger"):
        ledger.check(count, digest)
    await ledger.mend([item for item in big if item not in ledger.rows])
    again = await a_ledger(api)
    assert sorted(again.rows, key=lambda item: item.key) == big
    again.check(len(again.rows), again.digest)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sets(st.integers(0, 40), max_size=6), max_size=8))
async def test_any_sequence_of_writes_reads_back_as_itself(writes: list[set[int]]) -> None:
    api = MemoryKube()
    ledger = await a_ledger(api)
    for numbers in writes:
        await ledger.write([row(number) for number in sorted(numbers)])
    again = await a_ledger(api)
    assert (again.rows, again.digest) == (ledger.rows, ledger.digest)
    assert len(again.keys) == len(again.rows) == len(set().union(*writes))
