"""What a namespace needs is made once and shared by all runs in it."""

from __future__ import annotations

from typing import Any

import pytest

from casewarden.controller.bootstrap import bootstrap, network_context
from casewarden.core.network import NetworkContext, Owner
from casewarden.ports.kube import NETWORK_POLICIES, SERVICE_ACCOUNTS, Conflict
from casewarden.ports.memory_kube import MemoryKube

NETWORK = NetworkContext("casewarden-system")


async def owners(api: MemoryKube) -> list[set[str]]:
    return [{owner["uid"] for owner in item["metadata"]["ownerReferences"]} for item in api.objects.values()]


async def test_policies_and_account_are_made_and_shared() -> None:
    api = MemoryKube()
    for uid in ("one", "two", "one"):
        await bootstrap(api, "evals", Owner(uid, uid), NETWORK)
    assert {name for _, _, name in api.objects} == {
        "casewarden-case-relay",
        "casewarden-case-none",
        "casewarden-reader",
    }
    assert await owners(api) == [{"one", "two"}] * 3


async def test_nothing_is_written_where_all_is_there() -> None:
    api = MemoryKube()
    await bootstrap(api, "evals", Owner("one", "one"), NETWORK)
    api.calls.clear()
    await bootstrap(api, "evals", Owner("one", "one"), NETWORK)
    assert {verb for verb, _, _ in api.calls} == {"get"}


async def test_a_policy_that_somebody_opened_is_closed_again() -> None:
    api = MemoryKube()
    await bootstrap(api, "evals", Owner("one", "one"), NETWORK)
    await api.patch(NETWORK_POLICIES, "evals", "casewarden-case-none", {"spec": {"egress": [{}]}})
    await bootstrap(api, "evals", Owner("two", "two"), NETWORK)
    found: Any = await api.get(NETWORK_POLICIES, "evals", "casewarden-case-none")
    assert found["spec"]["egress"] == []


async def test_the_account_of_readers_mounts_no_token() -> None:
    api = MemoryKube()
    await bootstrap(api, "evals", Owner("one", "one"), NETWORK)
    account = await api.get(SERVICE_ACCOUNTS, "evals", "casewarden-reader")
    assert account["automountServiceAccountToken"] is False


async def test_somebody_who_is_faster_is_read_again() -> None:
    api = MemoryKube()
    await bootstrap(api, "evals", Owner("one", "one"), NETWORK)
    original, left = api.patch, [Conflict(409, "Conflict", "moved")] * 2

    async def patch(*args: Any, **rest: Any) -> Any:
        if left:
            raise left.pop()
        return await original(*args, **rest)

    api.patch = patch  # type: ignore[method-assign]
    await bootstrap(api, "evals", Owner("two", "two"), NETWORK)
    assert await owners(api) == [{"one", "two"}] * 3


def test_the_relay_is_a_service_by_name() -> None:
    found = network_context("http://casewarden-relay.release-ns.svc.cluster.local:8080", dns=False)
    assert (found.relay_namespace, found.dns) == ("release-ns", False)
    for url in ("http://127.0.0.1:8080", "http://relay:8080"):
        with pytest.raises(ValueError, match="give the relay's service"):
            network_context(url, dns=True)
