"""The relay over HTTP, as the operator: looks seals up, writes a run's own files, finds uploaded workspaces."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol, Self
from urllib.parse import quote

import aiohttp

from casewarden.adapters.stores.zstd import decompress
from casewarden.ports.clock import Clock, SystemClock
from casewarden.ports.evidence import EvidenceRefused, EvidenceUnavailable
from casewarden_sdk.bundle import MAX_BUNDLE_BYTES
from casewarden_sdk.canonical import sha256_bytes

__all__ = ["RelayClient"]

_TRIES = 4
_MAX_DOCUMENT = 1 << 20
_MAX_FILE = 256 << 20
_MAX_WORKSPACE = 32 << 20


class _Token(Protocol):
    async def header(self, *, fresh: bool = False) -> str | None: ...


class RelayClient:
    """See ``ports.evidence.Evidence``. Use as an async context manager.

    A call is tried up to four times within some seconds and then raises ``EvidenceUnavailable``; whoever asked decides
    how long to go on. ``token`` is a projected service-account token of audience ``casewarden-relay``.
    """

    def __init__(
        self, url: str, token: _Token | None, *, clock: Clock | None = None, request_seconds: float = 30.0
    ) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._clock = clock or SystemClock()
        self._timeout = aiohttp.ClientTimeout(total=request_seconds, sock_connect=5)
        self._session: aiohttp.ClientSession | None = None
        self._rng = random.Random()  # noqa: S311 - jitter only

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=32), timeout=self._timeout)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session:
            await self._session.close()

    async def sealed(self, run_uid: str, seed: int, case_id: str, repeat: int) -> dict[str, Any] | None:
        """See ``Evidence``."""
        path = f"/v1/runs/{run_uid}/cases/{seed}/{quote(case_id, safe='')}/{repeat}/sealed"
        body = await self._call("GET", path, limit=_MAX_DOCUMENT, none_on_404=True)
        return None if body is None else _object(body, path)

    async def put_file(self, run_uid: str, name: str, data: bytes) -> None:
        """See ``Evidence``."""
        await self._call("PUT", f"/v1/runs/{run_uid}/files/{name}", data=data, limit=_MAX_DOCUMENT)

    async def get_file(self, run_uid: str, name: str) -> bytes | None:
        """See ``Evidence``."""
        return await self._call("GET", f"/v1/runs/{run_uid}/files/{name}", limit=_MAX_FILE, none_on_404=True)

    async def index(self, run_uid: str) -> list[dict[str, Any]]:
        """See ``Evidence``."""
        path = f"/v1/runs/{run_uid}/index"
        body = await self._call("GET", path, limit=_MAX_FILE, none_on_404=True)
        return [_object(line, path) for line in (body or b"").splitlines() if line.strip()]

    async def bundle(self, run_uid: str, path: str, *, partial: bool) -> tuple[str, bytes] | None:
        """See ``Evidence``."""
        where = f"/v1/runs/{run_uid}/cases/{path}/bundle{'?partial=1' if partial else ''}"
        data = await self._call("GET", where, limit=MAX_BUNDLE_BYTES, none_on_404=True)
        if data is None:
            return None
        try:
            return sha256_bytes(data), await asyncio.to_thread(decompress, data, MAX_BUNDLE_BYTES)
        except ValueError as error:
            raise EvidenceRefused(f"relay: {where}: no bundle: {error}") from None

    async def workspace(self, namespace: str, digest: str) -> bytes | None:
        """See ``Evidence``."""
        return await self._call("GET", _workspace(namespace, digest), limit=_MAX_WORKSPACE, none_on_404=True)

    async def has_workspace(self, namespace: str, digest: str) -> bool:
        """See ``Evidence``; the body is not read."""
        return await self._call("GET", _workspace(namespace, digest), limit=0, none_on_404=True) is not None

    async def _call(
        self, method: str, path: str, *, limit: int, data: bytes | None = None, none_on_404: bool = False
    ) -> bytes | None:
        failure = ""
        for attempt in range(_TRIES):
            if attempt:
                await self._clock.sleep(0.2 * (1 << attempt) * self._rng.uniform(0.5, 1.0))
            try:
                status, body = await self._send(method, path, data, limit, fresh=attempt > 0)
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                failure = f"{type(error).__name__}: {error}"
                continue
            if status < 300:
                return body
            if status == 404 and none_on_404:
                return None
            failure = f"{status} {_reason(body)}"
            # 401 may be a token that has just been rotated; anything else below 500 is the relay's last word.
            if status < 500 and status not in (401, 408, 429):
                raise EvidenceRefused(f"relay: {method} {path}: {failure}")
        raise EvidenceUnavailable(f"relay at {self._url}: {method} {path}: {failure}")

    async def _send(self, method: str, path: str, data: bytes | None, limit: int, *, fresh: bool) -> tuple[int, bytes]:
        if self._session is None:
            raise RuntimeError("RelayClient is used outside its context")
        headers = {}
        if self._token and (value := await self._token.header(fresh=fresh)):
            headers["Authorization"] = value
        async with self._session.request(
            method, self._url + path, data=data, headers=headers, allow_redirects=False
        ) as response:
            if response.status < 300 and limit == 0:
                return response.status, b""
            chunks, size = [], 0
            async for chunk in response.content.iter_any():
                size += len(chunk)
                if size > max(limit, 4096):
                    raise EvidenceRefused(f"relay: {method} {path}: an answer of more than {limit} bytes")
                chunks.append(chunk)
            return response.status, b"".join(chunks)


def _workspace(namespace: str, digest: str) -> str:
    return f"/v1/workspaces/{namespace}/{digest.removeprefix('sha256:')}"


def _object(body: bytes, path: str) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise EvidenceUnavailable(f"relay: {path}: the answer is no JSON object")
    return document


def _reason(body: bytes) -> str:
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if isinstance(document, Mapping):
        return f"{document.get('reason', '')}: {document.get('error', '')}"[:500]
    return body[:200].decode("utf-8", "replace")
