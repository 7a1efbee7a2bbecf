"""What the API client does when the API server is slow, busy, broken or away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.fakeapi import FakeApi

from casewarden.adapters.kube.client import KubeClient, RetryBudget
from casewarden.adapters.kube.connection import Connection
from casewarden.ports.kube import (
    CONFIG_MAPS,
    PODS,
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    TooManyRequests,
    Unavailable,
    list_all,
)
from casewarden.ports.metrics import Metric, RecordedMetrics


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "evals", "labels": labels}, "spec": {}}


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "metadata": {"name": name, "namespace": "evals"}, "data": data}


@asynccontextmanager
async def client_of(api: FakeApi, **rest: Any) -> AsyncIterator[KubeClient]:
    budget = rest.pop("budget", RetryBudget(tries=4, seconds=5, base=0.01))
    async with KubeClient(Connection(api.url), budget=budget, **rest) as client:
        yield client


async def test_an_object_is_created_read_patched_and_deleted() -> None:
    async with FakeApi() as api, client_of(api) as client:
        await client.create(CONFIG_MAPS, "evals", config_map("a", x="1"))
        patched = await client.patch(CONFIG_MAPS, "evals", "a", {"data": {"x": None, "y": "2"}})
        assert patched["data"] == {"y": "2"}
        assert await client.get(CONFIG_MAPS, "evals", "a") == patched
        await client.delete(CONFIG_MAPS, "evals", "a", uid=patched["metadata"]["uid"])
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAPS, "evals", "a")


async def test_a_long_list_comes_in_pages_and_only_what_the_labels_ask_for() -> None:
    async with FakeApi() as api, client_of(api) as client:
        for number in range(1203):
            api.put("pods", pod(f"p{number}", team="red" if number % 400 else "blue"))
        pages = [len(items) async for items, _ in client.pages(PODS, None)]
        assert pages == [*([200] * 6), 3]
        assert [item["metadata"]["name"] for item in await list_all(client, PODS, "evals", "team=blue")] == [
            "p0", "p400", "p800", "p1200",
        ]  # fmt: skip


async def test_answers_become_the_errors_of_the_port() -> None:
    async with FakeApi(grace=5) as api, client_of(api) as client:
        first = await client.create(PODS, "evals", pod("a"))
        with pytest.raises(AlreadyExists, match="already exists"):
            await client.create(PODS, "evals", pod("a"))
        with pytest.raises(Conflict):
            await client.delete(PODS, "evals", "a", uid="another")
        await client.delete(PODS, "evals", "a", uid=first["metadata"]["uid"])
        with pytest.raises(AlreadyExists, match="being deleted"):
            await client.create(PODS, "evals", pod("a"))
        api.put("configmaps", config_map("c", x="1") | {"immutable": True})
        with pytest.raises(Invalid, match="immutable"):
            await client.patch(CONFIG_MAPS, "evals", "c", {"data": {"x": "2"}})
        with pytest.raises(Conflict, match="modified"):
            await client.patch(CONFIG_MAPS, "evals", "c", {"metadata": {"resourceVersion": "1"}, "labels": {}})


async def test_quota_and_a_namespace_that_is_going_are_told_apart() -> None:
    async with FakeApi() as api, client_of(api) as client:
        api.fail(1, 403, reason="Forbidden", message='pods "a" is forbidden: exceeded quota: q, requested: pods=1')
        with pytest.raises(Forbidden) as quota:
            await client.create(PODS, "evals", pod("a"))
        assert (quota.value.is_quota, quota.value.is_terminating) == (True, False)
        api.delete_namespace("evals")
        with pytest.raises(Forbidden) as terminating:
            await client.create(PODS, "evals", pod("a"))
        assert (terminating.value.is_quota, terminating.value.is_terminating) == (False, True)


@pytest.mark.parametrize(("status", "kind"), [(429, TooManyRequests), (500, Unavailable), (503, Unavailable)])
async def test_a_busy_or_broken_server_is_asked_again_until_the_budget_is_spent(status: int, kind: type) -> None:
    async with FakeApi() as api, client_of(api) as client:
        api.fail(3, status, method="POST")
        assert (await client.create(PODS, "evals", pod("a")))["metadata"]["name"] == "a"
        api.fail(4, status, method="POST")
        with pytest.raises(kind):
            await client.create(PODS, "evals", pod("b"))
        assert len(api.requests) == 4 + 4


async def test_a_create_whose_answer_was_lost_is_reported_as_existing() -> None:
    async with FakeApi() as api, client_of(api) as client:
        api.fail(1, 504, method="POST", after=True)
        with pytest.raises(AlreadyExists):
            await client.create(PODS, "evals", pod("a"))
        assert len(api.created) == 1


async def test_retry_after_holds_every_request_back() -> None:
    async with FakeApi() as api, client_of(api) as client:
        api.put("pods", pod("a"))
        api.fail(1, 429, method="POST", retry_after="0.4")
        loop = asyncio.get_running_loop()
        start = loop.time()
        create = asyncio.create_task(client.create(PODS, "evals", pod("b")))
        await asyncio.sleep(0.1)
        await client.get(PODS, "evals", "a")
        assert loop.time() - start >= 0.4
        await create


async def test_a_throttled_create_is_counted() -> None:
    metrics = RecordedMetrics()
    async with FakeApi() as api, client_of(api, metrics=metrics) as client:
        api.fail(1, 429, method="POST")
        await client.create(PODS, "evals", pod("b"))
    assert metrics.totals[Metric.CREATES_THROTTLED, "cause=rate"] == 1
    assert metrics.totals[Metric.API_REQUESTS, "code=2xx", "verb=POST"] == 1


async def test_a_server_that_is_away_is_unavailable_and_answers_again_later() -> None:
    async with FakeApi() as api, client_of(api) as client:
        api.put("pods", pod("a"))
        with api.away(), pytest.raises(Unavailable, match="GET"):
            await client.get(PODS, "evals", "a")
        assert (await client.get(PODS, "evals", "a"))["metadata"]["name"] == "a"


async def test_a_watch_tells_what_happened_since_a_version() -> None:
    async with FakeApi(bookmarks=0.05) as api, client_of(api) as client:
        api.put("pods", pod("a", team="red"))
        version = str(api.version)
        api.put("pods", pod("b", team="red"))
        api.put("pods", pod("c", team="blue"))
        api.delete("pods", "evals", "a", now_=True)
        seen = []
        async for event in client.watch(PODS, None, version, "team=red"):
            if event.type == "BOOKMARK":
                break
            seen.append((event.type, event.object["metadata"]["name"]))
        assert seen == [("ADDED", "b"), ("DELETED", "a")]


async def test_a_watch_from_a_forgotten_version_is_gone() -> None:
    async with FakeApi() as api, client_of(api) as client:
        api.put("pods", pod("a"))
        api.compact()
        with pytest.raises(Gone):
            async for _ in client.watch(PODS, None, "1"):
                pass


async def test_a_watch_that_falls_silent_is_given_up() -> None:
    async with FakeApi(bookmarks=60) as api, client_of(api, silence_seconds=0.2) as client:
        with pytest.raises(Unavailable):
            async for _ in client.watch(PODS, None, "1"):
                pass


async def test_a_line_of_a_megabyte_is_read_whole() -> None:
    async with FakeApi() as api, client_of(api) as client:
        api.put("configmaps", config_map("big", x="y" * 1_000_000))
        async for event in client.watch(CONFIG_MAPS, None, "1"):
            assert len(event.object["data"]["x"]) == 1_000_000
            break
