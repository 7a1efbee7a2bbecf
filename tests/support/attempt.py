"""An attempt's settings and a sink that keeps everything in memory, for tests of the recorder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from casewarden.casepod.settings import Places, Settings
from casewarden_sdk.bundle import unpack_bundle
from casewarden_sdk.canonical import sha256_bytes
from casewarden_sdk.contract import Case
from casewarden_sdk.errors import EnvironmentFailure

__all__ = ["LIMITS", "MemorySink", "attempt_document", "settings_for"]

LIMITS: Mapping[str, Any] = {
    "case_seconds": 20,
    "response_seconds": 5,
    "start_seconds": 10,
    "actions": None,
    "output_bytes": 65536,
    "request_bytes": 8192,
    "processes": 64,
    "state_mib": 16,
    "hold_seconds": 5,
}


def attempt_document(case: Case, **changes: Any) -> dict[str, Any]:
    """Return what the operator writes into ``CASEWARDEN_ATTEMPT``; ``changes`` replace top-level fields."""
    return {
        "run_uid": "run-1",
        "seed": 17,
        "case_id": case.id,
        "repeat": 0,
        "attempt": 1,
        "pod_name": "run-abc-1",
        "pod_uid": "pod-1",
        "case_sha256": case.sha256,
        "dimensions": sorted(case.dimensions),
        "limits": dict(LIMITS),
        "candidate": {"argv": None, "default_argv": ["{python}", "-I", "-B", "main.py"], "env": [], "network": "none"},
        "relay_url": "http://relay:8080",
        **changes,
    }


def settings_for(case: Case, scratch: Path, *, loss_grace: float = 0.0, **changes: Any) -> Settings:
    """Return settings whose places are all in ``scratch``; ``limits`` may be given in part."""
    for folder in ("s", "state", "candidate", "home", "spool"):
        (scratch / folder).mkdir(exist_ok=True)
    if "limits" in changes:
        changes["limits"] = {**LIMITS, **changes["limits"]}
    places = Places(
        task_socket=str(scratch / "s" / "t"),
        candidate_socket=str(scratch / "s" / "c"),
        spool=str(scratch / "spool"),
        token=str(scratch / "token"),
        own_workspace=str(scratch / "candidate"),
        workspace=str(scratch / "candidate"),
        state=str(scratch / "state"),
        home=str(scratch / "home"),
    )
    return Settings.from_json(attempt_document(case, **changes), places, loss_grace)


class MemorySink:
    """An ``EvidenceSink`` for one attempt. ``claimed`` and ``sealed`` by others, or ``away``, can be set."""

    def __init__(self) -> None:
        self.claims = 0
        self.claimed_by_another = False
        self.sealed_by_another = False
        self.away = False
        self.bundles: dict[bool, bytes] = {}
        self.sealed: dict[str, Any] | None = None
        self.workspace = b""

    def files(self, *, partial: bool = False) -> dict[str, bytes]:
        """Return the files of the bundle that was kept."""
        from casewarden.casepod.zstd import decompress

        return unpack_bundle(self.bundles[partial], decompress)

    async def claim(self) -> bool:
        """See ``EvidenceSink``."""
        self._check()
        self.claims += 1
        return not self.claimed_by_another

    async def fetch_workspace(self, digest: str) -> bytes:
        """See ``EvidenceSink``."""
        self._check()
        return self.workspace

    async def put_bundle(self, data: bytes, *, partial: bool) -> None:
        """See ``EvidenceSink``."""
        self._check()
        self.bundles[partial] = data

    async def put_sealed(self, document: Mapping[str, Any]) -> bool:
        """See ``EvidenceSink``; the order of a relay holds: a seal needs its bundle."""
        self._check()
        assert sha256_bytes(self.bundles[False]) == document["digest"]
        if not self.sealed_by_another:
            self.sealed = dict(document)
        return not self.sealed_by_another

    def _check(self) -> None:
        if self.away:
            raise EnvironmentFailure("StoreUnavailable", "the store is away")
