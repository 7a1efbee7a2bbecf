"""``report`` and ``export``: a run, or several, as a page for people or a file for other programs."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from casewarden.adapters.stores.zstd import decompress
from casewarden.cli.cluster import Access, open_cluster
from casewarden.cli.download import download
from casewarden.cli.failure import GOOD, Failure
from casewarden.cli.options import ExportFormat
from casewarden.cli.outcome import is_finished
from casewarden.cli.printing import print_line, print_rows
from casewarden.cli.relay import open_relay
from casewarden.cli.sources import RelayFiles, audit_name, find_folder, parse_object
from casewarden.core.bundle_check import strict_json
from casewarden.core.evidence import AUDIT, PLAN, RESULTS, RUN, USAGE, EvidenceKey, root_digest
from casewarden.reporting.agentbench import agentbench_report
from casewarden.reporting.audits import ReportedAudit, reported_audit
from casewarden.reporting.csvfile import to_csv
from casewarden.reporting.html import to_html
from casewarden.reporting.inspectlog import to_inspect
from casewarden.reporting.junit import to_junit
from casewarden.reporting.run import ReportedCase, ReportedRun, reported_run
from casewarden_sdk.bundle import BundleError, unpack_bundle

__all__ = ["export", "report", "report_agentbench"]

_NO_FILE = "-"


class _Loaded:
    """Runs with the folders that their evidence is in, and audits."""

    def __init__(self, found: Sequence[tuple[ReportedRun | ReportedAudit, Path]]) -> None:
        self.runs = [item for item, _ in found if isinstance(item, ReportedRun)]
        self.audits = [item for item, _ in found if isinstance(item, ReportedAudit)]
        self._folders = {item.uid: folder for item, folder in found}

    def transcript(self, run: ReportedRun, case: ReportedCase) -> list[dict[str, Any]] | None:
        """Return the rows of a case's transcript and what was drawn for people, None where no bundle was kept."""
        _, rows, drawn = self._read(run, case)
        return None if rows is None else rows + drawn

    def case(self, run: ReportedRun, case: ReportedCase) -> tuple[Any, list[dict[str, Any]]]:
        """Return a case's content and its transcript, empty where no bundle was kept."""
        content, rows, _ = self._read(run, case)
        return content, rows or []

    def _read(
        self, run: ReportedRun, case: ReportedCase
    ) -> tuple[Any, list[dict[str, Any]] | None, list[dict[str, Any]]]:
        if case.attempt is None:
            return {}, None, []
        for kind in ("bundle", "partial"):
            path = self._folders[run.uid] / EvidenceKey(case.key, kind, case.attempt).path()
            if path.is_symlink() or not path.is_file():
                continue
            try:
                found = unpack_bundle(path.read_bytes(), decompress)
                lines = found.get("transcript.jsonl", b"").split(b"\n")
                rows = [row for line in lines if line.strip() and isinstance(row := strict_json(line), dict)]
                return strict_json(found.get("case.json", b"{}")), rows, pictures(found.get("states.jsonl", b""))
            except (BundleError, ValueError) as error:
                raise Failure(f"{run.title}, case {case.key}: {error}; casewarden verify says more") from None
        return {}, None, []


def pictures(states: bytes) -> list[dict[str, Any]]:
    """Return the states of a case that are texts, drawn for people, as rows to follow its transcript."""
    rows = [strict_json(line) for line in states.split(b"\n") if line.strip()]
    return [
        {"t": row.get("t", 0.0), "session": 0, "dir": str(row.get("name")), "text": row["value"]}
        for row in rows
        if isinstance(row, dict) and isinstance(row.get("value"), str)
    ]


async def report(access: Access, targets: Sequence[str], out: str, max_mib: int, passed: bool) -> int:
    """Write the HTML report of some runs and audits."""
    async with _open(access, targets) as loaded:
        page = await asyncio.to_thread(
            to_html, loaded.runs, loaded.transcript, limit=max_mib << 20, passed=passed, audits=loaded.audits
        )
    return _written(out, page.encode())


