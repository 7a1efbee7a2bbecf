"""The pod view ends up equal to the API server's, whatever is lost on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.fakeapi import FakeApi

from casewarden.adapters.kube.client import KubeClient, RetryBudget
from casewarden.adapters.kube.connection import Connection
from casewarden.adapters.kube.informer import Informer
from casewarden.ports.clock import SystemClock
from casewarden.ports.kube import PODS
from casewarden.ports.metrics import NoMetrics


class View:
    """A sink that keeps names and what it was told."""

    def __init__(self) -> None:
        self.pods: dict[str, str] = {}
        self.told: list[str] = []

    def changed(self, manifest: dict[str, Any]) -> None:
        self.pods[manifest["metadata"]["name"]] = manifest["metadata"]["uid"]
        self.told.append(f"+{manifest['metadata']['name']}")

    def gone(self, namespace: str, name: str, uid: str) -> None:
        assert self.pods[name] == uid
        del self.pods[name]
        self.told.append(f"-{name}")


def pod(name: str) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "evals", "labels": {"by": "us"}}, "spec": {}}


@asynccontextmanager
async def informed(api: FakeApi, **rest: Any) -> AsyncIterator[tuple[Informer, View]]:
    view = View()
    budget = RetryBudget(tries=1)
    async with KubeClient(Connection(api.url), budget=budget, silence_seconds=rest.pop("silence", 60)) as client:
        informer = Informer(
            client, PODS, None, "by=us", view, clock=SystemClock(), metrics=NoMetrics(), retry_ceiling=0.1, **rest
        )
        task = asyncio.create_task(informer.run())
        await asyncio.wait_for(informer.synced.wait(), 5)
        yield informer, view
        task.cancel()


async def until(holds: Any, seconds: float = 5) -> None:
    async with asyncio.timeout(seconds):
        while not holds():
            await asyncio.sleep(0.005)


async def test_it_shows_what_was_there_and_what_changes() -> None:
    async with FakeApi() as api:
        api.put("pods", pod("a"))
        async with informed(api) as (_, view):
            assert set(view.pods) == {"a"}
            api.put("pods", pod("b"))
            api.delete("pods", "evals", "a", now_=True)
            await until(lambda: set(view.pods) == {"b"})


async def test_pods_that_vanish_while_it_does_not_look_are_reported_gone() -> None:
    async with FakeApi() as api:
        api.put("pods", pod("a"))
        api.put("pods", pod("b"))
        async with informed(api) as (_, view):
            await until(lambda: api.watchers)
            api.lose("pods", 1)
            api.delete("pods", "evals", "a", now_=True)
            api.compact()
            await until(lambda: set(view.pods) == {"b"})
            assert view.told.count("-a") == 1


async def test_a_pod_that_was_replaced_by_another_of_its_name_is_first_gone() -> None:
    async with FakeApi() as api:
        api.put("pods", pod("a"))
        async with informed(api) as (_, view):
            await until(lambda: api.watchers)
            api.lose("pods", 2)
            api.delete("pods", "evals", "a", now_=True)
            uid = api.put("pods", pod("a"))["metadata"]["uid"]
            api.compact()
            await until(lambda: view.pods.get("a") == uid)
            assert view.told == ["+a", "-a", "+a"]


async def test_a_lost_event_is_found_by_the_next_regular_list() -> None:
    async with FakeApi() as api, informed(api, relist_seconds=0.3) as (informer, view):
        await until(lambda: api.watchers)
        api.lose("pods", 1)
        api.put("pods", pod("a"))
        await until(lambda: "a" in view.pods)
        assert informer.lists >= 2


async def test_a_poke_lists_at_once() -> None:
    async with FakeApi() as api, informed(api, relist_seconds=300) as (informer, view):
        await until(lambda: api.watchers)
        api.lose("pods", 1)
        api.put("pods", pod("a"))
        await asyncio.sleep(0.1)
        assert not view.pods
        informer.poke()
        await until(lambda: "a" in view.pods)


async def test_it_outlives_a_server_that_is_away() -> None:
    async with FakeApi() as api, informed(api) as (informer, view):
        with api.away():
            before = informer.last_turn
            api.put("pods", pod("a"))
            await until(lambda: informer.last_turn > before + 0.2)
        await until(lambda: "a" in view.pods)


async def test_it_connects_again_when_a_watch_falls_silent() -> None:
    async with FakeApi(bookmarks=60) as api, informed(api, silence=0.2) as (informer, _):
        await until(lambda: informer.lists >= 2)


@pytest.mark.parametrize("status", [500, 410, 429])
async def test_a_failing_list_is_tried_again(status: int) -> None:
    async with FakeApi() as api:
        api.put("pods", pod("a"))
        api.fail(2, status, method="GET", path="/pods")
        async with informed(api) as (_, view):
            assert set(view.pods) == {"a"}
