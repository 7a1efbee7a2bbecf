"""The operator's client against the real relay, and against one that is away, slow or lies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from casewarden.adapters.relay_client import RelayClient
from casewarden.ports.clock import SystemClock
from casewarden.ports.evidence import EvidenceRefused, EvidenceUnavailable


class Hasty(SystemClock):
    """Does not wait between tries."""

    async def sleep(self, seconds: float) -> None:
        await super().sleep(0)


class Token:
    def __init__(self, *values: str) -> None:
        self._values = list(values)

    async def header(self, *, fresh: bool = False) -> str:
        if fresh and len(self._values) > 1:
            self._values.pop(0)
        return f"Bearer {self._values[0]}"


@asynccontextmanager
async def answering(
    *answers: tuple[int, Any], token: Token | None = None
) -> AsyncIterator[tuple[RelayClient, list[Any]]]:
    """A client and the requests that arrived, at a server that gives these answers, the last one again and again."""
    left, seen = list(answers), []

    async def handle(request: web.Request) -> web.Response:
        seen.append((request.method, request.path, request.headers.get("Authorization"), await request.read()))
        status, body = left.pop(0) if len(left) > 1 else left[0]
        return (
            web.Response(body=body, status=status)
            if isinstance(body, bytes)
            else web.json_response(body, status=status)
        )

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    async with TestServer(app) as server, RelayClient(str(server.make_url("/")), token, clock=Hasty()) as client:
        yield client, seen


async def test_a_seal_is_looked_up_and_none_is_none() -> None:
    async with answering((200, {"status": "passed"}), (404, {"reason": "NotFound"})) as (client, seen):
        assert await client.sealed("u", 17, "a.b", 0) == {"status": "passed"}
        assert await client.sealed("u", 17, "a.b", 0) is None
        assert seen[0][:2] == ("GET", "/v1/runs/u/cases/17/a.b/0/sealed")


async def test_a_busy_relay_is_asked_again() -> None:
    async with answering((503, {}), (502, b"proxy"), (429, {}), (201, {"digest": "d"})) as (client, seen):
        await client.put_file("u", "run.json", b"{}")
        assert [item[3] for item in seen] == [b"{}"] * 4


async def test_a_relay_that_stays_away_is_unavailable() -> None:
    async with answering((503, {"reason": "StoreUnavailable", "error": "disk"})) as (client, _):
        with pytest.raises(EvidenceUnavailable, match="disk"):
            await client.sealed("u", 17, "a", 0)
    async with RelayClient("http://127.0.0.1:1", None, clock=Hasty()) as client:
        with pytest.raises(EvidenceUnavailable, match=r"127\.0\.0\.1:1"):
            await client.index("u")


async def test_a_refusal_is_final_and_in_the_relays_words() -> None:
    async with answering((409, {"reason": "exists", "error": "other content"})) as (client, seen):
        with pytest.raises(EvidenceRefused, match="exists: other content"):
            await client.put_file("u", "plan.json", b"x")
        assert len(seen) == 1


async def test_a_token_that_was_rotated_is_read_again() -> None:
    async with answering((401, {}), (200, b'{"kind": "claim"}\n{"kind": "sealed"}\n'), token=Token("old", "new")) as (
        client,
        seen,
    ):
        assert [line["kind"] for line in await client.index("u")] == ["claim", "sealed"]
        assert [item[2] for item in seen] == ["Bearer old", "Bearer new"]


async def test_a_workspace_is_found_without_reading_it() -> None:
    async with answering((200, b"x" * 100_000), (404, {})) as (client, seen):
        assert await client.has_workspace("evals", "sha256:" + "a" * 64)
        assert not await client.has_workspace("evals", "sha256:" + "b" * 64)
        assert seen[0][1] == "/v1/workspaces/evals/" + "a" * 64


@pytest.mark.parametrize("body", [b"no json", b"[1]", b'"text"'])
async def test_an_answer_that_is_no_seal_is_never_taken_for_none(body: bytes) -> None:
    async with answering((200, body)) as (client, _):
        with pytest.raises(EvidenceUnavailable, match="no JSON object"):
            await client.sealed("u", 17, "a", 0)


async def test_an_answer_without_end_is_refused() -> None:
    async with answering((200, b"x" * (2 << 20))) as (client, _):
        with pytest.raises(EvidenceRefused, match="more than"):
            await client.sealed("u", 17, "a", 0)
