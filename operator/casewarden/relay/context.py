"""What every call shares, and how a call reads its path and its body."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from casewarden.core.evidence import META, run_key
from casewarden.core.model import AttemptKey, CaseKey
from casewarden.ports.store import NotFound, Store, StoreError
from casewarden.relay.auth import Authenticator, Identity
from casewarden.relay.metrics import RelayMetrics
from casewarden.relay.refusal import Refusal

__all__ = [
    "Context",
    "Limits",
    "attempt_key",
    "body_pieces",
    "case_key",
    "namespace_of",
    "number",
    "read_body",
    "refuse_announced",
    "run_uid_of",
]

_LOG = logging.getLogger("casewarden.relay")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_CASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, times in seconds.

    ``workspace_bytes`` is of the archive: a folder's 10 MiB at worst and the headers of 1000 files. ``idle_seconds`` is
    how long an upload may send nothing.
    """

    bundle_bytes: int = 64 << 20
    workspace_bytes: int = 12 << 20
    file_bytes: int = 64 << 20
    document_bytes: int = 64 << 10
    uploads: int = 32
    wait_seconds: float = 10.0
    idle_seconds: float = 30.0
    upload_seconds: float = 600.0


class Context:
    """Store, authentication, limits and metrics, and the two questions that most calls ask."""

    def __init__(self, store: Store, auth: Authenticator, limits: Limits, metrics: RelayMetrics) -> None:
        self.store = store
        self.auth = auth
        self.limits = limits
        self.metrics = metrics
        self._uploads = asyncio.Semaphore(limits.uploads)

    async def identify(self, request: web.Request) -> Identity:
        """Return who is calling, or refuse."""
        return await self.auth.identify(request.headers.get("Authorization"))

    async def document(self, key: str, limit: int | None = None) -> dict[str, Any] | None:
        """Read a JSON object of the store, None when there is none."""
        try:
            data = await self.store.get(key, limit=limit or self.limits.document_bytes)
        except NotFound:
            return None
        value = json.loads(data)
        if not isinstance(value, dict):
            raise ValueError(f"{key} is no JSON object")
        return value

    async def require_reader(self, request: web.Request, run_uid: str) -> Identity:
        """Refuse everybody but the operator and the readers of the run's namespace, which ``meta.json`` names."""
        identity = await self.identify(request)
        if not self.auth.is_operator(identity):
            if identity.reader_of is None:
                self.auth.require_operator(identity)
            meta = await self.document(run_key(run_uid, META))
            if meta is None:
                raise Refusal(404, "NotFound", f"no run {run_uid} is known here")
            self.auth.require_namespace(identity, meta["namespace"])
        return identity

    async def digest(self, key: str) -> str | None:
        """Hash what is really kept; None when there is nothing."""
        digest = hashlib.sha256()
        try:
            pieces = await self.store.stream(key)
        except NotFound:
            return None
        async for piece in pieces:
            digest.update(piece)
        return digest.hexdigest()

    async def send(self, request: web.Request, pieces: AsyncIterator[bytes], content_type: str) -> web.StreamResponse:
        """Answer piece by piece. When the store fails midway the connection is cut: nobody takes it for whole."""
        response = web.StreamResponse(headers={"Content-Type": content_type})
        await response.prepare(request)
        try:
            if request.method != "HEAD":
                async for piece in pieces:
                    await response.write(piece)
            await response.write_eof()
        except StoreError as error:
            _LOG.warning("an answer was cut off: %s", error)
            if request.transport is not None:
                request.transport.abort()
        except ConnectionError:
            _LOG.debug("the caller left before the end of the answer")
        return response

    @contextlib.asynccontextmanager
    async def upload(self) -> AsyncIterator[None]:
        """Hold one of the places for uploads; whoever waits too long is told to come again."""
        try:
            async with asyncio.timeout(self.limits.wait_seconds):
                await self._uploads.acquire()
        except TimeoutError:
            raise Refusal(503, "Busy", "too many uploads at once; try again", retry_after=2) from None
        try:
            with self.metrics.uploads.track_inprogress():
                async with asyncio.timeout(self.limits.upload_seconds):
                    yield
        except TimeoutError:
            raise Refusal(408, "TooSlow", f"the upload took more than {self.limits.upload_seconds:g} s") from None
        finally:
            self._uploads.release()


async def body_pieces(request: web.Request, limits: Limits) -> AsyncIterator[bytes]:
    """Yield the body; a ``Refusal`` for one that breaks off, stalls or is not as long as it said."""
    received = 0
    while True:
        try:
            async with asyncio.timeout(limits.idle_seconds):
                piece = await request.content.readany()
        except TimeoutError:
            raise Refusal(408, "TooSlow", f"nothing came for {limits.idle_seconds:g} s") from None
        except (web.HTTPException, asyncio.CancelledError):
            raise
        except Exception as error:
            raise Refusal(400, "Truncated", f"the body broke off after {received} bytes: {error}") from error
        if not piece:
            break
        received += len(piece)
        yield piece
    if request.content_length is not None and received != request.content_length:
        raise Refusal(400, "Truncated", f"the body has {received} bytes and announced {request.content_length}")


async def read_body(request: web.Request, limits: Limits, limit: int) -> bytes:
    """Return a small body whole; 413 for more than ``limit`` bytes."""
    refuse_announced(request, limit)
    data = bytearray()
    async for piece in body_pieces(request, limits):
        data += piece
        if len(data) > limit:
            raise Refusal(413, "TooLarge", f"the body is over {limit} bytes")
    return bytes(data)


def refuse_announced(request: web.Request, limit: int) -> None:
    """Refuse before reading what says that it is too large."""
    if request.content_length is not None and request.content_length > limit:
        raise Refusal(413, "TooLarge", f"the body has {request.content_length} bytes; {limit} are allowed")


def number(name: str, text: str, *, least: int | None = None) -> int:
    """Read a whole number in its one canonical spelling."""
    if not _NUMBER.fullmatch(text) or text == "-0" or (least is not None and int(text) < least):
        raise Refusal(
            400, "BadPath", f"{name} {text!r} is no whole number" + ("" if least is None else f" from {least}")
        )
    return int(text)


def run_uid_of(request: web.Request) -> str:
    """Return the run of the path."""
    uid = request.match_info["uid"]
    if not _UID.fullmatch(uid):
        raise Refusal(400, "BadPath", f"run {uid!r} is no UID")
    return uid


def namespace_of(text: str) -> str:
    """Return a namespace's name, or refuse."""
    if not _NAMESPACE.fullmatch(text):
        raise Refusal(400, "BadPath", f"namespace {text!r} is no name of a namespace")
    return text


def case_key(request: web.Request) -> CaseKey:
    """Return the seed, case and repeat of the path."""
    case = request.match_info["case"]
    if not _CASE.fullmatch(case):
        raise Refusal(400, "BadPath", f"case {case!r} is no case id")
    seed = number("seed", request.match_info["seed"])
    return CaseKey(seed, case, number("repeat", request.match_info["repeat"], least=0))


def attempt_key(request: web.Request) -> AttemptKey:
    """Return the attempt of the path."""
    return AttemptKey(case_key(request), number("attempt", request.match_info["attempt"], least=1))
