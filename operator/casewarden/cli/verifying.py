"""``verify``: recompute a run or an audit from its evidence."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
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
from casewarden.cli.signing import check_statement, sign_statement
from casewarden.cli.sources import RelayFiles, audit_name, find_folder, list_files, parse_object
from casewarden.cli.text import one_line
from casewarden.core.bundle_check import Bundle
from casewarden.core.evidence import AUDIT, RUN
from casewarden.core.statement import statement_of
from casewarden.core.usage import usage_in_words
from casewarden.core.verification import Folder, Read, Verification, compare_audit_status, compare_status
from casewarden.core.verify import Regrade, verify_run
from casewarden.core.verify_audit import verify_audit
from casewarden.core.verify_own import Reaggregate
from casewarden_sdk.contract import Case, Pack
from casewarden_sdk.fingerprint import grader_fingerprint
from casewarden_sdk.judging import judge

__all__ = ["Wanted", "reader", "reaggregator_of", "regrader_of", "verify"]

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a verification is to do beside recomputing.

    ``digest`` vouches for the evidence; so does ``statement``, if ``signed_by`` (a public key) signed it. ``sign`` is a
    private key: the statement it signs goes to ``statement``. ``keep`` is a folder for what is downloaded.
    """

    digest: str | None = None
    regrade: bool = False
    pack: str | None = None
    keep: Path | None = None
    sign: Path | None = None
    statement: Path | None = None
    signed_by: Path | None = None

    def check(self) -> None:
        """Raise a ``Failure`` for options that do not go together."""
        if self.sign is not None and self.signed_by is not None:
            raise Failure("--sign writes a statement and --signed-by reads one: give one of them")
        if self.signed_by is not None and self.statement is None:
            raise Failure("--signed-by: give --statement with the signed statement too")
        if self.signed_by is not None and self.digest is not None:
            raise Failure("--signed-by takes the digest from the statement: leave --digest out")
        if self.statement is not None and self.sign is None and self.signed_by is None:
            raise Failure("--statement: give --sign with a private key to write it, or --signed-by to check it")

    def anchor(self, file: str) -> str | None:
        """Return the digest that vouches for ``run.json`` or ``audit.json``, as far as the options say it."""
        if self.signed_by is None or self.statement is None:
            return self.digest
        return check_statement(self.statement, self.signed_by, file)[1]


@dataclass(frozen=True, slots=True)
class _Verified:
    """What was verified, how its files are read, and the status of the cluster, if it was asked."""

    result: Verification
    read: Read
    status: Mapping[str, Any] | None = None


async def verify(access: Access, target: str, wanted: Wanted, output: Output) -> int:
    """Verify a folder, or a run or audit of the cluster against its status."""
    wanted.check()
    folder = None
    if (audit := audit_name(target)) is not None:
        return await _verify_audit_of_cluster(access, audit, wanted, output)
    folder = find_folder(target)
    if folder is not None:
        is_audit = (folder / AUDIT).is_file()
        check = _verify_audit if is_audit else _verify_folder
        result = check(folder, wanted.anchor(AUDIT if is_audit else RUN), _wanted_pack(folder, wanted))
        return _finish(_Verified(result, reader(folder)), wanted, output)
    async with open_cluster(access) as cluster:
        run = await cluster.run(target)
        status = run.get("status") or {}
        if not is_finished(status):
            raise Failure(f"run {target} is not over; its evidence can be verified when it is")
        anchor = wanted.anchor(RUN) or (status.get("evidence") or {}).get("digest")
        if anchor is None:
            raise Failure(f"the status of run {target} has no digest of its evidence; it ended before it had any")
        with tempfile.TemporaryDirectory(prefix="casewarden-verify-") as scratch:
            uid = str(run["metadata"]["uid"])
            base = wanted.keep or Path(scratch)
            # A run whose records are another's is read beside that one, as in a store.
            place = base / uid if (run.get("spec") or {}).get("regradeOf") else base
            async with open_relay(cluster) as relay:
                await download(RelayFiles(relay, uid), place)
                of = (parse_object(reader(place)(RUN), RUN).get("regrade") or {}).get("uid") if place != base else None
                if isinstance(of, str) and _is_plain(of):
                    await download(RelayFiles(relay, of), base / of)
            result = _verify_folder(place, anchor, _wanted_pack(place, wanted))
            compare_status(result, status)
            return _finish(_Verified(result, reader(place), status), wanted, output)


def _finish(verified: _Verified, wanted: Wanted, output: Output) -> int:
    if wanted.sign is not None:
        _sign(verified, wanted.sign, wanted.statement)
    by = "by the signature of its statement" if wanted.signed_by else "against the digest of the run's status"
    return _report(verified.result, output, by)


def _sign(verified: _Verified, key: Path, path: Path | None) -> None:
    result, status = verified.result, verified.status or {}
    try:
        statement = statement_of(result, verified.read, (status.get("fingerprints") or {}).get("candidate"))
    except ValueError as error:
        first = "".join(f": {item.path}: {item.problem}" for item in result.findings[:1])
        raise Failure(f"{result.name}: {error}{first}") from None
    path = path or Path(f"{result.name}.intoto.jsonl")
    try:
        path.write_bytes(sign_statement(statement, key))
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}") from None
    sys.stderr.write(f"{statement['predicate']['result']} is signed in {path}\n")


