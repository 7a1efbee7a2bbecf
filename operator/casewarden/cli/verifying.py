"""``verify``: recompute a run or an audit from its evidence."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from casewarden.adapters.stores.zstd import decompress
from casewarden.cli.cluster import Access, open_cluster
from casewarden.cli.download import download
from casewarden.cli.failure import GOOD, INVALID, Failure
from casewarden.cli.outcome import is_finished
from casewarden.cli.packs import load_pack
from casewarden.cli.printing import Output, emit, print_line
from casewarden.cli.relay import open_relay
from casewarden.cli.sources import RelayFiles, audit_name, find_folder, list_files, parse_object
from casewarden.cli.text import one_line
from casewarden.core.bundle_check import Bundle
from casewarden.core.evidence import AUDIT
from casewarden.core.verification import Verification, compare_audit_status, compare_status
from casewarden.core.verify import Regrade, verify_run
from casewarden.core.verify_audit import Folder, verify_audit
from casewarden_sdk.contract import Case, Pack
from casewarden_sdk.fingerprint import grader_fingerprint
from casewarden_sdk.judging import judge

__all__ = ["reader", "regrader_of", "verify"]

_SHOWN = 20


async def verify(
    access: Access, target: str, digest: str | None, regrade: bool, pack: str | None, keep: Path | None, output: Output
) -> int:
    """Verify a folder, or a run of the cluster against its status."""
    if (audit := audit_name(target)) is not None:
        return await _verify_audit_of_cluster(access, audit, digest, regrade, pack, keep, output)
    folder = find_folder(target)
    if folder is not None and (folder / AUDIT).is_file():
        result = _verify_audit(folder, digest, _regrader(folder, pack) if regrade else None)
        return _report(result, output)
    if folder is not None:
        result = _verify_folder(folder, digest, _regrader(folder, pack) if regrade else None)
        return _report(result, output)
    async with open_cluster(access) as cluster:
        run = await cluster.run(target)
        status = run.get("status") or {}
        if not is_finished(status):
            raise Failure(f"run {target} is not over; its evidence can be verified when it is")
        anchor = digest or (status.get("evidence") or {}).get("digest")
        if anchor is None:
            raise Failure(f"the status of run {target} has no digest of its evidence; it ended before it had any")
        with tempfile.TemporaryDirectory(prefix="casewarden-verify-") as scratch:
            place = keep or Path(scratch)
            async with open_relay(cluster) as relay:
                await download(RelayFiles(relay, run["metadata"]["uid"]), place)
            result = _verify_folder(place, anchor, _regrader(place, pack) if regrade else None)
    compare_status(result, status)
    return _report(result, output)


async def _verify_audit_of_cluster(
    access: Access, name: str, digest: str | None, regrade: bool, pack: str | None, keep: Path | None, output: Output
) -> int:
    async with open_cluster(access) as cluster:
        audit = await cluster.audit(name)
        status = audit.get("status") or {}
        anchor = digest or (status.get("evidence") or {}).get("digest")
        if not is_finished(status) or anchor is None:
            raise Failure(f"audit {name} is not over, or ended before it had any evidence")
        with tempfile.TemporaryDirectory(prefix="casewarden-verify-") as scratch:
            place, uid = keep or Path(scratch), str(audit["metadata"]["uid"])
            async with open_relay(cluster) as relay:
                await download(RelayFiles(relay, uid), place / uid)
                document = parse_object(reader(place / uid)(AUDIT), AUDIT)
                for run in document.get("runs", ()):
                    if run.get("digest") is not None:
                        await download(RelayFiles(relay, run["uid"]), place / run["uid"])
            result = _verify_audit(place / uid, anchor, _regrader(place / uid, pack) if regrade else None)
    compare_audit_status(result, status)
    return _report(result, output)


def _verify_audit(folder: Path, digest: str | None, regrade: Regrade | None) -> Verification:
    """Verify an audit whose runs lie beside it, each in the folder of its UID, as in a store."""

    def run_folder(uid: str) -> Folder:
        place = folder.parent / uid
        if "/" in uid or uid.startswith(".") or place.is_symlink() or not place.is_dir():
            return (lambda path: None), ()
        return reader(place), list_files(place)

    own = (reader(folder), list_files(folder))
    return verify_audit(own, run_folder, decompress, status_digest=digest, regrade=regrade)


def _verify_folder(folder: Path, digest: str | None, regrade: Regrade | None) -> Verification:
    return verify_run(reader(folder), list_files(folder), decompress, status_digest=digest, regrade=regrade)


def reader(folder: Path) -> Callable[[str], bytes | None]:
    """Return how the files of a folder are read; links, and what lies outside, are not there."""

    def read(path: str) -> bytes | None:
        full = folder / path
        if full.is_symlink() or not full.is_file() or not full.resolve().is_relative_to(folder.resolve()):
            return None
        return full.read_bytes()

    return read


def _regrader(folder: Path, name: str | None) -> Regrade:
    """Return how records are graded again: by the installed pack, if it grades as the run's did."""
    plan = parse_object((folder / "plan.json").read_bytes() if (folder / "plan.json").is_file() else None, "plan.json")
    task, prints = plan.get("task"), plan.get("fingerprints")
    if not isinstance(task, dict) or not isinstance(prints, dict):
        raise Failure("plan.json: names no task")
    pack = load_pack(name or str(task.get("id")))
    installed = grader_fingerprint(pack.sources)
    if installed != prints.get("grader"):
        raise Failure(
            f"the installed grader of {pack.id}@{pack.version} is {installed[:12]}, the run's of "
            f"{task.get('id')}@{task.get('version')} is {str(prints.get('grader'))[:12]}; install that version"
        )

    return regrader_of(pack)


