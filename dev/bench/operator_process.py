"""The operator by itself against a real API server, in a process of its own, so that what it costs is its own.

Case pods go to pretended nodes (`dev/cluster kwok`), which end them with a verdict; the fake relay that ships keeps the
run's files. Until SIGTERM; then the last line of its output says what it took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

from casewarden.adapters.kube.client import KubeClient
from casewarden.adapters.kube.connection import connect
from casewarden.adapters.kube.limiter import Limiter
from casewarden.api.attempt import TerminationMessage
from casewarden.api.names import LABEL_ROLE, TASK
from casewarden.handlers.operator import run
from casewarden.ports.clock import SystemClock
from casewarden.ports.evidence import MemoryEvidence
from casewarden.ports.kube import CONFIG_MAPS, PODS, Kind, Manifest
from casewarden.settings import Settings
from casewarden.wiring import read_catalogue

PREFIX = "kwok.casewarden.dev"
NODES = {
    "nodeSelector": {"type": "kwok"},
    "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists", "effect": "NoSchedule"}],
}


def pretended(pod: Manifest, checks: int, run_for: str = "100ms") -> Manifest:
    """Return a pod for a pretended node, which passes every one of so many checks after a while."""
    message = TerminationMessage(status="passed", checks="1" * checks, digest="ab" * 32, seconds=0.1).format()
    notes = {f"{PREFIX}/termination-message": message, f"{PREFIX}/run-for": run_for}
    meta = {**pod["metadata"], "annotations": {**pod["metadata"].get("annotations", {}), **notes}}
    return {**pod, "metadata": meta, "spec": {**pod["spec"], **NODES}}


class Client(KubeClient):
    """Sends case pods to pretended nodes, and counts what is asked of the API server."""

    def __init__(self, *args: Any, template: Path, **rest: Any) -> None:
        super().__init__(*args, **rest)
        self._template = template
        self.asked: Counter[str] = Counter()
        self.first_pod = self.last_row = self.start_cpu = 0.0

    async def create(self, kind: Kind, namespace: str, body: Manifest) -> Manifest:
        self.asked[f"POST {kind.plural}"] += 1
        role = (body["metadata"].get("labels") or {}).get(LABEL_ROLE)
        if kind is PODS and role == "case":
            told = body["spec"]["initContainers"][0]["env"]
            attempt = json.loads(next(item["value"] for item in told if item["name"] == "CASEWARDEN_ATTEMPT"))
            body = pretended(body, len(attempt["dimensions"]))
            if not self.first_pod:
                self.first_pod, self.start_cpu = time.monotonic(), time.process_time()
                self._template.write_text(json.dumps(body))
        made = await super().create(kind, namespace, body)
        self._note(kind, role)
        return made

    async def patch(self, kind: Kind, namespace: str, name: str, body: Any, **rest: Any) -> Manifest:
        self.asked[f"PATCH {kind.plural}"] += 1
        made = await super().patch(kind, namespace, name, body, **rest)
        self._note(kind, (made["metadata"].get("labels") or {}).get(LABEL_ROLE))
        return made

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest:
        self.asked[f"GET {kind.plural}"] += 1
        return await super().get(kind, namespace, name)

    async def delete(self, kind: Kind, *args: Any, **rest: Any) -> None:
        self.asked[f"DELETE {kind.plural}"] += 1
        await super().delete(kind, *args, **rest)

    def pages(self, kind: Kind, *args: Any, **rest: Any) -> Any:
        self.asked[f"LIST {kind.plural}"] += 1
        return super().pages(kind, *args, **rest)

    def watch(self, kind: Kind, *args: Any, **rest: Any) -> Any:
        self.asked[f"WATCH {kind.plural}"] += 1
        return super().watch(kind, *args, **rest)

    def _note(self, kind: Kind, role: str | None) -> None:
        if kind is CONFIG_MAPS and role == "ledger":
            self.last_row = time.monotonic()


async def main() -> None:
    """Run until SIGTERM, then print the figures as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    for flag in ("kubeconfig", "catalogue", "namespace", "template"):
        parser.add_argument(f"--{flag}", required=True)
    parser.add_argument("--qps", type=float, required=True)
    given = parser.parse_args()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    settings = Settings(
        namespaces=(given.namespace,), host="127.0.0.1", port=0, relay_address="10.0.0.9", qps=given.qps
    )
    limiter = Limiter(given.qps, int(given.qps), settings.in_flight, SystemClock())
    connection = await connect(given.kubeconfig)
    async with Client(connection, limiter=limiter, template=Path(given.template)) as client:
        await run(connection, read_catalogue(given.catalogue), settings, stop, api=client, evidence=MemoryEvidence())
    figures = {
        "cpu_s": time.process_time() - client.start_cpu,
        "start_cpu_s": client.start_cpu,
        "peak_mib": _peak_mib(),
        "requests": dict(sorted(client.asked.items())),
        "seconds": client.last_row - client.first_pod,
    }
    print(json.dumps(figures), flush=True)


def _peak_mib() -> float:
    # Not ru_maxrss, which a process takes over from the one that started it.
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


if __name__ == "__main__":
    assert TASK == "task", "kwok.yaml says so, too"
    logging.basicConfig(level="WARNING")
    asyncio.run(main())
