"""What every store promises. A new store is added to ``STORES`` and to nothing else."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.s3_server import ACCESS, SECRET, S3Server, s3_server

from casewarden.adapters.stores.folder import FolderStore
from casewarden.adapters.stores.memory import MemoryStore
from casewarden.adapters.stores.s3 import S3Store
from casewarden.ports.store import BadKey, NotFound, Store, TooLarge, check_key

Opener = Callable[[Path, pytest.FixtureRequest], Store]


def _in_a_bucket(folder: Path, request: pytest.FixtureRequest) -> Store:
    server: S3Server = request.getfixturevalue("server")
    bucket = server.bucket(f"b-{uuid.uuid4().hex}")
    return S3Store(bucket, "evidence/of-tests", **CREDENTIALS, endpoint=server.endpoint)


CREDENTIALS = {"access_key_id": ACCESS, "secret_access_key": SECRET, "region": "us-east-1"}
STORES: dict[str, Opener] = {
    "memory": lambda folder, request: MemoryStore(),
    "folder": lambda folder, request: FolderStore(folder / "store"),
    "s3": _in_a_bucket,
}
BAD_KEYS = [
    "",
    "/",
    "/etc/passwd",
    "..",
    "a/..",
    "../a",
    "a//b",
    "a/",
    "a/./b",
    ".hidden",
    "a/.tmp/b",
    "a\\b",
    "a\x00b",
]
BAD_KEYS += ["a b", "ä", "a\n", "x" * 201, "/".join("abcdefghijklm")]


# The S3 server may have to be built first.
pytestmark = pytest.mark.timeout(2400)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    made = STORES[request.param](tmp_path, request)
    yield made
    await made.close()


async def pieces(*parts: bytes, error: Exception | None = None) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    if error is not None:
        raise error


async def keys(store: Store, prefix: str = "", *, deep: bool = True) -> list[str]:
    return sorted([entry.key async for entry in store.list(prefix, deep=deep)])


async def test_the_first_put_if_absent_makes_the_value_and_later_ones_leave_it(store: Store) -> None:
    first = await store.put_if_absent("a/b", b"one", limit=10)
    second = await store.put_if_absent("a/b", b"two", limit=10)

    assert (first.created, first.sha256, first.size) == (True, hashlib.sha256(b"one").hexdigest(), 3)
    assert (second.created, second.sha256) == (False, hashlib.sha256(b"two").hexdigest())
    assert await store.get("a/b", limit=10) == b"one"


async def test_of_many_concurrent_puts_exactly_one_is_told_that_it_was_first(store: Store) -> None:
    values = [b"value-%d" % number for number in range(40)]
    puts = await asyncio.gather(*(store.put_if_absent("race/x", pieces(v[:3], v[3:]), limit=100) for v in values))

    winners = [value for value, put in zip(values, puts, strict=True) if put.created]
    assert len(winners) == 1
    assert await store.get("race/x", limit=100) == winners[0]


async def test_equal_values_too_have_one_winner(store: Store) -> None:
    puts = await asyncio.gather(*(store.put_if_absent("race/y", b"same", limit=100) for _ in range(20)))

    assert sum(put.created for put in puts) == 1


async def test_put_replaces(store: Store) -> None:
    await store.put("a", b"one", limit=10)
    assert (await store.put("a", b"two", limit=10)).created
    assert await store.get("a", limit=10) == b"two"


async def test_a_streamed_value_comes_back_whole_and_in_pieces(store: Store) -> None:
    data = bytes(range(256)) * 12_000
    put = await store.put_if_absent("big/one", pieces(data[:5], data[5:2_000_000], data[2_000_000:]), limit=len(data))

    assert put.sha256 == hashlib.sha256(data).hexdigest()
    assert put.size == len(data)
    assert b"".join([piece async for piece in await store.stream("big/one")]) == data


async def test_an_empty_value_is_a_value(store: Store) -> None:
    await store.put_if_absent("empty", b"", limit=0)

    assert await store.get("empty", limit=0) == b""
    assert [piece async for piece in await store.stream("empty")] == []


@pytest.mark.parametrize("body", [b"12345", "stream"])
async def test_a_value_over_the_limit_is_refused_and_leaves_nothing(store: Store, body: bytes | str) -> None:
    with pytest.raises(TooLarge):
        await store.put_if_absent("a/big", pieces(b"123", b"45") if body == "stream" else b"12345", limit=4)

    assert await keys(store) == []


async def test_a_body_that_breaks_off_leaves_nothing_and_its_error_passes_on(store: Store) -> None:
    with pytest.raises(ConnectionResetError):
        await store.put_if_absent("a/half", pieces(b"123", error=ConnectionResetError("gone")), limit=100)

    assert await keys(store) == []
    assert (await store.put_if_absent("a/half", b"whole", limit=100)).created


async def test_a_failed_replacement_leaves_the_old_value(store: Store) -> None:
    await store.put("a", b"old", limit=10)
    with pytest.raises(ConnectionResetError):
        await store.put("a", pieces(b"ne", error=ConnectionResetError("gone")), limit=10)

    assert await store.get("a", limit=10) == b"old"


async def test_what_is_not_there_is_not_found(store: Store) -> None:
    await store.put("a/b", b"x", limit=10)
    for key in ("missing", "a/missing", "a"):
        with pytest.raises(NotFound):
            await store.get(key, limit=10)
        with pytest.raises(NotFound):
            await store.stream(key)


async def test_get_refuses_what_is_over_the_readers_limit(store: Store) -> None:
    await store.put("a", b"12345", limit=10)
    with pytest.raises(TooLarge):
        await store.get("a", limit=4)


async def test_a_deep_listing_has_every_key_below_a_prefix_with_its_size(store: Store) -> None:
    for key in ("runs/u1/1/a/0/sealed.json", "runs/u1/meta.json", "runs/u10/meta.json", "other"):
        await store.put(key, key.encode(), limit=100)

    assert await keys(store, "runs/u1/") == ["runs/u1/1/a/0/sealed.json", "runs/u1/meta.json"]
    assert len(await keys(store)) == 4
    assert [entry.size async for entry in store.list("runs/u10/")] == [len("runs/u10/meta.json")]
    assert await keys(store, "nothing/") == []


async def test_a_shallow_listing_has_folders_once(store: Store) -> None:
    for key in ("runs/u1/1/a/0/sealed.json", "runs/u1/2/a/0/sealed.json", "runs/u1/meta.json", "runs/u2/meta.json"):
        await store.put(key, b"x", limit=100)

    assert await keys(store, "runs/", deep=False) == ["runs/u1/", "runs/u2/"]
    assert await keys(store, "runs/u1/", deep=False) == ["runs/u1/1/", "runs/u1/2/", "runs/u1/meta.json"]


async def test_a_long_listing_is_complete(store: Store) -> None:
    for number in range(1203):
        await store.put(f"many/{number:04}", b"", limit=1)

    assert await keys(store, "many/") == [f"many/{number:04}" for number in range(1203)]


async def test_delete_removes_and_is_silent_where_there_is_nothing(store: Store) -> None:
    await store.put("a/b/c", b"x", limit=10)
    await store.delete("a/b/c")
    await store.delete("a/b/c")

    assert await keys(store) == []
    assert (await store.put_if_absent("a/b/c", b"y", limit=10)).created


async def test_puts_and_deletes_in_one_folder_do_not_disturb_each_other(store: Store) -> None:
    async def one(number: int) -> bool:
        put = await store.put_if_absent(f"shared/folder/{number}", b"x", limit=10)
        await store.delete(f"shared/folder/{number}")
        return put.created

    assert all(await asyncio.gather(*(one(number) for number in range(60))))
    assert await keys(store) == []


@pytest.mark.parametrize("key", BAD_KEYS)
async def test_what_is_no_key_is_refused_by_every_call(store: Store, key: str) -> None:
    with pytest.raises(BadKey):
        await store.put_if_absent(key, b"x", limit=10)
    with pytest.raises(BadKey):
        await store.put(key, b"x", limit=10)
    with pytest.raises(BadKey):
        await store.get(key, limit=10)
    with pytest.raises(BadKey):
        await store.stream(key)
    with pytest.raises(BadKey):
        await store.delete(key)
    assert await keys(store) == []


async def test_a_prefix_that_leaves_the_store_is_refused(store: Store) -> None:
    for prefix in ("../", "/", "a/../../"):
        with pytest.raises(BadKey):
            await keys(store, prefix)


@given(st.text(max_size=30))
def test_an_accepted_key_stays_below_its_root(text: str) -> None:
    try:
        key = check_key(text)
    except BadKey:
        return
    assert Path("/root", key).resolve().is_relative_to("/root")
    assert not any(part.startswith(".") for part in key.split("/"))