async def report_agentbench(access: Access, targets: Sequence[str], out: str) -> int:
    """Print AgentBench's metrics and overall score over some runs; write them as JSON where a file is named."""
    async with _open(access, targets) as loaded:
        try:
            document = agentbench_report(loaded.runs)
        except ValueError as error:
            raise Failure(str(error)) from None
    if out:
        return _written(out, (json.dumps(document, indent=2) + "\n").encode())
    for candidate in document["candidates"]:
        print_line(f"{candidate['candidate']}")
        headings = ("environment", "score", "weight", "part", "metric", "run", "data")
        print_rows({name: name.upper() for name in headings}, candidate["environments"])
        if candidate["overall"] is None:
            print_line(f"no overall score: {', '.join(candidate['missing'])} missing, or without a valid score")
        else:
            print_line(f"overall score ({document['rule']}): {candidate['overall']}")
        if candidate["not_on_published_data"]:
            names = ", ".join(candidate["not_on_published_data"])
            print_line(f"not on published data, so not to be compared with published figures: {names}")
    return GOOD


async def export(access: Access, targets: Sequence[str], form: ExportFormat, out: str) -> int:
    """Write some runs in another program's format; an Inspect log has one run."""
    if form is ExportFormat.INSPECT and len(targets) != 1:
        raise Failure("an Inspect log is of one run: export each run to a file of its own")
    async with _open(access, targets) as loaded:
        if loaded.audits:
            raise Failure(f"{loaded.audits[0].title} is an audit: export the runs of its controls, or use report")
        match form:
            case ExportFormat.JUNIT:
                data = to_junit(loaded.runs)
            case ExportFormat.CSV:
                data = to_csv(loaded.runs).encode()
            case ExportFormat.INSPECT:
                (run,) = loaded.runs
                data = await asyncio.to_thread(to_inspect, run, lambda case: loaded.case(run, case))
    return _written(out, data)


@asynccontextmanager
async def _open(access: Access, targets: Sequence[str]) -> AsyncIterator[_Loaded]:
    folders = [None if audit_name(target) is not None else find_folder(target) for target in targets]
    with tempfile.TemporaryDirectory(prefix="casewarden-report-") as scratch:
        named = [target for target, folder in zip(targets, folders, strict=True) if folder is None]
        remote = iter(await _from_cluster(access, named, Path(scratch)) if named else ())
        yield _Loaded([next(remote) if folder is None else (_load(folder, None), folder) for folder in folders])


async def _from_cluster(
    access: Access, names: Sequence[str], scratch: Path
) -> list[tuple[ReportedRun | ReportedAudit, Path]]:
    found = []
    async with open_cluster(access) as cluster:
        objects = [
            await (cluster.run(name) if (audit := audit_name(name)) is None else cluster.audit(audit)) for name in names
        ]
        for item in objects:
            if not is_finished(item.get("status") or {}):
                name = item["metadata"]["name"]
                raise Failure(f"{item.get('kind', 'run')} {name} is not over; kubectl get evals tells when it is")
        async with open_relay(cluster) as relay:
            for item in objects:
                uid = item["metadata"]["uid"]
                folder = scratch / uid
                await download(RelayFiles(relay, uid), folder)
                found.append((_load(folder, item["status"]), folder))
    return found


def _load(folder: Path, status: dict[str, Any] | None) -> ReportedRun | ReportedAudit:
    def read(name: str) -> bytes | None:
        path = folder / name
        return path.read_bytes() if path.is_file() and not path.is_symlink() else None

    if (audit := read(AUDIT)) is not None:
        return _load_audit(folder, audit, read(PLAN))
    run, results = read(RUN), read(RESULTS)
    if run is None or results is None:
        raise Failure(f"{folder}: has no {RUN if run is None else RESULTS}; a run that never had a plan has no report")
    rows = [parse_object(line, RESULTS) for line in results.splitlines()]
    try:
        plan = parse_object(read(PLAN), PLAN)
        used = read(USAGE)
        usage = None if used is None else parse_object(used, USAGE)
        return reported_run(parse_object(run, RUN), plan, rows, root_digest(run), status, usage)
    except (KeyError, TypeError, ValueError) as error:
        raise Failure(f"{folder}: is not what a run leaves ({error!r}); casewarden verify says more") from None


def _load_audit(folder: Path, audit: bytes, plan: bytes | None) -> ReportedAudit:
    try:
        return reported_audit(parse_object(audit, AUDIT), parse_object(plan, PLAN), root_digest(audit))
    except (KeyError, TypeError, ValueError) as error:
        raise Failure(f"{folder}: is not what an audit leaves ({error!r}); casewarden verify says more") from None


def _written(out: str, data: bytes) -> int:
    if out == _NO_FILE:
        sys.stdout.buffer.write(data)
        return GOOD
    try:
        Path(out).write_bytes(data)
    except OSError as error:
        raise Failure(f"--out {out}: {error.strerror}; give a file in a folder that is there") from None
    print(f"{out}: {len(data):,} bytes", file=sys.stderr)
    return GOOD
