"""One suite for every ``KubeApi``: the fake that ships, and the client over a fake API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.fakeapi import FakeApi

from casewarden.adapters.kube.client import KubeClient
from casewarden.adapters.kube.connection import Connection
from casewarden.ports.kube import (
    CONFIG_MAPS,
    EVAL_RUNS,
    AlreadyExists,
    Conflict,
    Invalid,
    KubeApi,
    NotFound,
    list_all,
    selector,
)
from casewarden.ports.memory_kube import MemoryKube


@pytest.fixture(params=["memory", "client"])
async def api(request: pytest.FixtureRequest) -> AsyncIterator[KubeApi]:
    """Each of the two, with nothing in it."""
    if request.param == "memory":
        yield MemoryKube()
        return
    async with FakeApi() as server, KubeClient(Connection(server.url)) as client:
        yield client


def body(name: str, labels: dict[str, str] | None = None, **content: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "evals", "labels": labels or {}}, **content}


async def test_what_was_created_can_be_read_and_only_once_created(api: KubeApi) -> None:
    made = await api.create(CONFIG_MAPS, "evals", body("a", data={"x": "1"}))
    assert await api.get(CONFIG_MAPS, "evals", "a") == made
    assert made["metadata"]["uid"]
    with pytest.raises(AlreadyExists):
        await api.create(CONFIG_MAPS, "evals", body("a"))


async def test_a_list_has_what_the_labels_ask_for(api: KubeApi) -> None:
    await api.create(CONFIG_MAPS, "evals", body("a", {"x": "1", "y": "1"}))
    await api.create(CONFIG_MAPS, "evals", body("b", {"x": "1", "y": "2"}))
    found = await list_all(api, CONFIG_MAPS, "evals", selector({"x": "1", "y": "2"}))
    assert [item["metadata"]["name"] for item in found] == ["b"]
    assert await list_all(api, CONFIG_MAPS, "other") == []


async def test_a_guarded_patch_meets_a_newer_version(api: KubeApi) -> None:
    made = await api.create(CONFIG_MAPS, "evals", body("a", data={"x": "1"}))
    guard = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}}
    patched = await api.patch(CONFIG_MAPS, "evals", "a", {**guard, "data": {"x": None, "y": "2"}})
    assert patched["data"] == {"y": "2"}
    with pytest.raises(Conflict):
        await api.patch(CONFIG_MAPS, "evals", "a", {**guard, "data": {"z": "3"}})


async def test_what_is_immutable_stays(api: KubeApi) -> None:
    await api.create(CONFIG_MAPS, "evals", body("a", data={"x": "1"}, immutable=True))
    with pytest.raises(Invalid):
        await api.patch(CONFIG_MAPS, "evals", "a", {"data": {"x": "2"}})


async def test_the_status_and_the_rest_are_written_apart(api: KubeApi) -> None:
    await api.create(EVAL_RUNS, "evals", body("r", spec={"a": 1}))
    await api.patch(EVAL_RUNS, "evals", "r", {"spec": {"a": 2}, "status": {"b": 1}}, subresource="status")
    await api.patch(EVAL_RUNS, "evals", "r", {"spec": {"a": 3}, "status": {"b": 2}})
    found = await api.get(EVAL_RUNS, "evals", "r")
    assert (found["spec"], found["status"]) == ({"a": 3}, {"b": 1})


async def test_a_deletion_is_of_one_uid_and_takes_along_what_it_owned(api: KubeApi) -> None:
    owner = await api.create(CONFIG_MAPS, "evals", body("owner"))
    child = body("child")
    child["metadata"]["ownerReferences"] = [{"uid": owner["metadata"]["uid"], "name": "owner", "kind": "ConfigMap"}]
    await api.create(CONFIG_MAPS, "evals", child)
    with pytest.raises(Conflict):
        await api.delete(CONFIG_MAPS, "evals", "owner", uid="another")
    await api.delete(CONFIG_MAPS, "evals", "owner", uid=owner["metadata"]["uid"])
    for name in ("owner", "child"):
        with pytest.raises(NotFound):
            await api.get(CONFIG_MAPS, "evals", name)
    with pytest.raises(NotFound):
        await api.delete(CONFIG_MAPS, "evals", "owner")


async def test_a_watch_tells_every_change_after_a_version(api: KubeApi) -> None:
    first = await api.create(CONFIG_MAPS, "evals", body("a"))
    seen: list[tuple[str, str]] = []

    async def follow() -> None:
        async for event in api.watch(CONFIG_MAPS, "evals", first["metadata"]["resourceVersion"]):
            seen.extend([(event.type, event.object["metadata"]["name"])] if event.type != "BOOKMARK" else [])

    task = asyncio.create_task(follow())
    await asyncio.sleep(0.05)
    await api.create(CONFIG_MAPS, "evals", body("b"))
    await api.delete(CONFIG_MAPS, "evals", "a")
    async with asyncio.timeout(5):
        while len(seen) < 2:
            await asyncio.sleep(0.01)
    task.cancel()
    assert seen == [("ADDED", "b"), ("DELETED", "a")]
