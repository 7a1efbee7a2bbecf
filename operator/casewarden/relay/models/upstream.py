"""One endpoint's server: a single try of a call, with caps on size and time, no redirects, no other addresses."""

from __future__ import annotations

import asyncio
import email.utils
import json
import re
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

from casewarden.adapters.proxies import proxy_for
from casewarden.api.endpoint import Endpoint
from casewarden.relay.models.addresses import GuardedResolver
from casewarden.relay.models.events import EventCutter, EventTooLarge, event_data
from casewarden.relay.models.usage import UsageReader

__all__ = ["Answer", "NoUse", "TryAgain", "Upstream"]

_CONNECT_SECONDS = 10.0
_ERROR_BYTES = 64 << 10
_AGAIN = frozenset({408, 409, 425, 429})
_CONTEXT = re.compile(r"prompt|context|tokens")
_LIMIT = re.compile(r"limit|exceed|max|long|much|many|reach|over|up|beyond")
_POLICY = re.compile(r"content_filter|content_policy|content management policy|safety")
_ANTHROPIC_VERSION = "2023-06-01"
# What is handed on of an answer; returns when it was taken, or when nobody takes it any more.
Outlet = Callable[[bytes], Awaitable[None]]


class TryAgain(Exception):
    """The same call may succeed later; ``after`` in seconds where the endpoint said so."""

    def __init__(self, why: str, after: float | None = None, *, pauses: bool = False) -> None:
        super().__init__(why)
        self.after = after
        self.pauses = pauses


class NoUse(Exception):
    """The endpoint cannot be used as it is set up; the message says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer: status, body, and for a refusal the word of the outcome table. Streams have an empty body.

    ``broken`` says how a stream ended before its end.
    """

    status: int
    body: bytes
    reason: str | None = None
    streamed: bool = False
    broken: str | None = None


