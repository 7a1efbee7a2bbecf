"""Does a bundle hold what its row, its seal and the plan say of it? Pure: bytes in, findings out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from casewarden.api.plan import PlanCase
from casewarden.core.evidence import SEALED_FIELDS
from casewarden.core.model import LedgerRow
from casewarden_sdk.bundle import BundleError, transcript_sha256, unpack_bundle
from casewarden_sdk.canonical import canonical_equal, sha256_bytes, sha256_json
from casewarden_sdk.contract import Verdict, check_bits
from casewarden_sdk.errors import ContractError
from casewarden_sdk.termination import cut_text

__all__ = ["Bundle", "Decompress", "check_bundle", "check_sealed_row", "read_bundle", "strict_json"]

Decompress = Callable[[bytes, int], bytes]
SEALED_ERROR_BYTES: Final = 300


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle's documents, parsed; ``content`` is the case's."""

    attempt: Mapping[str, Any]
    content: Mapping[str, Any]
    record: Any
    verdict: Mapping[str, Any]
    transcript: tuple[Mapping[str, Any], ...]
    states: tuple[Mapping[str, Any], ...]


def strict_json(data: bytes) -> Any:
    """Parse JSON that says one thing only: ``ValueError`` for a repeated key, NaN or infinity."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a key is there twice")
        return found

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is no number")

    try:
        return json.loads(data, object_pairs_hook=unique, parse_constant=refuse)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_bundle(data: bytes, decompress: Decompress) -> Bundle:
    """Read a bundle; ``ValueError`` says which of its files is missing or broken."""
    files = unpack_bundle(data, decompress)
    documents: dict[str, Any] = {}
    for name in ("attempt", "case", "record", "verdict"):
        try:
            documents[name] = strict_json(files[f"{name}.json"])
        except KeyError:
            raise BundleError(f"{name}.json is missing") from None
        except ValueError as error:
            raise BundleError(f"{name}.json: {error}") from None
    for name in ("attempt", "case", "verdict"):
        if not isinstance(documents[name], dict):
            raise BundleError(f"{name}.json is no object")
    return Bundle(
        attempt=documents["attempt"],
        content=documents["case"],
        record=documents["record"],
        verdict=documents["verdict"],
        transcript=_lines("transcript.jsonl", files),
        states=_lines("states.jsonl", files),
    )


def _lines(name: str, files: Mapping[str, bytes]) -> tuple[Mapping[str, Any], ...]:
    rows = []
    for number, line in enumerate(files.get(name, b"").split(b"\n"), 1):
        if line.strip():
            try:
                row = strict_json(line)
            except ValueError as error:
                raise BundleError(f"{name}, line {number}: {error}") from None
            if not isinstance(row, dict):
                raise BundleError(f"{name}, line {number}: is no object")
            rows.append(row)
    return tuple(rows)


def check_sealed_row(sealed: Mapping[str, Any], row: LedgerRow, run_uid: str) -> Iterator[str]:
    """Yield how ``sealed.json`` differs from the row that counts it."""
    if sealed.keys() != SEALED_FIELDS:
        yield f"sealed.json has other fields than a seal: {sorted(sealed.keys() ^ SEALED_FIELDS)}"
    case = row.key.case
    counted: dict[str, Any] = {
        "run_uid": run_uid, "seed": case.seed, "case_id": case.case_id, "repeat": case.repeat, "pod_uid": row.pod_uid,
        "digest": row.digest, "status": row.status, "checks": row.checks, "reason": row.reason,
    }  # fmt: skip
    for name, value in counted.items():
        if not canonical_equal(sealed.get(name), value):
            yield f"sealed.json has {name} {sealed.get(name)!r}, the results count {value!r}"


def check_bundle(
    data: bytes, bundle: Bundle, row: LedgerRow, sealed: Mapping[str, Any], planned: PlanCase
) -> Iterator[str]:
    """Yield what of a bundle contradicts the row that counts it, its seal or the plan."""
    if sha256_bytes(data) != row.digest:
        yield f"its digest is {sha256_bytes(data)}, the results count {row.digest}"
    case = row.key.case
    who: dict[str, Any] = {"seed": case.seed, "repeat": case.repeat, "attempt": sealed["attempt"]}
    for name, value in {**who, "run_uid": sealed["run_uid"], "case_id": case.case_id, "pod_uid": row.pod_uid}.items():
        if not canonical_equal(bundle.attempt.get(name), value):
            yield f"attempt.json has {name} {bundle.attempt.get(name)!r}, not {value!r}"
    if bundle.attempt.get("partial"):
        yield "attempt.json says that it is partial; a partial bundle is no evidence of a verdict"
    if sha256_json(bundle.content) != planned.sha256:
        yield f"case.json has the digest {sha256_json(bundle.content)}, the planned case {planned.sha256}"
    yield from _check_verdict(bundle, row, sealed, planned, who)


def _check_verdict(
    bundle: Bundle, row: LedgerRow, sealed: Mapping[str, Any], planned: PlanCase, who: Mapping[str, Any]
) -> Iterator[str]:
    try:
        verdict = Verdict.from_json(bundle.verdict)
    except (ContractError, KeyError, TypeError, ValueError) as error:
        yield f"verdict.json breaks the contract: {error}"
        return
    if verdict.case_id != row.key.case.case_id or set(verdict.checks) != set(planned.dimensions):
        yield f"verdict.json is of case {verdict.case_id!r} with checks {sorted(verdict.checks)}"
    for name, value in who.items():
        if not canonical_equal(bundle.verdict.get(name), value):
            yield f"verdict.json has {name} {bundle.verdict.get(name)!r}, not {value!r}"
    found, counted = (verdict.status, check_bits(verdict.checks), verdict.reason), (row.status, row.checks, row.reason)
    if found != counted:
        yield f"verdict.json says {found}, the results count {counted}"
    told = {"seconds": bundle.verdict.get("duration_seconds"), "error": cut_text(verdict.error, SEALED_ERROR_BYTES)}
    for name, value in told.items():
        if not canonical_equal(sealed.get(name), value):
            yield f"verdict.json comes to {name} {value!r}, sealed.json has {sealed.get(name)!r}"
    try:
        heard = transcript_sha256(bundle.transcript)
    except (KeyError, TypeError, ValueError) as error:
        yield f"transcript.jsonl has a malformed row: {error!r}"
        return
    if heard != bundle.verdict.get("transcript_sha256"):
        yield f"the transcript's digest is {heard}, verdict.json has {bundle.verdict.get('transcript_sha256')!r}"