def regrader_of(pack: Pack) -> Regrade:
    """Return how a pack grades a record."""

    def regrade(planned: Any, bundle: Bundle) -> Mapping[str, Any]:
        case = Case(planned.id, tuple(planned.dimensions), dict(bundle.content), planned.kind)
        return judge(pack, case, bundle.record).to_json()

    return regrade


def _report(result: Verification, output: Output) -> int:
    document = {**asdict(result), "consistent": result.consistent, "score": dict(result.score)}
    emit(document, output, lambda: _show(result))
    return GOOD if result.consistent else INVALID


def _show_judgement(judgement: Mapping[str, Any]) -> None:
    if not judgement["valid"]:
        print_line("the audit is not valid: nothing is known of the grader")
        return
    print_line(
        f"{'passed' if judgement['passed'] else 'not passed'}: {judgement['killed']} of {judgement['faults']} faults "
        f"are caught, weakest margin {judgement['weakest_margin']}"
    )
    for problem in judgement["problems"]:
        print_line(f"  {one_line(problem, 300)}")


def _show(result: Verification) -> None:
    if result.consistent:
        vouched = {
            True: "authenticated against the digest of the run's status",
            None: "consistent, not authenticated: give --digest with the digest of the run's status",
        }
        print_line(f"{result.namespace}/{result.name}: {vouched[result.authenticated or None]}")
        print_line(f"{result.verdicts} verdicts of {result.rows} attempts, {result.bundles} bundles, {result.digest}")
        if result.regraded is not None:
            print_line(f"{result.regraded} records graded again, with the same verdicts")
        if "mutation_score" in result.score:
            _show_judgement(result.score)
            return
        score = result.score.get("score")
        print_line(f"score {score}" if score is not None else "no score: the run is not valid")
        if result.unsealed:
            count = len(result.unsealed)
            print_line(f"{count} verdicts rest on what the operator saw of the pod: {', '.join(result.unsealed[:5])}")
        return
    print_line(f"{result.namespace}/{result.name}: NOT consistent, {len(result.findings)} findings")
    for finding in result.findings[:_SHOWN]:
        print_line(f"  {one_line(finding.path)}: {one_line(finding.problem, 300)}")
    if len(result.findings) > _SHOWN:
        print_line(f"  and {len(result.findings) - _SHOWN} more; --output json has all")
