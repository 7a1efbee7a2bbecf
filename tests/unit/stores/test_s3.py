"""Addresses of buckets, what is wrong with them, and a server that is away."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from casewarden.adapters.stores import open_store
from casewarden.adapters.stores.s3 import S3Store
from casewarden.ports.store import StoreUnavailable

KEYS = {"access_key_id": "key", "secret_access_key": "secret", "region": "us-east-1"}


@pytest.mark.parametrize(
    "address",
    [
        "s3://evidence",
        "s3://evidence/team/one",
        "s3://evidence/?region=eu-1",
        "s3://e/p?endpoint=http%3A%2F%2Fs3%3A9000",
    ],
)
def test_a_bucket_with_or_without_prefix_endpoint_and_region_can_be_opened(address: str) -> None:
    store = open_store(address)
    assert isinstance(store, S3Store)
    assert address.startswith(store.address.rstrip("/"))


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("s3://", "s3://BUCKET/PREFIX"),
        ("s3:///prefix", "s3://BUCKET/PREFIX"),
        ("s3://key:secret@bucket/x", "credentials come from the environment"),
        ("s3://bucket/../other", "the prefix"),
        ("s3://bucket?endpont=x", "endpont is none of endpoint, path_style, region"),
        ("s3://bucket?endpoint=host:9000", "endpoint must be an address"),
        ("s3://bucket?path_style=yes", "path_style must be true or false"),
        ("gs://bucket", "file, memory, s3"),
    ],
)
def test_what_is_wrong_with_an_address_is_said(address: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        open_store(address)


async def test_a_server_that_is_away_is_unavailable_for_every_call() -> None:
    store = S3Store("bucket", endpoint="http://127.0.0.1:9", **KEYS, retry_config={"max_retries": 0})
    for call in (
        store.get("a", limit=9),
        store.stream("a"),
        store.put("a", b"x", limit=9),
        store.put_if_absent("a", b"x", limit=9),
        store.delete("a"),
    ):
        with pytest.raises(StoreUnavailable, match="s3://bucket/"):
            await call
    for deep in (True, False):
        with pytest.raises(StoreUnavailable):
            [entry async for entry in store.list("", deep=deep)]


class LosesAnAnswer:
    """A bucket of one object that writes it and then breaks the connection, once."""

    def __init__(self, *, somebody_was_first: bool) -> None:
        self.mark: str | None = "somebody" if somebody_was_first else None
        self.lost = somebody_was_first

    async def handle(self, request: web.Request) -> web.Response:
        if request.method == "HEAD":
            headers = {"x-amz-meta-casewarden-writer": self.mark or "", "ETag": '"1"'}
            return web.Response(headers={**headers, "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT"}, body=b"value")
        await request.read()
        assert request.headers["If-None-Match"] == "*"
        if self.mark is not None:
            return web.Response(status=412, text="<Error><Code>PreconditionFailed</Code></Error>")
        self.mark = request.headers["x-amz-meta-casewarden-writer"]
        if not self.lost:
            self.lost = True
            return web.Response(status=503)
        return web.Response(headers={"ETag": '"1"'})


@pytest.mark.parametrize("somebody_was_first", [False, True])
async def test_a_retry_after_a_lost_answer_knows_its_own_write(somebody_was_first: bool) -> None:
    server = LosesAnAnswer(somebody_was_first=somebody_was_first)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        store = S3Store("bucket", endpoint=f"http://127.0.0.1:{runner.addresses[0][1]}", **KEYS)
        async with asyncio.timeout(30):
            put = await store.put_if_absent("runs/u/sealed.json", b"value", limit=9)
    finally:
        await runner.cleanup()
    assert put.created is not somebody_was_first
