"""``get``, ``apply`` and ``watch``: runs of the cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from casewarden.api.names import API_VERSION
from casewarden.cli.cluster import Access, Cluster, open_cluster
from casewarden.cli.failure import GOOD, Failure
from casewarden.cli.manifests import load_manifests
from casewarden.cli.outcome import condition, exit_code, is_finished, print_summary, state_of
from casewarden.cli.printing import Output, emit, print_line, print_rows
from casewarden.cli.progress import RunProgress
from casewarden.core.status import duration_text
from casewarden.ports.kube import CONFIG_MAPS, EVAL_RUNS, Kind

__all__ = ["apply", "get", "row_of", "wait_for", "watch"]

_COLUMNS = {
    "name": "NAME", "task": "TASK", "state": "STATE", "progress": "PROGRESS", "score": "SCORE", "valid": "VALID",
    "passed": "PASSED", "age": "AGE",
}  # fmt: skip
_POLL_SECONDS = 1.0


async def get(access: Access, name: str | None, everywhere: bool, output: Output) -> int:
    """List runs, or show one."""
    async with open_cluster(access) as cluster:
        found = await cluster.run(name) if name else await cluster.runs(everywhere)
    if isinstance(found, dict):
        run = found
        emit(run, output, lambda: print_summary(run["metadata"]["name"], run.get("status") or {}))
        return GOOD
    runs = sorted(found, key=lambda run: run["metadata"].get("creationTimestamp") or "", reverse=True)

    def show() -> None:
        columns = {"namespace": "NAMESPACE", **_COLUMNS} if everywhere else _COLUMNS
        print_rows(columns, [row_of(run, time.time()) for run in runs])

    if not runs and output is Output.TABLE:
        print_line("there are no EvalRuns" + ("" if everywhere else f" in namespace {cluster.namespace}"))
    else:
        emit(runs, output, show)
    return GOOD


def row_of(run: Mapping[str, Any], now: float) -> dict[str, Any]:
    """Return a run as a row of the table."""
    meta, status = run["metadata"], run.get("status") or {}
    task = (run.get("spec") or {}).get("task") or {}
    born = meta.get("creationTimestamp")
    age = duration_text(now - datetime.fromisoformat(born).astimezone(UTC).timestamp()) if born else None
    return {
        "namespace": meta.get("namespace"),
        "name": meta["name"],
        "task": (status.get("fingerprints") or {}).get("task") or task.get("name") or task.get("image"),
        "state": state_of(status).partition(":")[0],
        "progress": status.get("progress"),
        "score": status.get("score"),
        "valid": status.get("valid"),
        "passed": condition(status, "Passed").get("status"),
        "age": age,
    }


async def apply(access: Access, file: str, output: Output) -> int:
    """Apply a file's EvalRuns and the ConfigMaps that they use."""
    documents = [_checked(document, file) for document in load_manifests(file)]
    # What a run uses must be there before the run is.
    documents.sort(key=lambda item: item[0] is EVAL_RUNS)
    applied = []
    async with open_cluster(access) as cluster:
        for kind, document in documents:
            meta = document["metadata"]
            namespace = access.namespace or meta.get("namespace") or cluster.namespace
            if "name" in meta:
                done = await cluster.api.patch(kind, namespace, meta["name"], document, how="apply")
            else:
                done = await cluster.api.create(kind, namespace, document)
            applied.append(done)

    def show() -> None:
        for item in applied:
            print_line(f"{item['kind'].lower()}/{item['metadata']['name']} applied in {item['metadata']['namespace']}")

    emit(applied, output, show)
    return GOOD


def _checked(document: Any, file: str) -> tuple[Kind, dict[str, Any]]:
    kinds = {(API_VERSION, "EvalRun"): EVAL_RUNS, ("v1", "ConfigMap"): CONFIG_MAPS}
    if not isinstance(document, dict) or not isinstance(document.get("metadata"), dict):
        raise Failure(f"{file}: a document has no metadata; give apiVersion, kind and metadata.name")
    kind = kinds.get((str(document.get("apiVersion")), str(document.get("kind"))))
    if kind is None:
        what = f"{document.get('apiVersion')} {document.get('kind')}"
        raise Failure(f"{file}: {what}: apply takes {API_VERSION} EvalRun and v1 ConfigMap; use kubectl for others")
    if not document["metadata"].get("name") and not document["metadata"].get("generateName"):
        raise Failure(f"{file}: metadata.name is missing; give the {document['kind']} a name")
    return kind, document


async def watch(access: Access, name: str, timeout_seconds: float, output: Output) -> int:
    """Follow a run to its end and return what it came to."""
    async with open_cluster(access) as cluster:
        run = await wait_for(cluster, name, timeout_seconds)
    emit(run, output, lambda: print_summary(name, run["status"]))
    return exit_code(run["status"])


async def wait_for(cluster: Cluster, name: str, timeout_seconds: float) -> dict[str, Any]:
    """Show a run's progress until it is over; a ``Failure`` when that takes longer, or when the run is deleted."""
    try:
        async with asyncio.timeout(timeout_seconds or None):
            with RunProgress(name) as progress:
                while True:
                    run = await cluster.run(name)
                    status = run.get("status") or {}
                    over = is_finished(status)
                    progress.show(status, last=over)
                    if over:
                        return run
                    await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise Failure(f"run {name} is not over after {timeout_seconds:g} s; it goes on without you") from None
