"""Puts an attempt's evidence together: the bundle and the sealed document. Pure, but for compression."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from casewarden import __version__
from casewarden_sdk import __version__ as sdk_version
from casewarden_sdk.bundle import pack_bundle, sealed_document
from casewarden_sdk.canonical import canonical
from casewarden_sdk.contract import ENVIRONMENT_ERROR, Verdict, check_bits
from casewarden_sdk.errors import ContractError
from casewarden_sdk.termination import cut_text

from .settings import Settings
from .transcript import Transcript
from .zstd import compress

__all__ = ["ERROR_BYTES", "Evidence", "checked_verdict"]

ERROR_BYTES = 300


@dataclass
class Evidence:
    """What has been gathered so far. Times are seconds since the epoch."""

    settings: Settings
    transcript: Transcript
    started: float
    case: bytes = b""
    record: bytes = b""
    states: list[bytes] = field(default_factory=list)
    usage: Mapping[str, Any] | None = None
    """Of the candidate's model; None where it has none."""
    task_usage: Mapping[str, Any] = field(default_factory=dict)
    """Of the models that the driver asked, by role."""

    def bundle(
        self, ended: float, *, verdict: Mapping[str, Any] | None = None, trouble: Mapping[str, Any] | None = None
    ) -> bytes:
        """Return the compressed bundle; without a ``verdict`` it is partial and ``trouble`` says why."""
        settings = self.settings
        attempt = {
            "v": 1,
            "run_uid": settings.run_uid,
            "seed": settings.seed,
            "case_id": settings.case_id,
            "repeat": settings.repeat,
            "attempt": settings.attempt,
            "pod_uid": settings.pod_uid,
            "versions": {"casewarden": __version__, "sdk": sdk_version, "python": platform.python_version()},
            "limits": dict(settings.told_limits),
            "partial": verdict is None,
            "started": round(self.started, 6),
            "ended": round(ended, 6),
            **({} if self.usage is None else {"usage": dict(self.usage)}),
            **({"task_usage": dict(self.task_usage)} if self.task_usage else {}),
            **(trouble or {}),
        }
        files = {
            "attempt.json": _json(attempt),
            "transcript.jsonl": self.transcript.data(),
            "states.jsonl": b"".join(self.states),
        }
        if self.case:
            files["case.json"] = self.case
        if self.record:
            files["record.json"] = self.record
        if verdict is not None:
            files["verdict.json"] = _json(verdict)
        return pack_bundle(files, compress)

    def verdict_document(self, verdict: Verdict, seconds: float) -> dict[str, Any]:
        """Return ``verdict.json``: the driver's verdict with what only the recorder knows."""
        return {
            **verdict.to_json(),
            "duration_seconds": seconds,
            "transcript_sha256": self.transcript.sha256(),
            "seed": self.settings.seed,
            "repeat": self.settings.repeat,
            "attempt": self.settings.attempt,
        }

    def sealed(self, verdict: Verdict, digest: str, seconds: float) -> dict[str, Any]:
        """Return ``sealed.json``."""
        settings = self.settings
        return sealed_document(
            run_uid=settings.run_uid,
            seed=settings.seed,
            case_id=settings.case_id,
            repeat=settings.repeat,
            attempt=settings.attempt,
            pod_uid=settings.pod_uid,
            digest=digest,
            status=verdict.status,
            checks=check_bits(verdict.checks),
            reason=verdict.reason,
            error=cut_text(verdict.error, ERROR_BYTES),
            seconds=seconds,
        )


def checked_verdict(settings: Settings, document: Any) -> Verdict:
    """Read the driver's verdict; ``ContractError`` for one that this attempt cannot have."""
    if not isinstance(document, Mapping):
        raise ContractError(f"the verdict is a {type(document).__name__}; it must be an object")
    verdict = Verdict.from_json(document)
    if verdict.case_id != settings.case_id:
        raise ContractError(f"the verdict is of case {verdict.case_id!r}; this attempt is of {settings.case_id!r}")
    if set(verdict.checks) != set(settings.dimensions):
        raise ContractError(f"the verdict checks {sorted(verdict.checks)}; the case has {sorted(settings.dimensions)}")
    if verdict.status == ENVIRONMENT_ERROR:
        raise ContractError("an environment error is abandoned, never sealed")
    return verdict


def _json(document: Mapping[str, Any]) -> bytes:
    return canonical(dict(document)).encode("ascii") + b"\n"
