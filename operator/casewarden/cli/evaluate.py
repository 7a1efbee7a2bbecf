"""``evaluate``: a candidate's folder on a task, without writing a manifest."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from casewarden.adapters.stores.zstd import compress
from casewarden.api.names import API_VERSION
from casewarden.cli.cluster import Access, open_cluster
from casewarden.cli.endpoints import LocalEndpoints
from casewarden.cli.failure import GOOD, Failure
from casewarden.cli.local_runs import checked_run, read_folder, run_here
from casewarden.cli.outcome import exit_code, print_summary
from casewarden.cli.printing import Output, emit, print_line
from casewarden.cli.relay import open_relay
from casewarden.cli.runs import wait_for
from casewarden.core.validate import check_spec
from casewarden.ports.kube import EVAL_RUNS
from casewarden_sdk.workspace import digest_workspace, pack_workspace

__all__ = ["Wanted", "evaluate", "manifest_of"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of an evaluation; empty and zero values leave a field of the spec out."""

    task: str
    seeds: Sequence[int] = ()
    random: int = 0
    name: str = ""
    image: str = ""
    families: Sequence[str] = ()
    repeats: int = 0
    parallelism: int = 0
    threshold: str = ""
    model: str = ""


def manifest_of(wanted: Wanted, folder: Path, digest: str) -> dict[str, Any]:
    """Return the EvalRun that evaluates a folder of that digest."""
    program: dict[str, Any] = {"workspace": {"digest": f"sha256:{digest}"}}
    if wanted.image:
        program["image"] = wanted.image
    seeds = {"values": list(wanted.seeds)} if wanted.seeds else {"random": wanted.random or 1}
    spec: dict[str, Any] = {"task": {"name": wanted.task}, "seeds": seeds, "candidate": {"program": program}}
    if wanted.model:
        endpoint, slash, model = wanted.model.partition("/")
        if not slash or not endpoint or not model:
            raise Failure(f"--model {wanted.model!r}: give ENDPOINT/NAME, as in team/qwen3")
        spec["candidate"]["model"] = {"endpoint": endpoint, "name": model}
    if wanted.families:
        spec["select"] = {"families": list(wanted.families)}
    if wanted.threshold:
        spec["threshold"] = {"score": wanted.threshold}
    spec |= {key: getattr(wanted, key) for key in ("repeats", "parallelism") if getattr(wanted, key)}
    name = wanted.name or f"{_slug(wanted.task)}-{_slug(folder.resolve().name)}-{secrets.token_hex(3)}"
    return {"apiVersion": API_VERSION, "kind": "EvalRun", "metadata": {"name": name}, "spec": spec}


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:24].strip("-") or "agent"


async def evaluate(
    access: Access, folder: Path, wanted: Wanted, local: bool, pack: str | None, out: Path, wait: bool,
    timeout_seconds: float, output: Output, models: LocalEndpoints,
) -> int:  # fmt: skip
    """Upload the folder, create the run and wait for it; or do the whole job on this machine."""
    files = read_folder(folder)
    digest = digest_workspace(files)
    document = manifest_of(wanted, folder, digest)
    run = checked_run(document)
    if local:
        return await run_here(run, files, pack, out, output, models)
    for problem in check_spec(run.spec, None):
        raise Failure(str(problem))
    name = run.metadata.name
    async with open_cluster(access) as cluster:
        async with open_relay(cluster) as relay:
            await relay.put_workspace(cluster.namespace, digest, pack_workspace(files, compress))
        document["metadata"]["namespace"] = cluster.namespace
        created = await cluster.api.create(EVAL_RUNS, cluster.namespace, document)
        if not wait:
            emit(created, output, lambda: print_line(f"evalrun/{name} created: casewarden watch {name}"))
            return GOOD
        done = await wait_for(cluster, name, timeout_seconds)
    emit(done, output, lambda: print_summary(name, done["status"]))
    return exit_code(done["status"])
