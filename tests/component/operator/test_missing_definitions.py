"""An operator whose CRDs are missing or older: it waits, says what to do, and begins when they come."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support.ports import free_port

from casewarden.adapters.kube.connection import Connection
from casewarden.api.schema import CRDS
from casewarden.core.definitions import PUBLISHED
from casewarden.startup import definitions_known


class Api:
    """An API server that tells which fields it knows; ``status`` is what it answers."""

    def __init__(self) -> None:
        self.status = 404
        self.schemas: dict[str, Any] = {}

    async def answer(self, request: web.Request) -> web.Response:
        body = {"components": {"schemas": self.schemas}} if self.status == 200 else {"reason": "x", "message": "no"}
        return web.json_response(body, status=self.status)

    def install(self) -> None:
        for make in CRDS.values():
            crd = make()
            schema = deepcopy(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
            self.schemas[f"dev.casewarden.v1alpha1.{crd['spec']['names']['kind']}"] = schema
        self.status = 200


@pytest.fixture
async def api() -> AsyncIterator[tuple[Api, Connection]]:
    api, app = Api(), web.Application()
    app.router.add_get(PUBLISHED, api.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    yield api, Connection(f"http://{host}:{port}")
    await runner.cleanup()


async def page(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session:
        while True:
            with suppress(aiohttp.ClientError):
                async with session.get(f"http://127.0.0.1:{port}{path}") as answer:
                    return answer.status, await answer.text()
            await asyncio.sleep(0.01)


async def waiting(connection: Connection, port: int, stop: asyncio.Event) -> None:
    await definitions_known(connection, "127.0.0.1", port, stop, every_seconds=0.02)


async def test_it_begins_at_once_where_all_is_there(api: tuple[Api, Connection]) -> None:
    server, connection = api
    server.install()
    await asyncio.wait_for(waiting(connection, free_port(), asyncio.Event()), 20)


async def test_it_waits_for_crds_and_says_so(api: tuple[Api, Connection], caplog: pytest.LogCaptureFixture) -> None:
    server, connection = api
    port = free_port()
    with caplog.at_level(logging.INFO):
        task = asyncio.create_task(waiting(connection, port, asyncio.Event()))
        status, text = await asyncio.wait_for(page(port, "/readyz"), 20)
        assert (status, text.startswith("the API server has no CRD evalruns.casewarden.dev")) == (503, True)
        assert (await page(port, "/healthz"))[0] == 200
        server.install()
        await asyncio.wait_for(task, 20)
    assert "kubectl apply -f crds/" in caplog.text
    assert "the CRDs are there" in caplog.text


async def test_what_it_says_follows_what_is_wrong(api: tuple[Api, Connection]) -> None:
    server, connection = api
    port, stop = free_port(), asyncio.Event()
    task = asyncio.create_task(waiting(connection, port, stop))
    await asyncio.wait_for(page(port, "/readyz"), 20)
    server.install()
    del server.schemas["dev.casewarden.v1alpha1.EvalRun"]["properties"]["status"]["properties"]["score"]
    async with asyncio.timeout(20):
        while "does not know status.score" not in (await page(port, "/readyz"))[1]:
            await asyncio.sleep(0.01)
    stop.set()
    await asyncio.wait_for(task, 20)


async def test_a_cluster_that_keeps_its_schemas_to_itself_is_believed(api: tuple[Api, Connection]) -> None:
    server, connection = api
    server.status = 403
    await asyncio.wait_for(waiting(connection, free_port(), asyncio.Event()), 20)
