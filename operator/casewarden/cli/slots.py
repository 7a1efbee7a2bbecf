"""``slots``: what the operator's assigner has given to whom, asked of the operator by a port-forward."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import aiohttp

from casewarden.cli.cluster import Access, Cluster, open_cluster
from casewarden.cli.failure import GOOD, Failure
from casewarden.cli.portforward import forwarded
from casewarden.cli.printing import Output, emit, print_line, print_rows
from casewarden.core.status import duration_text
from casewarden.ports.kube import PODS, Forbidden, list_all

__all__ = ["show_table", "slots"]

_OPERATOR: Final = "app.kubernetes.io/name=casewarden,app.kubernetes.io/component=operator"
_PORT: Final = 8080
_MAX_ANSWER: Final = 16 << 20
_POOLS: Final = {
    "side": "SIDE", "name": "POOL", "limit": "LIMIT", "used": "USED", "assigned": "ASSIGNED", "wanted": "WANTED",
    "kept": "KEPT",
}  # fmt: skip
_RUNS: Final = {
    "namespace": "NAMESPACE", "name": "RUN", "priority": "PRIORITY", "agents": "AGENTS", "tasks": "TASKS",
    "used": "USED", "slots": "SLOTS", "wanted": "WANTED", "waits": "WITHOUT A SLOT FOR",
}  # fmt: skip


async def slots(access: Access, output: Output) -> int:
    """Show the pools of the catalogue, and what every run in them uses, has and wants."""
    async with open_cluster(access) as cluster:
        found = await _ask(cluster)
    emit(found, output, lambda: show_table(found))
    return GOOD


def show_table(found: Mapping[str, Any]) -> None:
    """Write the two tables for people."""
    if not found["pools"]:
        print_line("the catalogue has no pools: every run may use its whole parallelism")
        return
    print_rows(_POOLS, found["pools"])
    print_line()
    if not found["runs"]:
        print_line("no run that is going on is in a pool")
        return
    rows = [
        {**run, "waits": duration_text(run["waitingSeconds"]) if run["waitingSeconds"] else None}
        for run in found["runs"]
    ]
    print_rows(_RUNS, rows)


async def _ask(cluster: Cluster) -> dict[str, Any]:
    where = cluster.system_namespace
    try:
        pods = await list_all(cluster.api, PODS, where, _OPERATOR)
    except Forbidden as error:
        raise Failure(f"slots are asked of the operator in namespace {where}: {error.message}") from None
    running = [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Running"]
    if not running:
        raise Failure(
            f"no operator runs in namespace {where}; "
            "where is the release? give --system-namespace or set CASEWARDEN_SYSTEM_NAMESPACE"
        )
    for pod in running:
        # An operator that stands by has no such page.
        if (answer := await _answer_of(cluster, pod["metadata"]["name"])) is not None:
            return answer
    raise Failure(
        f"no operator in namespace {where} tells of slots: the one that plays runs is starting, or is an older one"
    )


async def _answer_of(cluster: Cluster, pod: str) -> dict[str, Any] | None:
    timeout = aiohttp.ClientTimeout(total=30)
    async with (
        forwarded(cluster.api.connection, cluster.system_namespace, pod, _PORT) as port,
        aiohttp.ClientSession(timeout=timeout) as session,
        session.get(f"http://127.0.0.1:{port}/slots") as answer,
    ):
        body = await answer.content.read(_MAX_ANSWER)
        while not answer.content.at_eof() and len(body) < _MAX_ANSWER:
            body += await answer.content.read(_MAX_ANSWER)
        if answer.status != 200:
            return None
    try:
        found: dict[str, Any] = json.loads(body)
    except ValueError:
        raise Failure(f"operator {pod} does not answer in JSON when it is asked for slots") from None
    return found
