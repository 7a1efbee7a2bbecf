"""Where evidence lies, and the two files that sum a run up.

``results.jsonl`` has one line per counted attempt, those that were tried again included; ``run.json`` has what the run
was asked, its seeds, the digests of plan and results, and the score document. The SHA-256 of the bytes of ``run.json``
is the run's root digest. Operator and local runner write these files with the functions here; ``core.verify`` reads
them back. Nothing here reads or writes: values in, bytes out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from casewarden.core.model import AttemptKey, CaseKey, LedgerRow
from casewarden_sdk.canonical import canonical, sha256_bytes

__all__ = [
    "AUDIT", "META", "MUTANTS", "PLAN", "RESULTS", "RUN", "RUN_FILES", "SEALED_FIELDS", "USAGE", "EvidenceKey",
    "case_prefix", "json_file",
    "meta_document", "parse_evidence_key", "result_row", "results_file", "root_digest", "row_of_result",
    "run_document", "run_key", "workspace_key",
]  # fmt: skip

META: Final = "meta.json"
PLAN: Final = "plan.json"
RESULTS: Final = "results.jsonl"
RUN: Final = "run.json"
USAGE: Final = "usage.json"
RUN_FILES: Final = (META, PLAN, RESULTS, RUN)
AUDIT: Final = "audit.json"
"""What sums an audit up; it lies in the folder of the audit, beside meta.json and plan.json."""
MUTANTS: Final = "mutants.jsonl"
"""What each mutant of an audit's grader judges otherwise; beside audit.json, which has its digest."""
SEALED_FIELDS: Final = frozenset({
    "v", "run_uid", "seed", "case_id", "repeat", "attempt", "pod_uid", "digest", "status", "checks", "reason", "error",
    "seconds",
})  # fmt: skip

# What a user may change while a run goes on decides nothing of what it comes to, and two operators may see it apart:
# the document over the same rows must be the same.
CHANGEABLE: Final = frozenset({"suspend", "parallelism", "priority", "ttlSecondsAfterFinished"})

_NUMBER = r"0|[1-9][0-9]{0,18}"
_ATTEMPT_FILE = re.compile(rf"(?P<attempt>{_NUMBER})\.(?P<what>tar\.zst|partial\.tar\.zst|claim\.json)")
_CASE_PATH = re.compile(
    rf"(?P<seed>-(?!0)(?:{_NUMBER})|{_NUMBER})/(?P<case>[A-Za-z0-9][A-Za-z0-9._-]{{0,99}})/(?P<repeat>{_NUMBER})/(?P<file>[^/]+)"
)
_KINDS: Final[Mapping[str, Literal["bundle", "partial", "claim"]]] = {
    "tar.zst": "bundle",
    "partial.tar.zst": "partial",
    "claim.json": "claim",
}


@dataclass(frozen=True, slots=True)
class EvidenceKey:
    """A file below a case: ``sealed`` (no attempt), or a ``bundle``, ``partial`` bundle or ``claim`` of an attempt."""

    case: CaseKey
    kind: Literal["sealed", "bundle", "partial", "claim"]
    attempt: int | None = None

    def path(self) -> str:
        """Return the path below the run, ``17/read-write-delete/0/1.tar.zst``."""
        if self.kind == "sealed":
            return f"{self.case}/sealed.json"
        suffix = next(suffix for suffix, kind in _KINDS.items() if kind == self.kind)
        return f"{self.case}/{self.attempt}.{suffix}"


def run_key(run_uid: str, path: str) -> str:
    """Return the store key of a file of a run."""
    return f"runs/{run_uid}/{path}"


def case_prefix(run_uid: str, case: CaseKey) -> str:
    """Return what the store keys of everything of one case start with."""
    return f"runs/{run_uid}/{case}/"


def workspace_key(namespace: str, digest: str) -> str:
    """Return the store key of an uploaded candidate folder."""
    return f"workspaces/{namespace}/{digest}.tar.zst"


