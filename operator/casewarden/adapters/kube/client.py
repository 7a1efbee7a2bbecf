"""The API server over aiohttp: plain dictionaries in and out, one limiter, retries within a budget.

A call is tried again on 429 (the request was not taken), on 5xx and on a broken connection: names are deterministic
and writes are guarded, so a second try of one that did land answers ``AlreadyExists`` or ``Conflict``, and the caller
looks.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Self

import aiohttp

from casewarden.adapters.proxies import proxy_for
from casewarden.ports.clock import Clock, SystemClock
from casewarden.ports.kube import Kind, KubeError, Manifest, Patch, TooManyRequests, Unavailable, WatchEvent
from casewarden.ports.metrics import Metric, Metrics, NoMetrics

from .connection import Connection
from .errors import error_from
from .limiter import Limiter

__all__ = ["KubeClient", "RetryBudget"]

_CONTENT_TYPES: dict[str, str] = {
    "merge": "application/merge-patch+json", "json": "application/json-patch+json",
    "strategic": "application/strategic-merge-patch+json", "apply": "application/apply-patch+yaml",
}  # fmt: skip
_PAGE = 200
_FIELD_MANAGER = "casewarden"
_MAX_LINE = 8 << 20


class RetryBudget:
    """How long one call goes on trying: at most ``tries`` times and, waits included, about ``seconds``."""

    def __init__(self, tries: int = 6, seconds: float = 30.0, base: float = 0.25, ceiling: float = 8.0) -> None:
        self.tries = tries
        self.seconds = seconds
        self.base = base
        self.ceiling = ceiling

    def wait_before(self, attempt: int, retry_after: float, rng: random.Random) -> float:
        """Return the seconds to wait after failure number ``attempt`` (from 0), never less than the server asked."""
        spread: float = min(self.ceiling, self.base * (1 << min(attempt, 20))) * rng.uniform(0.5, 1.0)
        return retry_after + spread


class KubeClient:
    """One session to one API server. Use as an async context manager."""

    def __init__(
        self,
        connection: Connection,
        *,
        clock: Clock | None = None,
        limiter: Limiter | None = None,
        metrics: Metrics | None = None,
        budget: RetryBudget | None = None,
        request_seconds: float = 30.0,
        silence_seconds: float = 70.0,
    ) -> None:
        self.connection = connection
        self._clock = clock or SystemClock()
        self._limiter = limiter or Limiter(50, 100, 32, self._clock)
        self._metrics = metrics or NoMetrics()
        self._budget = budget or RetryBudget()
        self._rng = random.Random()  # noqa: S311 - jitter only
        self._timeout = aiohttp.ClientTimeout(total=request_seconds, sock_connect=5)
        self._silence = silence_seconds
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=0, ssl=self.connection.ssl())
        self._session = aiohttp.ClientSession(
            connector=connector, headers={"Accept": "application/json"}, proxy=proxy_for(self.connection.server)
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session:
            await self._session.close()

    async def get(self, kind: Kind, namespace: str, name: str) -> Manifest:
        """See ``KubeApi``."""
        return await self._json("GET", _path(kind, namespace, name))

    async def document(self, path: str) -> Manifest:
        """Return what is at a path that is no object's, such as a part of the API's own description."""
        return await self._json("GET", path)

    async def pages(
        self, kind: Kind, namespace: str | None, labels: str = ""
    ) -> AsyncIterator[tuple[list[Manifest], str]]:
        """See ``KubeApi``."""
        token = ""
        while True:
            query = {"limit": str(_PAGE)}
            if labels:
                query["labelSelector"] = labels
            if token:
                query["continue"] = token
            page = await self._json("GET", _path(kind, namespace), query=query)
            meta = page.get("metadata") or {}
            yield page.get("items") or [], str(meta.get("resourceVersion", ""))
            token = meta.get("continue") or ""
            if not token:
                return

    async def create(self, kind: Kind, namespace: str, body: Manifest) -> Manifest:
        """See ``KubeApi``."""
        return await self._json("POST", _path(kind, namespace), body=body, query={"fieldManager": _FIELD_MANAGER})

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str | None = None, grace_seconds: int | None = None
    ) -> None:
        """See ``KubeApi``."""
        options: Manifest = {"propagationPolicy": "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        await self._request("DELETE", _path(kind, namespace, name), body=options)

    async def patch(
        self, kind: Kind, namespace: str, name: str, body: Any, *, subresource: str = "", how: Patch = "merge"
    ) -> Manifest:
        """See ``KubeApi``."""
        query = {"fieldManager": _FIELD_MANAGER} | ({"force": "true"} if how == "apply" else {})
        path = _path(kind, namespace, name) + (f"/{subresource}" if subresource else "")
        return await self._json("PATCH", path, body=body, query=query, content_type=_CONTENT_TYPES[how])

    async def pod_log(self, namespace: str, name: str, container: str, limit_bytes: int) -> bytes:
        """See ``KubeApi``."""
        query = {"container": container, "limitBytes": str(limit_bytes)}
        return await self._request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}/log", query=query)

    async def watch(
        self, kind: Kind, namespace: str | None, version: str, labels: str = "", seconds: int = 300
    ) -> AsyncIterator[WatchEvent]:
        """See ``KubeApi``. ``Unavailable`` when nothing, not even a bookmark, came for ``silence_seconds``."""
        query = {
            "watch": "1",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
            "allowWatchBookmarks": "true",
        }
        if labels:
            query["labelSelector"] = labels
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=5, sock_read=self._silence)
        try:
            async with self._limiter.place():
                response = await self._send("GET", _path(kind, namespace), query=query, timeout=timeout)
            async with response:
                if response.status != 200:
                    raise error_from(response.status, await response.read())
                async for line in _lines(response):
                    document = json.loads(line)
                    if document["type"] == "ERROR":
                        raise error_from(int(document["object"].get("code") or 500), document["object"])
                    yield WatchEvent(document["type"], document["object"])
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise Unavailable(0, "WatchBroken", f"{type(error).__name__}: {error}") from None

    async def _json(self, method: str, path: str, **rest: Any) -> Manifest:
        document = json.loads(await self._request(method, path, **rest))
        if not isinstance(document, dict):
            raise Unavailable(0, "NotAnObject", f"{method} {path} was answered by a {type(document).__name__}")
        return document

    async def _request(self, method: str, path: str, **rest: Any) -> bytes:
        started, attempt = self._clock.monotonic(), 0
        while True:
            error, retry_after = await self._attempt(method, path, **rest)
            if isinstance(error, bytes):
                return error
            if not isinstance(error, TooManyRequests | Unavailable):
                raise error
            wait = self._budget.wait_before(attempt, retry_after, self._rng)
            attempt += 1
            if attempt >= self._budget.tries or self._clock.monotonic() + wait - started > self._budget.seconds:
                raise error
            await self._clock.sleep(wait)

    async def _attempt(self, method: str, path: str, **rest: Any) -> tuple[bytes | KubeError, float]:
        """Try once; return the body or the error, and the seconds that the server asked us to wait."""
        async with self._limiter.place():
            started = self._clock.monotonic()
            try:
                response = await self._send(method, path, **rest)
                if response.status == 401:
                    response.release()
                    response = await self._send(method, path, fresh=True, **rest)
                async with response:
                    body = await response.read()
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                self._metrics.add(Metric.API_REQUESTS, verb=method, code="none")
                return Unavailable(0, "NoConnection", f"{method} {path}: {type(error).__name__}: {error}"), 0.0
        self._metrics.observe(Metric.API_DURATION, self._clock.monotonic() - started, verb=method)
        self._metrics.add(Metric.API_REQUESTS, verb=method, code=f"{response.status // 100}xx")
        if response.status < 300:
            return body, 0.0
        retry_after = _retry_after(response.headers.get("Retry-After", ""))
        if response.status == 429:
            self._limiter.pause(retry_after)
            if method == "POST" and path.endswith("/pods"):
                self._metrics.add(Metric.CREATES_THROTTLED, cause="rate")
        return error_from(response.status, body), retry_after

    async def _send(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: dict[str, str] | None = None,
        content_type: str = "application/json",
        timeout: aiohttp.ClientTimeout | None = None,  # noqa: ASYNC109 - aiohttp's own object
        fresh: bool = False,
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("KubeClient is used outside its context")
        headers = {}
        if self.connection.token and (value := await self.connection.token.header(fresh=fresh)):
            headers["Authorization"] = value
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = json.dumps(body, allow_nan=False).encode()
        return await self._session.request(
            method,
            self.connection.server + path,
            params=query,
            data=data,
            headers=headers,
            timeout=timeout or self._timeout,
            allow_redirects=False,
        )


def _path(kind: Kind, namespace: str | None, name: str = "") -> str:
    root = "/api/" if "/" not in kind.api_version else "/apis/"
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{kind.api_version}{scope}/{kind.plural}" + (f"/{name}" if name else "")


def _retry_after(value: str) -> float:
    try:
        return min(60.0, max(0.0, float(value)))
    except ValueError:
        return 0.0


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Split a stream at newlines; aiohttp's own ``readline`` gives up on lines of more than 128 KiB."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > _MAX_LINE:
            raise ValueError(f"a watch line of more than {_MAX_LINE} bytes")
        for line in lines:
            if line.strip():
                yield line
        await asyncio.sleep(0)
