"""``regrade``: a finished run's records, graded again by the installed version of its pack."""

from __future__ import annotations

import tempfile
from pathlib import Path

from casewarden.adapters.stores.zstd import decompress
from casewarden.cli.cluster import Access, open_cluster
from casewarden.cli.download import download
from casewarden.cli.failure import GOOD, NOT_GOOD, Failure
from casewarden.cli.outcome import is_finished
from casewarden.cli.packs import load_pack
from casewarden.cli.printing import Output, emit, print_line, print_rows
from casewarden.cli.relay import open_relay
from casewarden.cli.sources import RelayFiles, find_folder, list_files, parse_object
from casewarden.cli.text import one_line
from casewarden.cli.verifying import reader, reaggregator_of, regrader_of
from casewarden.core.regrade import Regraded, regrade_run
from casewarden.core.verify import verify_run
from casewarden_sdk.errors import ContractError
from casewarden_sdk.fingerprint import grader_fingerprint

__all__ = ["regrade"]

_SHOWN = 50


async def regrade(access: Access, target: str, pack: str | None, output: Output) -> int:
    """Grade a folder's, or a run's, records again; 0 where nothing changes, 1 where something does."""
    folder = find_folder(target)
    if folder is not None:
        return _regrade(folder, None, pack, output)
    async with open_cluster(access) as cluster:
        run = await cluster.run(target)
        status = run.get("status") or {}
        if not is_finished(status):
            raise Failure(f"run {target} is not over; its records can be graded again when it is")
        with tempfile.TemporaryDirectory(prefix="casewarden-regrade-") as scratch:
            async with open_relay(cluster) as relay:
                await download(RelayFiles(relay, run["metadata"]["uid"]), Path(scratch))
            digest = (status.get("evidence") or {}).get("digest")
            return _regrade(Path(scratch), digest, pack, output)


def _regrade(folder: Path, digest: str | None, name: str | None, output: Output) -> int:
    read = reader(folder)
    if of := parse_object(read("run.json"), "run.json").get("regrade"):
        raise Failure(f"the run graded the records of run {of.get('name')} again and has none itself: name that one")
    plan = parse_object(read("plan.json"), "plan.json")
    task = plan.get("task") or {}
    pack = load_pack(name or str(task.get("id")))
    if pack.id != task.get("id"):
        raise Failure(
            f"the run is of {task.get('id')}, the pack is {pack.id}: records are graded by their own task only"
        )
    checked = verify_run(read, list_files(folder), decompress, status_digest=digest)
    if not checked.consistent:
        first = checked.findings[0]
        raise Failure(f"the run's evidence does not hold: {first.path}: {first.problem}; see casewarden verify")
    try:
        result = regrade_run(
            read, decompress, regrader_of(pack), paths=list_files(folder), reaggregate=reaggregator_of(pack)
        )
    except (ContractError, ValueError, KeyError, TypeError) as error:
        raise Failure(f"cannot be graded again: {type(error).__name__}: {error}") from None
    graders = {"before": str((plan.get("fingerprints") or {}).get("grader")), "after": grader_fingerprint(pack.sources)}
    versions = {"before": f"{task.get('id')}@{task.get('version')}", "after": f"{pack.id}@{pack.version}"}
    document = {
        "graders": graders,
        "tasks": versions,
        "graded": result.graded,
        "kept": result.kept,
        "changes": [change.to_json() for change in result.changes],
        "before": dict(result.before),
        "after": dict(result.after),
    }
    emit(document, output, lambda: _show(result, versions, graders))
    return NOT_GOOD if result.changes else GOOD


def _show(result: Regraded, versions: dict[str, str], graders: dict[str, str]) -> None:
    same = "the same grader" if graders["before"] == graders["after"] else "another grader"
    print_line(f"{result.graded} records of {versions['before']} graded again by {versions['after']}, {same}")
    if result.kept:
        print_line(f"{result.kept} verdicts have no record and stay")
    print_line(f"score {result.before.get('score')} before, {result.after.get('score')} after")
    if not result.changes:
        print_line("no verdict changes")
        return
    print_line(f"{len(result.changes)} verdicts change")
    rows = [
        {
            "case": change.case,
            "before": change.before["status"],
            "after": change.after["status"],
            "error": one_line(str(change.after.get("error") or ""), 90),
        }
        for change in result.changes[:_SHOWN]
    ]
    print_rows({name: name.upper() for name in ("case", "before", "after", "error")}, rows)
