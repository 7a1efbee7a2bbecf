"""The rule ``agentbench/v1``: what goes to the pack's own ``calculate_overall``, and the files that come of it.

Pure: bundles in, rows and files out. ``overall.json``, ``runs.jsonl`` and ``error.jsonl`` have AgentBench's form; their
digests are in the score document, and by that in the run's root digest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from casewarden.core.bundle_check import Decompress, strict_json
from casewarden.core.model import AttemptKey, CaseKey, LedgerRow
from casewarden.core.scoring import OwnScore
from casewarden.core.tally import status_of
from casewarden_sdk.agentbench.overall import files_of
from casewarden_sdk.bundle import BundleError, unpack_bundle
from casewarden_sdk.canonical import canonical, sha256_bytes

__all__ = ["FILES", "Place", "assessed_lines", "outcome_row", "own_files", "own_score", "places", "read_aggregate"]

# What a status can hold; the API server refuses any other, and such a run would never end.
_SCORE: Final = re.compile(r"0(\.[0-9]{1,8})?|1(\.0{1,8})?")
FILES: Final = ("overall.json", "runs.jsonl", "error.jsonl")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a case's record lies: the bundle of that attempt, whole or partial."""

    attempt: AttemptKey
    partial: bool


def places(index: Iterable[Mapping[str, Any]], settled: Mapping[CaseKey, LedgerRow]) -> dict[CaseKey, Place]:
    """Return where the record of each settled case is, by the relay's index of the run; cases without one are left out.

    What was sealed is in the bundle of the attempt that sealed it. What was not may have a partial bundle: of the last
    attempt that left one.
    """
    sealed: dict[CaseKey, int] = {}
    partial: dict[CaseKey, int] = {}
    for line in index:
        document = line.get("sealed") if line["kind"] == "sealed" else line
        if not isinstance(document, Mapping) or line["kind"] not in ("sealed", "partial"):
            continue
        key = CaseKey(document["seed"], document["case_id"], document["repeat"])
        found = sealed if line["kind"] == "sealed" else partial
        found[key] = max(found.get(key, -1), document["attempt"])
    made: dict[CaseKey, Place] = {}
    for key, row in settled.items():
        if row.digest is not None and key in sealed:
            made[key] = Place(AttemptKey(key, sealed[key]), False)
        elif row.digest is None and key in partial:
            made[key] = Place(AttemptKey(key, partial[key]), True)
    return made


def outcome_row(
    key: CaseKey, row: LedgerRow, params: Mapping[str, Any], bundle: bytes | None, decompress: Decompress
) -> dict[str, Any]:
    """Return what a case came to as aggregation and files take it; ``ValueError`` for a bundle that is none.

    Without a bundle, or without a record in it, there is no ``output``, and the index is read off the case's id.
    """
    files = {} if bundle is None else unpack_bundle(bundle, decompress)
    record, content = _document(files, "record.json"), _document(files, "case.json")
    output = record.get("output") if isinstance(record, Mapping) else None
    index = content.get("index", _index_of(key.case_id)) if isinstance(content, Mapping) else _index_of(key.case_id)
    return {
        "seed": key.seed,
        "case_id": key.case_id,
        "repeat": key.repeat,
        "params": dict(params),
        "index": index,
        "status": status_of(row),
        "reason": row.reason,
        "error": row.error,
        "output": output if isinstance(output, Mapping) else None,
        "ended_at": row.ended_at,
    }


def assessed_lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the rows that count, as the verb ``aggregate`` reads them: a canonical JSON line each."""
    counted = (row for row in rows if row["status"] != "environment_error")
    return "".join(f"{canonical(row)}\n" for row in counted).encode("ascii")


def read_aggregate(document: Any, *, any_assessed: bool) -> tuple[str | None, dict[str, Any]]:
    """Return the score and ``overall.json`` in an answer of the verb ``aggregate``; ``ValueError`` for what is none.

    The score may be absent only where no case was assessed: an absent one is never shown as 0.
    """
    if not isinstance(document, Mapping) or set(document) != {"score", "overall"}:
        raise ValueError("the task's aggregate must answer with score and overall, and nothing else")
    score, overall = document["score"], document["overall"]
    if not isinstance(overall, dict) or not (score is None or isinstance(score, str)):
        raise ValueError("the task's aggregate must answer with a score as a text, and overall as an object")
    if score is not None and _SCORE.fullmatch(score) is None:
        raise ValueError(f"the task's aggregate has the score {score[:40]!r}: a score is a decimal from 0 to 1")
    if score is None and any_assessed:
        raise ValueError("the task's aggregate has no score for cases that were assessed: answer with a decimal")
    return score, overall


def own_files(rows: Sequence[Mapping[str, Any]], overall: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the three files."""
    return files_of(rows, overall)


def own_score(score: str | None, files: Mapping[str, bytes]) -> OwnScore:
    """Return what the score document is to hold."""
    return OwnScore(score, {name: sha256_bytes(data) for name, data in sorted(files.items())})


def _document(files: Mapping[str, bytes], name: str) -> Any:
    if name not in files or not files[name].strip():
        return None
    try:
        return strict_json(files[name])
    except ValueError as error:
        raise BundleError(f"{name}: {error}") from None


def _index_of(case_id: str) -> int | str:
    return int(case_id) if case_id.isdecimal() else case_id