def parse_evidence_key(path: str) -> EvidenceKey | None:
    """Read a path below a run back; None for files that belong to no case."""
    match = _CASE_PATH.fullmatch(path)
    if match is None:
        return None
    case = CaseKey(int(match["seed"]), match["case"], int(match["repeat"]))
    if match["file"] == "sealed.json":
        return EvidenceKey(case, "sealed")
    file = _ATTEMPT_FILE.fullmatch(match["file"])
    return file and EvidenceKey(case, _KINDS[file["what"]], int(file["attempt"]))


def json_file(document: Mapping[str, Any]) -> bytes:
    """Write a document as the bytes that its digest is over: canonical JSON and a newline."""
    return canonical(document).encode("ascii") + b"\n"


def meta_document(*, namespace: str, name: str, run_uid: str) -> dict[str, Any]:
    """Return ``meta.json``: whose run this is; by it the relay knows who may read."""
    return {"v": 1, "namespace": namespace, "name": name, "uid": run_uid}


def result_row(row: LedgerRow) -> dict[str, Any]:
    """Return a ledger row as a line of ``results.jsonl``."""
    return {
        "seed": row.key.case.seed,
        "case_id": row.key.case.case_id,
        "repeat": row.key.case.repeat,
        "attempt": row.key.attempt,
        "kind": row.kind,
        "status": row.status,
        "checks": row.checks,
        "reason": row.reason,
        "error": row.error,
        "digest": row.digest,
        "seconds": row.seconds,
        "pod_uid": row.pod_uid,
        "ended_at": row.ended_at,
    }


def row_of_result(document: Mapping[str, Any]) -> LedgerRow:
    """Read ``result_row`` back; ``KeyError``, ``TypeError`` or ``ValueError`` for what is no such row."""
    case = CaseKey(int(document["seed"]), str(document["case_id"]), int(document["repeat"]))
    kind = document["kind"]
    if kind not in ("verdict", "environment", "interruption", "suspended"):
        raise ValueError(f"kind {kind!r} is none of verdict, environment, interruption, suspended")
    return LedgerRow(
        key=AttemptKey(case, int(document["attempt"])),
        kind=kind,
        status=str(document["status"]),
        checks=str(document["checks"]),
        reason=document["reason"],
        error=document["error"],
        digest=document["digest"],
        seconds=document["seconds"],
        pod_uid=str(document["pod_uid"]),
        ended_at=float(document["ended_at"]),
    )


def results_file(rows: Iterable[LedgerRow]) -> bytes:
    """Return ``results.jsonl``: every row as canonical JSON, sorted by seed, case, repeat and attempt."""
    return b"".join(json_file(result_row(row)) for row in sorted(rows, key=lambda row: row.key))


def run_document(
    *,
    name: str,
    namespace: str,
    run_uid: str,
    spec: Mapping[str, Any],
    seeds: Sequence[int],
    plan: bytes,
    results: bytes,
    score: Mapping[str, Any],
    regrade: Mapping[str, Any] | None = None,
    usage: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return ``run.json``. ``plan`` and ``results`` are the bytes of those files, ``score`` is of ``core.scoring``.

    ``regrade`` is of a run whose records are another's: that one's name, UID and root digest. ``usage`` is of
    ``core.usage``, None where no model was asked or nobody knows.
    """
    return {
        "v": 1,
        "name": name,
        "namespace": namespace,
        "uid": run_uid,
        "spec": {name: value for name, value in spec.items() if name not in CHANGEABLE},
        "seeds": list(seeds),
        "plan_sha256": sha256_bytes(plan),
        "results_sha256": sha256_bytes(results),
        "score": dict(score),
        **({} if regrade is None else {"regrade": dict(regrade)}),
        **({} if usage is None else {"usage": dict(usage)}),
    }


def root_digest(run_file: bytes) -> str:
    """Return what ``status.evidence.digest`` holds: ``sha256:`` and the digest of the bytes of ``run.json``."""
    return f"sha256:{sha256_bytes(run_file)}"
