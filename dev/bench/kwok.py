"""How many cases a second the operator plays on pretended nodes, over an Indexed Job of as many of the same pods.

The Job's controller is measured at the limit of requests that it comes with, and at one of 500 a second.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.cluster import JOBS, Bench, a_bench, until
from bench.cpu import Shares
from casewarden.ports.kube import NotFound
from devkit import kwok, namespaces
from devkit.settings import REPOSITORY, Cluster

NODES, PARALLELISM = 10, 1000
OURS_QPS = 500
# Requests a second of the controller manager, over time and at once: as it comes, and raised.
STOCK, RAISED = (20, 30), (500, 1000)
MANAGER = "kube-controller-manager"
LONGEST_SECONDS = 3600.0
START_SECONDS = 5.0

Figures = dict[str, Any]


def kwok_at(cases: int) -> Figures:
    """Rates of so many cases, a multiple of 4, and what the operator took for them."""
    return asyncio.run(_kwok(cases))


async def _kwok(cases: int) -> Figures:
    with tempfile.TemporaryDirectory() as scratch:
        async with a_bench("kwok") as bench:
            await bench.scale_operator(0)
            kwok.up(bench.settings, NODES)
            try:
                return await _measure(bench, cases, Path(scratch))
            finally:
                kwok.down(bench.settings)
                await bench.scale_operator(1)


async def _measure(bench: Bench, cases: int, folder: Path) -> Figures:
    template = folder / "pod.json"
    shares = Shares(bench.settings)
    ours = await _ours(bench, cases, folder, template)
    took = shares.now()
    async with _limited(bench.settings, *STOCK):
        stock = await _job(bench, cases, "stock", template)
    async with _limited(bench.settings, *RAISED):
        shares = Shares(bench.settings)
        raised = await _job(bench, cases, "raised", template)
        raised_took = shares.now()
    rate = cases / ours["seconds"]
    return {
        "cases": cases,
        "parallelism": min(PARALLELISM, cases),
        "qps": OURS_QPS,
        "cases_per_second": rate,
        "job_pods_per_second": cases / stock,
        "job_raised_pods_per_second": cases / raised,
        "over_job": rate * stock / cases,
        "over_job_raised": rate * raised / cases,
        "cpu_ms_per_case": 1000 * ours["cpu_s"] / cases,
        "requests_per_case": sum(ours["requests"].values()) / cases,
        "requests": ours["requests"],
        "start_cpu_s": ours["start_cpu_s"],
        "peak_mib": ours["peak_mib"],
        "shares": took,
        "job_raised_shares": raised_took,
    }


async def _ours(bench: Bench, cases: int, folder: Path, template: Path) -> Figures:
    catalogue, _ = await bench.catalogue(folder)
    words = [sys.executable, "-m", "bench.operator_process", "--kubeconfig", str(bench.settings.kubeconfig),
             "--catalogue", str(catalogue), "--namespace", bench.namespace, "--qps", str(OURS_QPS),
             "--template", str(template)]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY / 'dev'}"}
    process = await asyncio.create_subprocess_exec(*words, env=environment, stdout=subprocess.PIPE)
    try:
        await bench.apply_run("many", cases, parallelism=min(PARALLELISM, cases))
        status = await bench.finished("many", LONGEST_SECONDS)
        if status["attempts"]["total"] != cases:
            raise RuntimeError(f"{status['attempts']} for {cases} cases")
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(120):
            said, _ = await process.communicate()
    figures: Figures = json.loads(said.splitlines()[-1])
    return figures


async def _job(bench: Bench, cases: int, name: str, template: Path) -> float:
    """Seconds from a Job's creation until all its pods have succeeded."""
    pod = json.loads(await asyncio.to_thread(template.read_text))
    notes = {key: text for key, text in pod["metadata"]["annotations"].items() if key.startswith("kwok.")}
    spec = {
        "completionMode": "Indexed", "completions": cases, "parallelism": min(PARALLELISM, cases), "backoffLimit": 0,
        "template": {"metadata": {"annotations": notes}, "spec": {**pod["spec"], "restartPolicy": "Never"}},
    }  # fmt: skip
    body = {"apiVersion": JOBS.api_version, "kind": JOBS.name, "metadata": {"name": name}, "spec": spec}
    started = time.monotonic()
    await bench.api.create(JOBS, bench.namespace, body)

    async def over() -> float | None:
        status = (await bench.api.get(JOBS, bench.namespace, name)).get("status") or {}
        if status.get("failed"):
            raise RuntimeError(f"pods of the Job failed: {status}")
        return time.monotonic() - started if status.get("succeeded") == cases else None

    seconds: float = await until(over, LONGEST_SECONDS, f"the Job {name}")
    await bench.api.delete(JOBS, bench.namespace, name)

    async def gone() -> bool:
        try:
            await bench.api.get(JOBS, bench.namespace, name)
        except NotFound:
            return True
        return False

    await until(gone, 60, f"the Job {name} to go")
    return seconds


@asynccontextmanager
async def _limited(cluster: Cluster, qps: int, burst: int) -> AsyncIterator[None]:
    """Have another controller manager with this limit do the work; the cluster's own stands still."""
    first = namespaces.init_pid(cluster)
    pid, words = _manager(cluster)
    words = [word for word in words if not word.startswith("--kube-api-")]
    limit = [f"--kube-api-qps={qps}", f"--kube-api-burst={burst}", "--secure-port=0"]
    # Not in the cluster's process namespace: nsenter would fork, and what is ended here would be nsenter alone.
    inside = ["nsenter", "-t", str(first), "-m", "-n", "-u", "--"]
    log = cluster.logs / f"{MANAGER}-{qps}.log"
    os.kill(pid, signal.SIGSTOP)
    try:
        with log.open("wb") as file:
            other = await asyncio.create_subprocess_exec(*inside, *words, *limit, stdout=file, stderr=file)
        try:
            await asyncio.sleep(START_SECONDS)
            if other.returncode is not None:
                raise RuntimeError(f"the controller manager with another limit ended: {log}")
            yield
        finally:
            if other.returncode is None:
                other.terminate()
            async with asyncio.timeout(30):
                await other.wait()
    finally:
        os.kill(pid, signal.SIGCONT)


def _manager(cluster: Cluster) -> tuple[int, list[str]]:
    """Return the process and the command of the cluster's controller manager."""
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")[:-1]
        except OSError:
            continue
        if words and words[0].endswith(MANAGER) and any(str(cluster.root) in word for word in words):
            return int(entry.name), words
    raise RuntimeError(f"cluster {cluster.name} has no {MANAGER} on this machine")
