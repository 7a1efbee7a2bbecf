"""What is kept of an attempt: the bundle, its transcript, the sealed document. Written and read here and nowhere else.

A bundle is a tar archive, compressed by what the caller gives in (zstandard in the project), whose bytes depend on its
files alone. ``docs/internals/wire.md`` section 4 has the formats.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from typing import Any, Callable, Dict, Iterable, Mapping, Optional

from .canonical import canonical
from .contract import ENVIRONMENT_ERROR, STATUSES
from .wire import WIRE_VERSION

__all__ = [
    "BUNDLE_FILES",
    "MAX_BUNDLE_BYTES",
    "BundleError",
    "TranscriptDigest",
    "case_prefix",
    "pack_bundle",
    "read_sealed",
    "sealed_document",
    "transcript_row",
    "transcript_sha256",
    "unpack_bundle",
]

BUNDLE_FILES = ("attempt.json", "case.json", "record.json", "verdict.json", "transcript.jsonl", "states.jsonl")
MAX_BUNDLE_BYTES = 256 << 20
_SEALED_FIELDS = {
    "v": int,
    "run_uid": str,
    "seed": int,
    "case_id": str,
    "repeat": int,
    "attempt": int,
    "pod_uid": str,
    "digest": str,
    "status": str,
    "checks": str,
}


class BundleError(ValueError):
    """Bytes that claim to be evidence and are none; the message says what is wrong with them."""


def case_prefix(run_uid: str, seed: int, case_id: str, repeat: int) -> str:
    """Return the store's key of a case, without a slash at its end."""
    return f"runs/{run_uid}/{seed}/{case_id}/{repeat}"


def transcript_row(t: float, session: int, direction: str, data: bytes) -> Dict[str, Any]:
    """Make a row; ``t`` is seconds since the first start. Bytes that are no UTF-8 are kept as ``base64``."""
    row: Dict[str, Any] = {"t": round(t, 6), "session": session, "dir": direction}
    try:
        row["text"] = data.decode("utf-8")
    except UnicodeDecodeError:
        row["base64"] = base64.b64encode(data).decode("ascii")
    return row


class TranscriptDigest:
    """The running SHA-256 over the lines that went in and came out, without their times."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a row; rows that are neither ``in`` nor ``out`` count nothing."""
        if row.get("dir") in ("in", "out"):
            said = row["text"] if "text" in row else {"base64": row["base64"]}
            self._digest.update(canonical([row["session"], row["dir"], said]).encode("ascii") + b"\n")

    def hexdigest(self) -> str:
        """Return the digest of the rows so far."""
        return self._digest.hexdigest()


def transcript_sha256(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the digest of a whole transcript."""
    digest = TranscriptDigest()
    for row in rows:
        digest.add(row)
    return digest.hexdigest()


def pack_bundle(files: Mapping[str, bytes], compress: Callable[[bytes], bytes]) -> bytes:
    """Return the bytes of a bundle; ``BundleError`` for a name that no bundle has."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            if name not in BUNDLE_FILES:
                raise BundleError(f"{name!r} is no file of a bundle")
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(files[name]), 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    return compress(buffer.getvalue())


def unpack_bundle(data: bytes, decompress: Callable[[bytes, int], bytes]) -> Dict[str, bytes]:
    """Read a bundle back. ``decompress`` gets the largest size it may return and raises ``ValueError`` beyond it."""
    files: Dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(decompress(data, MAX_BUNDLE_BYTES)), mode="r:") as archive:
            for entry in archive:
                if not entry.isreg() or entry.name not in BUNDLE_FILES or entry.name in files:
                    raise BundleError(f"the bundle holds {entry.name!r}, which no bundle has (or twice)")
                content = archive.extractfile(entry)
                files[entry.name] = content.read() if content else b""
    except BundleError:
        raise
    except (tarfile.TarError, ValueError, OSError) as error:
        raise BundleError(f"the bundle cannot be read: {error}") from None
    return files


def sealed_document(
    run_uid: str,
    seed: int,
    case_id: str,
    repeat: int,
    attempt: int,
    pod_uid: str,
    digest: str,
    status: str,
    checks: str,
    reason: Optional[str],
    error: Optional[str],
    seconds: float,
) -> Dict[str, Any]:
    """Make ``sealed.json``, the commit point of a case."""
    document = {
        "v": WIRE_VERSION,
        "run_uid": run_uid,
        "seed": seed,
        "case_id": case_id,
        "repeat": repeat,
        "attempt": attempt,
        "pod_uid": pod_uid,
        "digest": digest,
        "status": status,
        "checks": checks,
        "reason": reason,
        "error": error,
        "seconds": seconds,
    }
    return read_sealed(canonical(document))


def read_sealed(text: str | bytes) -> Dict[str, Any]:
    """Read ``sealed.json``; ``BundleError`` for what is none. An environment error is never sealed."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BundleError(f"sealed.json is no JSON: {error}") from None
    if not isinstance(document, dict):
        raise BundleError("sealed.json is no object")
    for name, kind in _SEALED_FIELDS.items():
        if not isinstance(document.get(name), kind) or isinstance(document.get(name), bool):
            raise BundleError(f"sealed.json: {name} is {document.get(name)!r}")
    if document["v"] != WIRE_VERSION:
        raise BundleError(f"sealed.json: version {document['v']} is not {WIRE_VERSION}")
    if document["status"] not in STATUSES or document["status"] == ENVIRONMENT_ERROR:
        raise BundleError(f"sealed.json: status {document['status']!r} is none that is sealed")
    if not document["checks"] or set(document["checks"]) - set("01"):
        raise BundleError(f"sealed.json: checks {document['checks']!r} are no bits")
    return document