class Upstream:
    """Make it in a running loop; ``close`` it. The key is read again for each try, since Secrets are renewed."""

    def __init__(self, endpoint: Endpoint, key: Path | str | None) -> None:
        self.endpoint = endpoint
        self._held_key = key
        proxy = proxy_for(endpoint.url)
        self._session = ClientSession(
            connector=TCPConnector(resolver=GuardedResolver(endpoint, proxy), limit=0, ttl_dns_cache=10),
            auto_decompress=False,
            cookie_jar=DummyCookieJar(),
            # Not `trust_env`, which would read a .netrc, too.
            trust_env=False,
            proxy=proxy,
            timeout=ClientTimeout(
                total=endpoint.call_seconds, sock_connect=_CONNECT_SECONDS, sock_read=endpoint.idle_seconds
            ),
        )

    async def close(self) -> None:
        """Let go of the connections."""
        await self._session.close()

    async def attempt(
        self, path: str, body: bytes, headers: Mapping[str, str], *, stream: bool, reader: UsageReader, begin: Outlet
    ) -> Answer:
        """Make one try. ``headers`` are the run's own, below those that the endpoint needs.

        ``begin`` is called with each event of a stream; ``TryAgain`` only before the first.
        """
        began = False

        async def event(data: bytes) -> None:
            nonlocal began
            began = True
            await begin(data)

        try:
            async with self._session.post(
                f"{self.endpoint.url.rstrip('/')}/{path}",
                data=body,
                headers={**headers, **self._headers()},
                allow_redirects=False,
            ) as response:
                return await self._read(response, stream, reader, event)
        except (ClientError, OSError, TimeoutError, EventTooLarge) as error:
            why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            if began:
                return Answer(200, b"", streamed=True, broken=why)
            raise TryAgain(why) from None

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "casewarden"}
        key = self._key()
        if self.endpoint.dialect == "anthropic":
            headers["anthropic-version"] = _ANTHROPIC_VERSION
            if key:
                headers["x-api-key"] = key
        elif key:
            headers["Authorization"] = f"Bearer {key}"
        return headers

    def _key(self) -> str:
        if not isinstance(self._held_key, Path):
            return self._held_key or ""
        try:
            key = self._held_key.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise NoUse(f"its key cannot be read from the Secret: {type(error).__name__}") from None
        if not key or not key.isprintable():
            raise NoUse("the key in its Secret is empty or no printable text")
        return key

    async def _read(self, response: ClientResponse, stream: bool, reader: UsageReader, event: Outlet) -> Answer:
        status = response.status
        if 300 <= status < 400:
            raise NoUse(f"it redirects ({status}), which is not followed: give its own address in the endpoint's url")
        if status in (401, 403):
            raise NoUse(f"it refuses the relay's key ({status})")
        if status in _AGAIN or status >= 500:
            text = (await _capped(response, _ERROR_BYTES, strict=False)).decode("utf-8", "replace")
            after = _retry_after(response.headers)
            raise TryAgain(
                f"{status} {self._clean(text)[:200]}", after, pauses=status in (429, 503) and after is not None
            )
        if status >= 400:
            data = await _capped(response, _ERROR_BYTES, strict=False)
            return self._refusal(status, data.decode("utf-8", "replace"))
        if stream and response.content_type == "text/event-stream":
            return await self._stream(response, reader, event)
        data = await _capped(response, self.endpoint.answer_bytes, strict=True)
        try:
            document = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise TryAgain(f"its answer is no JSON: {error}") from None
        if not isinstance(document, dict):
            raise TryAgain("its answer is no JSON object")
        reader.read(document)
        return Answer(status, data)

    async def _stream(self, response: ClientResponse, reader: UsageReader, event: Outlet) -> Answer:
        if response.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise NoUse("it compresses streams although it is asked not to")
        cutter, size = EventCutter(), 0
        async for data in response.content.iter_any():
            size += len(data)
            if size > self.endpoint.answer_bytes:
                raise EventTooLarge(f"the answer is over {self.endpoint.answer_bytes} bytes")
            for one in cutter.feed(data):
                reader.read(event_data(one))
                await event(one)
        if rest := cutter.rest():
            reader.read(event_data(rest))
            await event(rest)
        return Answer(200, b"", streamed=True)

    def _refusal(self, status: int, text: str) -> Answer:
        said, low = self._clean(text), text.lower()
        if _CONTEXT.search(low) and _LIMIT.search(low) and status in (400, 413, 422):
            reason = "ContextLimit"
        elif _POLICY.search(low):
            reason = "Refused"
        else:
            reason = "BadRequest"
        return Answer(status, said.encode(), reason)

    def _clean(self, text: str) -> str:
        key = self._key()
        return text.replace(key, "[key]") if key else text


async def _capped(response: ClientResponse, limit: int, *, strict: bool) -> bytes:
    """Read a body of at most ``limit`` bytes, compressed or not; cut it, or where ``strict`` refuse what is longer."""
    encoding = response.headers.get("Content-Encoding", "identity").lower()
    inflate: Any = None
    if encoding in ("gzip", "deflate"):
        inflate = zlib.decompressobj(31 if encoding == "gzip" else 15)
    elif encoding not in ("", "identity"):
        raise NoUse(f"it answers in the encoding {encoding[:20]!r} although it is asked for none")
    found = bytearray()
    async for data in response.content.iter_any():
        try:
            found += data if inflate is None else inflate.decompress(data, limit + 1 - len(found))
        except zlib.error as error:
            raise TryAgain(f"its answer is no {encoding}: {error}") from None
        if len(found) > limit:
            if strict:
                raise NoUse(f"its answer is over {limit} bytes")
            del found[limit:]
            break
        # Inflating is work that the loop does not see: let others in between.
        await asyncio.sleep(0)
    return bytes(found)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    text = headers.get("Retry-After", "")
    if re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text):
        return float(text)
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - time.time())
