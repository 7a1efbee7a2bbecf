"""The cluster of the benchmarks that need one: `CLUSTER_NAME`, default `bench`, with the release on it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewarden.adapters.kube.client import KubeClient
from casewarden.adapters.kube.connection import Connection, connect
from casewarden.adapters.kube.limiter import Limiter
from casewarden.api.catalogue import Catalogue
from casewarden.api.conditions import is_true
from casewarden.ports.clock import SystemClock
from casewarden.ports.kube import CONFIG_MAPS, EVAL_RUNS, Kind, NotFound
from casewarden.wiring import read_catalogue
from devkit import cluster, release, targets
from devkit.settings import Cluster

NAMESPACES = Kind("v1", "namespaces", "Namespace")
DEPLOYMENTS = Kind("apps/v1", "deployments", "Deployment")
JOBS = Kind("batch/v1", "jobs", "Job")
SYSTEM, OPERATOR = release.NAMESPACE, "casewarden-operator"
RUN_SECONDS = 3600.0
FINISHES = """\
import sys, time
for line in sys.stdin:
    time.sleep({seconds})
    print('{{"finish": true}}', flush=True)
"""
FAMILIES = 4
"""Of support-routing, which has so many cases for each seed."""


@dataclass(frozen=True)
class Bench:
    """A namespace of the benchmark's own on a cluster that is up. ``settings`` tells the cluster's folders."""

    settings: Cluster
    connection: Connection
    api: KubeClient
    namespace: str

    async def catalogue(self, folder: Path) -> tuple[Path, Catalogue]:
        """Return the release's catalogue, as a file and as it is read."""
        found = await self.api.get(CONFIG_MAPS, SYSTEM, "casewarden-catalogue")
        file = folder / "catalogue.yaml"
        file.write_text(found["data"]["catalogue.yaml"])
        return file, read_catalogue(str(file))

    async def apply_run(self, name: str, cases: int, seconds: float | None = None, **spec: Any) -> dict[str, Any]:
        """Create a run of so many cases, a multiple of 4, whose candidate thinks for so long; None: the null agent."""
        seeds = max(n for n in range(1, 51) if cases % (FAMILIES * n) == 0)
        repeats = cases // (FAMILIES * seeds)
        candidate: dict[str, Any] = {"control": "null-agent"}
        if seconds is not None:
            files = {"main.py": FINISHES.format(seconds=seconds)}
            program = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": files}
            await self.api.create(CONFIG_MAPS, self.namespace, program)
            candidate = {"program": {"workspace": {"configMap": name}}}
        whole: dict[str, Any] = {"task": {"name": "support-routing"}, "seeds": {"values": list(range(1, seeds + 1))},
                 "repeats": repeats, "candidate": candidate} | spec  # fmt: skip
        body = {"apiVersion": EVAL_RUNS.api_version, "kind": EVAL_RUNS.name, "metadata": {"name": name}, "spec": whole}
        return await self.api.create(EVAL_RUNS, self.namespace, body)

    async def finished(self, name: str, seconds: float = RUN_SECONDS) -> dict[str, Any]:
        """Wait until a run is over and return its status; it must have been assessed."""

        async def over() -> dict[str, Any] | None:
            status = (await self.api.get(EVAL_RUNS, self.namespace, name)).get("status") or {}
            return status if is_true(status.get("conditions") or (), "Finished") else None

        status: dict[str, Any] = await until(over, seconds, f"run {name} to finish")
        if not status.get("valid"):
            raise RuntimeError(f"run {name} is not valid: {status.get('conditions')}")
        return status

    async def scale_operator(self, replicas: int) -> None:
        """Stop the release's operator, or start it again, and wait until that is so."""
        await self.api.patch(DEPLOYMENTS, SYSTEM, OPERATOR, {"spec": {"replicas": replicas}})

        async def so() -> bool:
            status = (await self.api.get(DEPLOYMENTS, SYSTEM, OPERATOR)).get("status") or {}
            return bool(status.get("replicas", 0) == replicas == status.get("readyReplicas", 0))

        await until(so, 120, f"{replicas} operators")


async def until(probe: Callable[[], Awaitable[Any]], seconds: float, what: str, pause: float = 0.25) -> Any:
    """Ask until the answer is something true, for so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answer := await probe():
            return answer
        await asyncio.sleep(pause)
    raise TimeoutError(f"waited {seconds:g} s for {what}")


@asynccontextmanager
async def a_bench(name: str) -> AsyncIterator[Bench]:
    """Bring the cluster and the release up, unless they are, and make a namespace that goes at the end."""
    os.environ.setdefault("CLUSTER_NAME", "bench")
    settings = Cluster.from_environ()
    if cluster.running(settings) is None:
        cluster.up(settings)
    os.environ["KUBECONFIG"] = str(settings.kubeconfig)
    release.install(targets.named("", ""), [])
    connection = await connect(str(settings.kubeconfig))
    limiter = Limiter(10_000, 1_000, 64, SystemClock())
    async with KubeClient(connection, limiter=limiter) as api:
        namespace = f"bench-{name}-{int(time.time())}"
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        meta = {"name": namespace, "labels": labels}
        await api.create(NAMESPACES, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
        try:
            yield Bench(settings, connection, api, namespace)
        finally:
            with contextlib.suppress(NotFound):
                await api.delete(NAMESPACES, "", namespace)
