"""The file that sums an audit up: which runs it rests on, by their root digests, and the judgement over them. Pure.

``audit.json`` lies in the audit's own folder of the store, with ``meta.json`` and ``plan.json``; the SHA-256 of its
bytes is the audit's root digest. By the root digests of the runs it reaches every bundle of every control.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from casewarden_sdk.canonical import sha256_bytes

__all__ = ["audit_document"]


def audit_document(
    *,
    name: str,
    namespace: str,
    uid: str,
    spec: Mapping[str, Any],
    plan: bytes,
    runs: Sequence[Mapping[str, Any]],
    judgement: Mapping[str, Any],
    mutants: bytes | None = None,
) -> dict[str, Any]:
    """Return ``audit.json``. ``runs`` have ``control``, ``name``, ``uid`` and ``digest`` (None where there is none).

    ``mutants`` are the bytes of ``mutants.jsonl``, where the grader's mutants were asked for and the audit passed.
    """
    return {
        "v": 1,
        "name": name,
        "namespace": namespace,
        "uid": uid,
        "spec": dict(spec),
        "plan_sha256": sha256_bytes(plan),
        "runs": [dict(run) for run in runs],
        "judgement": dict(judgement),
        **({} if mutants is None else {"mutants_sha256": sha256_bytes(mutants)}),
    }
