"""The check of network policies tells a CNI that enforces them from one that does not, and from no network at all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from casewarden.cli import network_check
from casewarden.ports.kube import NETWORK_POLICIES, PODS, Kind, NotFound


class Node:
    """A pod's log before and after its policy, and what was made and removed."""

    def __init__(self, before: str, after: str) -> None:
        self.before, self.after = before, after
        self.made: list[tuple[Kind, dict[str, Any]]] = []
        self.removed: list[Kind] = []

    async def create(self, kind: Kind, namespace: str, body: dict[str, Any]) -> dict[str, Any]:
        self.made.append((kind, body))
        return body

    async def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any]:
        return {"status": {"phase": "Running"}}

    async def pod_log(self, namespace: str, name: str, container: str, limit_bytes: int) -> bytes:
        policy = any(kind is NETWORK_POLICIES for kind, _ in self.made)
        return (self.before + (self.after if policy else "")).encode()

    async def delete(self, kind: Kind, namespace: str, name: str, *, grace_seconds: int | None = None) -> None:
        self.removed.append(kind)
        if kind is NETWORK_POLICIES and not any(made is NETWORK_POLICIES for made, _ in self.made):
            raise NotFound(404, "NotFound", "no such policy")


async def check(node: Node) -> dict[str, Any]:
    cluster: Any = SimpleNamespace(api=node, namespace="ns")
    return await network_check.check_network(cluster, "name", "casewarden.dev/selftest", "python:3")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_START_SECONDS": 0.1, "_CUT_SECONDS": 0.1, "_POLL_SECONDS": 0.01}.items():
        monkeypatch.setattr(network_check, name, value)


@pytest.mark.parametrize(
    ("before", "after", "enforced", "word"),
    [
        ("closed x\nopen\nopen\nopen\nopen\n", "closed x\n" * 5, True, "cut off"),
        ("open\n" * 5, "open\n" * 5, False, "NOT ENFORCED"),
        ("open\n" * 5, "closed x\nopen\nclosed x\nopen\n", False, "NOT ENFORCED"),
        ("closed x\n" * 5, "", None, "not known"),
    ],
    ids=["enforced", "ignored", "now and then", "no network at all"],
)
async def test_what_the_pod_could_reach_is_told(before: str, after: str, enforced: bool | None, word: str) -> None:
    node = Node(before, after)
    found = await check(node)
    assert found["enforced"] is enforced
    assert word in found["message"]
    assert set(node.removed) == {PODS, NETWORK_POLICIES}


async def test_its_pod_is_as_restricted_as_a_namespace_can_ask() -> None:
    node = Node("open\n" * 5, "closed x\n" * 5)
    await check(node)
    pod = next(body for kind, body in node.made if kind is PODS)["spec"]
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["resources"]["requests"] == container["resources"]["limits"]
