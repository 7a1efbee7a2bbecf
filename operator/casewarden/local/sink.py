"""The recorder's evidence, put into a store directly: what the relay does for a pod, without the relay."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar

from casewarden.casepod.settings import Settings
from casewarden.core.evidence import EvidenceKey, json_file, run_key
from casewarden.core.model import CaseKey
from casewarden.ports.store import NotFound, Store, StoreError
from casewarden_sdk.bundle import MAX_BUNDLE_BYTES
from casewarden_sdk.canonical import sha256_bytes
from casewarden_sdk.errors import EnvironmentFailure

__all__ = ["StoreSink"]

T = TypeVar("T")
_DOCUMENT_BYTES = 64 << 10


class StoreSink:
    """An ``EvidenceSink`` with the relay's order: only who claimed uploads, and the first seal counts."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings
        self._case = CaseKey(settings.seed, settings.case_id, settings.repeat)

    async def claim(self) -> bool:
        """Claim the attempt; False where another process has it or the case is sealed."""
        if await self._document(self._key("sealed")) is not None:
            return False
        settings = self._settings
        claim = {"v": 1, "pod_uid": settings.pod_uid, "pod_name": settings.pod_name, "at": round(time.time(), 3)}
        key, data = self._key("claim"), json_file(claim)
        return (await self._asked(self._store.put_if_absent(key, data, limit=_DOCUMENT_BYTES))).created

    async def fetch_workspace(self, digest: str) -> bytes:
        """Refuse: a local candidate's folder is laid out before its recorder starts."""
        raise EnvironmentFailure("EvidenceFailed", f"a local run fetches no workspace ({digest})")

    async def put_bundle(self, data: bytes, *, partial: bool) -> None:
        """Keep the bundle."""
        key = self._key("partial" if partial else "bundle")
        put = await self._asked(self._store.put_if_absent(key, data, limit=MAX_BUNDLE_BYTES))
        if not put.created:
            there = await self._asked(self._store.get(key, limit=MAX_BUNDLE_BYTES))
            if sha256_bytes(there) != put.sha256:
                raise EnvironmentFailure("EvidenceFailed", f"{key} is there with other content")

    async def put_sealed(self, document: Mapping[str, Any]) -> bool:
        """Put ``sealed.json`` if the case has none."""
        key, data = self._key("sealed"), json_file(document)
        put = await self._asked(self._store.put_if_absent(key, data, limit=_DOCUMENT_BYTES))
        return put.created or await self._document(key) == data

    def _key(self, kind: Any) -> str:
        attempt = None if kind == "sealed" else self._settings.attempt
        return run_key(self._settings.run_uid, EvidenceKey(self._case, kind, attempt).path())

    async def _document(self, key: str) -> bytes | None:
        try:
            return await self._store.get(key, limit=_DOCUMENT_BYTES)
        except NotFound:
            return None
        except StoreError as error:
            raise _away(error) from None

    async def _asked(self, call: Awaitable[T]) -> T:
        try:
            return await call
        except StoreError as error:
            raise _away(error) from None


def _away(error: StoreError) -> EnvironmentFailure:
    return EnvironmentFailure("StoreUnavailable", str(error))
