"""``agent-test``: says something to a run's candidate, and shows what comes back or why nothing does."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from casewarden.api.names import API_VERSION
from casewarden.cli.cases import read_bundle
from casewarden.cli.cluster import Access, open_cluster
from casewarden.cli.failure import GOOD, NOT_GOOD, Failure
from casewarden.cli.local_runs import NOT_A_SANDBOX, checked_run, config_map_files
from casewarden.cli.manifests import load_runs
from casewarden.cli.printing import Output, emit, print_line
from casewarden.cli.relay import open_relay
from casewarden.cli.runs import wait_for
from casewarden.cli.sources import FolderFiles, RelayFiles, RunFiles, parse_object
from casewarden.cli.text import clean
from casewarden.core.evidence import EvidenceKey
from casewarden.core.model import CaseKey
from casewarden.core.validate import check_spec
from casewarden.local.run import Options, run_evalrun
from casewarden.local.shim import ShimMissing
from casewarden.ports.kube import EVAL_RUNS

__all__ = ["agent_test"]

TASK = "agent-test"
_PACK = "casewarden_sdk.agentbench.agent_test:PACK"
_CASE = CaseKey(0, "conversation", 0)


async def agent_test(
    access: Access, file: str, messages: Sequence[str], local: bool, out: Path, timeout_seconds: float, output: Output
) -> int:
    """Talk to the candidate of the EvalRun in ``file``; exit code 1 where it does not answer."""
    documents, beside = load_runs(file)
    if len(documents) != 1:
        raise Failure(f"{file} holds {len(documents)} runs; give the one whose agent is to be tried")
    given = checked_run(documents[0])
    document = _manifest(given.spec.to_json(), given.metadata.name, messages)
    run = checked_run(document)
    for problem in check_spec(run.spec, None):
        raise Failure(str(problem))
    if local:
        print_line(NOT_A_SANDBOX) if output is Output.TABLE else None
        try:
            result = await run_evalrun(run, Options(out, _PACK, config_map_files(given, beside)))
        except ShimMissing as error:
            raise Failure(str(error)) from None
        return await _told(FolderFiles(result.folder), result.status, output)
    async with open_cluster(access) as cluster:
        document["metadata"]["namespace"] = cluster.namespace
        created = await cluster.api.create(EVAL_RUNS, cluster.namespace, document)
        done = await wait_for(cluster, run.metadata.name, timeout_seconds)
        async with open_relay(cluster) as relay:
            return await _told(RelayFiles(relay, created["metadata"]["uid"]), done["status"], output)


def _manifest(spec: Mapping[str, Any], name: str, messages: Sequence[str]) -> dict[str, Any]:
    """Return the run that talks: the candidate and its pods as they are, everything else as it must be."""
    kept = {key: spec[key] for key in ("candidate", "podTemplate") if key in spec}
    params = {"params": {"messages": list(messages)}} if messages else {}
    return {
        "apiVersion": API_VERSION,
        "kind": "EvalRun",
        "metadata": {"name": f"{name[:40].rstrip('-.')}-test-{secrets.token_hex(3)}"},
        "spec": {
            "task": {"name": TASK, **params},
            "seeds": {"values": [0]},
            "retries": {"environment": 0},
            "ttlSecondsAfterFinished": 3600,
            **kept,
        },
    }


async def _told(files: RunFiles, status: Mapping[str, Any], output: Output) -> int:
    found = await _bundle(files)
    record = found.get("record") if isinstance(found.get("record"), dict) else {}
    sample = (record or {}).get("output") or {}
    failures = status.get("failures") or [{}]
    document = {
        "answered": status.get("resolved") is True,
        "status": sample.get("status"),
        "history": sample.get("history") or [],
        "reason": failures[0].get("reason"),
        "error": failures[0].get("error"),
    }
    if not found:
        conditions = [item for item in status["conditions"] if item["type"] in ("Accepted", "Planned", "Failed")]
        bad = [item for item in conditions if (item["type"] == "Failed") == (item["status"] == "True")]
        document["error"] = document["error"] or (bad[0]["message"] if bad else "the run came to nothing")

    def show() -> None:
        for item in document["history"]:
            print_line(f"{item['role']}: {clean(str(item['content']))}")
        if document["answered"]:
            print_line("the agent answers")
            return
        why = ": ".join(clean(str(part)) for part in (document["reason"], document["error"]) if part)
        print_line(f"the agent does not answer{f': {why}' if why else ''}")

    emit(document, output, show)
    return GOOD if document["answered"] else NOT_GOOD


async def _bundle(files: RunFiles) -> dict[str, Any]:
    data = await files.read(EvidenceKey(_CASE, "sealed").path())
    attempt = 1 if data is None else int(parse_object(data, "sealed.json")["attempt"])
    return await read_bundle(files, _CASE, attempt)