async def _verify_audit_of_cluster(access: Access, name: str, wanted: Wanted, output: Output) -> int:
    async with open_cluster(access) as cluster:
        audit = await cluster.audit(name)
        status = audit.get("status") or {}
        anchor = wanted.anchor(AUDIT) or (status.get("evidence") or {}).get("digest")
        if not is_finished(status) or anchor is None:
            raise Failure(f"audit {name} is not over, or ended before it had any evidence")
        with tempfile.TemporaryDirectory(prefix="casewarden-verify-") as scratch:
            place, uid = wanted.keep or Path(scratch), str(audit["metadata"]["uid"])
            async with open_relay(cluster) as relay:
                await download(RelayFiles(relay, uid), place / uid)
                document = parse_object(reader(place / uid)(AUDIT), AUDIT)
                for run in document.get("runs", ()):
                    if run.get("digest") is not None:
                        await download(RelayFiles(relay, run["uid"]), place / run["uid"])
            result = _verify_audit(place / uid, anchor, _wanted_pack(place / uid, wanted))
            compare_audit_status(result, status)
            return _finish(_Verified(result, reader(place / uid), status), wanted, output)


def _is_plain(uid: str) -> bool:
    return "/" not in uid and not uid.startswith(".")


def _beside(folder: Path) -> Callable[[str], Folder]:
    """Return how other runs are read: each lies beside this one in the folder of its UID, as in a store."""

    def run_folder(uid: str) -> Folder:
        place = folder.resolve().parent / uid
        if not _is_plain(uid) or place.is_symlink() or not place.is_dir():
            return (lambda path: None), ()
        return reader(place), list_files(place)

    return run_folder


def _verify_audit(folder: Path, digest: str | None, pack: Pack | None) -> Verification:
    own, regrade = (reader(folder), list_files(folder)), None if pack is None else regrader_of(pack)
    return verify_audit(own, _beside(folder), decompress, status_digest=digest, regrade=regrade)


def _verify_folder(folder: Path, digest: str | None, pack: Pack | None) -> Verification:
    return verify_run(
        reader(folder),
        list_files(folder),
        decompress,
        status_digest=digest,
        regrade=None if pack is None else regrader_of(pack),
        reaggregate=None if pack is None else reaggregator_of(pack),
        run_folder=_beside(folder),
    )


def _wanted_pack(folder: Path, wanted: Wanted) -> Pack | None:
    return _installed(folder, wanted.pack) if wanted.regrade else None


def reader(folder: Path) -> Callable[[str], bytes | None]:
    """Return how the files of a folder are read; links, and what lies outside, are not there."""

    def read(path: str) -> bytes | None:
        full = folder / path
        if full.is_symlink() or not full.is_file() or not full.resolve().is_relative_to(folder.resolve()):
            return None
        return full.read_bytes()

    return read


def _installed(folder: Path, name: str | None) -> Pack:
    """Return the installed pack of a run's task, if it grades as the run's did."""
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

    return pack


def reaggregator_of(pack: Pack) -> Reaggregate | None:
    """Return how a pack applies its own rule; None for one without."""
    return getattr(pack, "aggregate", None)


def regrader_of(pack: Pack) -> Regrade:
    """Return how a pack grades a record."""

    def regrade(planned: Any, bundle: Bundle) -> Mapping[str, Any]:
        case = Case(planned.id, tuple(planned.dimensions), dict(bundle.content), planned.kind)
        return judge(pack, case, bundle.record).to_json()

    return regrade


def _report(result: Verification, output: Output, by: str) -> int:
    document = {**asdict(result), "consistent": result.consistent, "score": dict(result.score)}
    emit(document, output, lambda: _show(result, by))
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


def _show_mutants(mutants: Mapping[str, Any]) -> None:
    print_line(f"{mutants['noticed']} of {mutants['total']} mutants of the grader are noticed")
    if mutants["unnoticed"]:
        print_line(f"  no control notices {', '.join(mutants['unnoticed'])}")


def _show(result: Verification, by: str) -> None:
    if result.consistent:
        vouched = {
            True: f"authenticated {by}",
            None: "consistent, not authenticated: give --digest with the digest of the run's status",
        }
        print_line(f"{result.namespace}/{result.name}: {vouched[result.authenticated or None]}")
        print_line(f"{result.verdicts} verdicts of {result.rows} attempts, {result.bundles} bundles, {result.digest}")
        if result.regraded is not None:
            print_line(f"{result.regraded} records graded again, with the same verdicts")
        if result.not_regraded:
            print_line(f"{result.not_regraded} verdicts over another run's records: --regrade grades those again")
        if "mutation_score" in result.score:
            _show_judgement(result.score)
            if result.mutants is not None:
                _show_mutants(result.mutants)
            return
        score = result.score.get("score")
        print_line(f"score {score}" if score is not None else "no score: the run is not valid")
        if result.usage is not None:
            print_line(f"{usage_in_words(result.usage)}; {result.calls_in_bundles} of the calls are in the bundles")
        for note in result.notes:
            print_line(note)
        if result.unsealed:
            count = len(result.unsealed)
            print_line(f"{count} verdicts rest on what the operator saw of the pod: {', '.join(result.unsealed[:5])}")
        return
    print_line(f"{result.namespace}/{result.name}: NOT consistent, {len(result.findings)} findings")
    for finding in result.findings[:_SHOWN]:
        print_line(f"  {one_line(finding.path)}: {one_line(finding.problem, 300)}")
    if len(result.findings) > _SHOWN:
        print_line(f"  and {len(result.findings) - _SHOWN} more; --output json has all")
