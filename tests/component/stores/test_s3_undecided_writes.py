"""S3 may refuse a conditional write while another is under way, before either object is there: nobody was first yet."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from casewarden.adapters.stores import s3
from casewarden.adapters.stores.s3 import S3Store
from casewarden.ports.store import StoreUnavailable


class Bucket(ThreadingHTTPServer):
    """Refuses the first ``conflicts`` writes with 409 and has no object until one is taken."""

    def __init__(self, conflicts: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.conflicts = conflicts
        self.writes = 0


class _Handler(BaseHTTPRequestHandler):
    server: Bucket

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.writes += 1
        self._answer(409 if self.server.writes <= self.server.conflicts else 200)

    def do_HEAD(self) -> None:
        self._answer(404)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("ETag", '"x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the test tells what was asked."""


@contextmanager
def bucket(conflicts: int) -> Iterator[tuple[Bucket, S3Store]]:
    with Bucket(conflicts) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        credentials = {"access_key_id": "a", "secret_access_key": "b", "region": "us-east-1"}
        yield server, S3Store("b", endpoint=endpoint, retry_config={"max_retries": 0}, **credentials)
        server.shutdown()


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "_UNDECIDED_WAIT", 0)


async def test_a_write_that_met_another_unfinished_one_is_sent_again() -> None:
    with bucket(conflicts=2) as (server, store):
        put = await store.put_if_absent("claim", b"mine", limit=10)

    assert put.created
    assert server.writes == 3


async def test_a_store_that_never_decides_is_unavailable_and_says_why() -> None:
    with bucket(conflicts=1000) as (server, store), pytest.raises(StoreUnavailable, match="refused one another"):
        await store.put_if_absent("claim", b"mine", limit=10)

    assert server.writes == s3._UNDECIDED_TRIES
