"""The recorder's way to the relay: a few calls over HTTP, each tried again until the hold time is over.

Only the standard library, in threads: a client library costs more memory than the whole recorder, beside every case.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from casewarden_sdk.canonical import canonical
from casewarden_sdk.errors import EnvironmentFailure

from .settings import Settings

__all__ = ["Answer", "RelaySink", "call_over_http"]

_CALL_SECONDS = 30.0
_ANSWER_BYTES = 32 << 20
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 10.0
_LONGEST_RETRY_AFTER = 30.0
# A token review or a pod that is not seen yet passes; a pod that is refused for a minute is refused for good.
_UNAUTHORISED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the relay answered; ``retry_after`` in seconds, 0 where it did not say."""

    status: int
    body: bytes
    retry_after: float = 0.0

    def document(self) -> Mapping[str, Any]:
        """Return the JSON object of the body; an empty one for anything else."""
        try:
            value = json.loads(self.body)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


Call = Callable[[str, str, bytes, Mapping[str, str]], Answer]


class RelaySink:
    """An ``EvidenceSink`` over the relay.

    The token is read again for every call, since the kubelet renews it. ``hold_seconds`` bounds what all calls of the
    attempt together spend on a relay that is away, since the pod has one such time in its deadline.
    """

    def __init__(
        self,
        settings: Settings,
        call: Call | None = None,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] | None = None,
    ) -> None:
        self._settings = settings
        self._call = call or call_over_http(settings.relay_url)
        self._sleep = sleep
        self._monotonic = monotonic
        self._jitter = jitter or random.Random().random  # noqa: S311 - spreads retries, guards nothing
        case = quote(settings.case_id, safe="")
        self._case = f"/v1/runs/{settings.run_uid}/cases/{settings.seed}/{case}/{settings.repeat}"
        self._attempt = f"{self._case}/{settings.attempt}"
        self._held = 0.0

    async def claim(self) -> bool:
        """Claim the attempt; False where it is claimed by another pod or the case is sealed."""
        return (await self._ask("POST", f"{self._attempt}/claim", accept=(409,))).status != 409

    async def fetch_workspace(self, digest: str) -> bytes:
        """Return an uploaded folder of the pod's own namespace."""
        return (await self._ask("GET", f"/v1/workspaces/{self._namespace()}/{digest}")).body

    async def put_bundle(self, data: bytes, *, partial: bool) -> None:
        """Upload the bundle."""
        await self._ask("PUT", f"{self._attempt}/bundle?partial={int(partial)}", data)

    async def put_sealed(self, document: Mapping[str, Any]) -> bool:
        """Put ``sealed.json`` if the case has none; False where another attempt's is there."""
        data = canonical(dict(document)).encode("ascii")
        answer = await self._ask("PUT", f"{self._case}/sealed", data, accept=(409,))
        if answer.status != 409:
            return True
        if answer.document().get("reason") == "sealed":
            return False
        raise _refused("PUT", f"{self._case}/sealed", answer)

    async def _ask(self, method: str, path: str, body: bytes = b"", accept: tuple[int, ...] = ()) -> Answer:
        started, pause = self._monotonic(), _FIRST_PAUSE
        hold = self._settings.limits.hold_seconds
        while True:
            why, wait = "", pause
            try:
                answer = await asyncio.to_thread(self._call, method, path, body, self._headers())
            except (OSError, http.client.HTTPException) as error:
                why = f"{type(error).__name__}: {error}"
            else:
                if 200 <= answer.status < 300 or answer.status in accept:
                    if pause > _FIRST_PAUSE:
                        self._held += self._monotonic() - started
                    return answer
                if answer.status not in (401, 403, 429) and answer.status < 500:
                    raise _refused(method, path, answer)
                why = f"{answer.status} {answer.document().get('error', '')}"
                wait = max(pause, min(answer.retry_after, _LONGEST_RETRY_AFTER))
                if answer.status in (401, 403) and self._monotonic() - started > _UNAUTHORISED_SECONDS:
                    raise _refused(method, path, answer)
            left = started + hold - self._held - self._monotonic()
            if left <= 0:
                message = f"{method} {path} failed until the hold time of {hold:g} s was over: {why}"
                raise EnvironmentFailure("StoreUnavailable", message)
            print(f"casewarden: {method} {path}: {why}; again soon", file=sys.stderr, flush=True)
            await self._sleep(min(wait * (0.5 + self._jitter()), left))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token()}", "Content-Type": "application/octet-stream"}

    def _token(self) -> str:
        path = Path(self._settings.places.token)
        # A projected volume is a folder with the token in it, or the path names the file itself.
        return (path / "token" if path.is_dir() else path).read_text(encoding="ascii").strip()

    def _namespace(self) -> str:
        """Return the namespace that the token was made for: the one whose workspaces this pod may read."""
        try:
            payload = self._token().split(".")[1]
            claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
            return quote(claims["kubernetes.io"]["namespace"], safe="")
        except (LookupError, ValueError, TypeError, OSError) as error:
            raise EnvironmentFailure("EvidenceFailed", f"the token names no namespace: {error!r}") from None


def call_over_http(url: str) -> Call:
    """Return what makes one call to ``url``: a connection of its own, no redirects, a bounded answer."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"relay_url {url!r}: give http://HOST:PORT")
    host, port, prefix = parts.hostname, parts.port, parts.path.rstrip("/")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection

    def call(method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        connection = kind(host, port, timeout=_CALL_SECONDS)
        try:
            connection.request(method, prefix + path, body, dict(headers))
            response = connection.getresponse()
            data = response.read(_ANSWER_BYTES + 1)
            if len(data) > _ANSWER_BYTES:
                raise http.client.HTTPException(f"the answer is over {_ANSWER_BYTES} bytes")
            return Answer(response.status, data, _seconds(response.headers.get("Retry-After")))
        finally:
            connection.close()

    return call


def _seconds(text: str | None) -> float:
    return float(text) if text is not None and text.isascii() and text.isdigit() else 0.0


def _refused(method: str, path: str, answer: Answer) -> EnvironmentFailure:
    document = answer.document()
    why = f"{answer.status} {document.get('reason', '')}: {document.get('error', '')}"
    return EnvironmentFailure("EvidenceFailed", f"the relay refused {method} {path}: {why}")
