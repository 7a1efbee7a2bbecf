"""The relay as the operator sees it: what was sealed, a run's own files, uploaded workspaces."""

from __future__ import annotations

import json
from typing import Any, Protocol

__all__ = ["Evidence", "EvidenceRefused", "EvidenceUnavailable", "MemoryEvidence"]


class EvidenceUnavailable(Exception):
    """The relay or its store is away: the same call may succeed later."""


class EvidenceRefused(Exception):
    """The relay answered no, and will again; the message is its own."""


class Evidence(Protocol):
    """What the operator asks of the relay. Every call raises ``EvidenceUnavailable`` when it cannot be answered now."""

    async def sealed(self, run_uid: str, seed: int, case_id: str, repeat: int) -> dict[str, Any] | None:
        """Return ``sealed.json`` of a case, or None where nothing is sealed."""

    async def put_file(self, run_uid: str, name: str, data: bytes) -> None:
        """Write ``meta.json``, ``plan.json`` (other content is refused), ``results.jsonl`` or ``run.json``."""

    async def get_file(self, run_uid: str, name: str) -> bytes | None:
        """Read such a file back, or None."""

    async def index(self, run_uid: str) -> list[dict[str, Any]]:
        """Return every ``sealed.json`` and bundle of a run, one document each."""

    async def bundle(self, run_uid: str, path: str, *, partial: bool) -> tuple[str, bytes] | None:
        """Return the bundle of an attempt, or what is left of one that never sealed; None where there is none.

        That is the SHA-256 of its bytes, and its tar archive. ``path`` is ``<seed>/<case>/<repeat>/<attempt>``.
        """

    async def workspace(self, namespace: str, digest: str) -> bytes | None:
        """Return an uploaded workspace (tar.zst), or None."""

    async def has_workspace(self, namespace: str, digest: str) -> bool:
        """Tell whether a workspace of that digest was uploaded to the namespace."""


class MemoryEvidence:
    """A fake that ships: keeps everything in dictionaries. ``away`` makes every call unavailable."""

    def __init__(self) -> None:
        self.seals: dict[tuple[str, int, str, int], dict[str, Any]] = {}
        self.files: dict[tuple[str, str], bytes] = {}
        self.workspaces: dict[tuple[str, str], bytes] = {}
        self.bundles: dict[tuple[str, str, bool], tuple[str, bytes]] = {}
        self.away = False
        self.lookups = 0

    def seal(self, document: dict[str, Any]) -> bool:
        """Seal a case, as a case pod does; False where another attempt was first."""
        key = (document["run_uid"], document["seed"], document["case_id"], document["repeat"])
        return self.seals.setdefault(key, document) is document

    async def sealed(self, run_uid: str, seed: int, case_id: str, repeat: int) -> dict[str, Any] | None:
        """See ``Evidence``."""
        self._check()
        self.lookups += 1
        return self.seals.get((run_uid, seed, case_id, repeat))

    async def put_file(self, run_uid: str, name: str, data: bytes) -> None:
        """See ``Evidence``."""
        self._check()
        old = self.files.setdefault((run_uid, name), data)
        if old != data:
            if name in ("meta.json", "plan.json"):
                raise EvidenceRefused(f"{name} of run {run_uid} is there with other content")
            self.files[run_uid, name] = data

    async def get_file(self, run_uid: str, name: str) -> bytes | None:
        """See ``Evidence``."""
        self._check()
        return self.files.get((run_uid, name))

    async def index(self, run_uid: str) -> list[dict[str, Any]]:
        """See ``Evidence``."""
        self._check()
        return [
            {"kind": "sealed", "sealed": json.loads(json.dumps(document))}
            for key, document in sorted(self.seals.items())
            if key[0] == run_uid
        ]

    async def bundle(self, run_uid: str, path: str, *, partial: bool) -> tuple[str, bytes] | None:
        """See ``Evidence``."""
        self._check()
        return self.bundles.get((run_uid, path, partial))

    async def workspace(self, namespace: str, digest: str) -> bytes | None:
        """See ``Evidence``."""
        self._check()
        return self.workspaces.get((namespace, digest))

    async def has_workspace(self, namespace: str, digest: str) -> bool:
        """See ``Evidence``."""
        self._check()
        return (namespace, digest) in self.workspaces

    def _check(self) -> None:
        if self.away:
            raise EvidenceUnavailable("the fake relay is away")
