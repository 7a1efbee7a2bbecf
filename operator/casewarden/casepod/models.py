"""Model calls of an attempt: what the recorder adds to each, what it keeps of it, and what they may use together.

Imported only where a candidate has a model: it brings an HTTP library that weighs more than the rest of the recorder.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiohttp import ClientError, ClientSession, ClientTimeout

from casewarden_sdk.canonical import canonical
from casewarden_sdk.errors import CandidateError, EnvironmentFailure

from .clock import CaseClock
from .settings import ModelSettings, Settings
from .transcript import Transcript

__all__ = ["SAFETY_SECONDS", "ModelAnswer", "Models"]

_ANSWER_BYTES = 64 << 20
_TRIES = 3
# So that the relay says that it found no slot before the case's time is over.
SAFETY_SECONDS = 0.5
# Of what several calls used, the word that says least.
_SOURCES = ("counted", "reported", "estimated")
_USAGE_COMMENT = b": casewarden "
_RUN_REASONS = frozenset({"UnknownEndpoint", "EndpointNotAllowed"})
Piece = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """An answer of the model: ``reason`` is a word of the outcome table where it is a refusal."""

    status: int
    body: bytes
    content_type: str
    reason: str | None = None


class Models:
    """Make it in a running loop; ``close`` it. ``broken`` is set once a limit is passed or the model is away for good;
    then nothing more is answered, and ``on_broken`` is called. ``role`` is a task's model's, None the candidate's."""

    def __init__(
        self, settings: Settings, model: ModelSettings, clock: CaseClock, transcript: Transcript,
        on_broken: Callable[[], None] | None = None, role: str | None = None,
    ) -> None:  # fmt: skip
        self.model = model
        self.session_number = 0
        self.broken: CandidateError | EnvironmentFailure | None = None
        self.tokens = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.calls = 0
        self.source = ""
        self.on_broken = on_broken
        self._role = role
        self._settings = settings
        self._clock = clock
        self._transcript = transcript
        case = quote(settings.case_id, safe="")
        self._url = (
            f"{settings.relay_url.rstrip('/')}/v1/runs/{settings.run_uid}/cases/{settings.seed}/{case}"
            f"/{settings.repeat}/{settings.attempt}/models/{quote(model.endpoint, safe='')}"
        )
        self._http = ClientSession(timeout=ClientTimeout(total=None, sock_connect=10.0))

    async def close(self) -> None:
        """Let go of the relay."""
        await self._http.close()

    def prepared(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a request with the run's model and parameters, which the candidate cannot choose."""
        return {**document, **self.model.parameters, "model": self.model.name}

    def usage(self) -> dict[str, Any]:
        """Return what was used, for the bundle."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "model_calls": self.calls,
            "source": self.source or "reported",
        }

    async def call(self, path: str, document: Mapping[str, Any], piece: Piece | None = None) -> ModelAnswer:
        """Make a call of the model. Where it streams, ``piece`` gets each part as it comes.

        Raises ``CandidateError`` and ``EnvironmentFailure`` for what ends the case.
        """
        if self.broken is not None:
            raise self.broken
        left = self._clock.left()
        if self.model.tokens is not None and self.tokens >= self.model.tokens:
            raise self._break(CandidateError("TokenLimit", f"used up the {self.model.tokens} tokens of the case"))
        data = canonical(self.prepared(document)).encode("ascii")
        self._transcript.add(self.session_number, "model-in", data)
        try:
            async with asyncio.timeout(left):
                answer = await self.send(path, data, max(0.1, left - SAFETY_SECONDS), piece)
        except TimeoutError:
            # Whoever took that long, the case's own time is over; the recorder says so.
            self._clock.left()
            raise CandidateError("TimeLimit", "the model's answer came too late") from None
        self._transcript.add(self.session_number, "model-out", answer.body)
        if self.model.tokens is not None and self.tokens > self.model.tokens:
            message = f"used {self.tokens} tokens; the case has {self.model.tokens}"
            raise self._break(CandidateError("TokenLimit", message))
        return answer

    async def send(self, path: str, data: bytes, seconds: float, piece: Piece | None = None) -> ModelAnswer:
        """Send a prepared request by way of the relay, which is told to try for ``seconds``."""
        for again in range(_TRIES):
            try:
                return await self._once(path, data, seconds, piece)
            except (ClientError, ConnectionError) as error:
                # Only before the call can have left the relay: a second one would be a second charge.
                if again + 1 == _TRIES or not _never_arrived(error):
                    why = f"the model's answer broke off: {type(error).__name__}: {error}"
                    raise self._break(EnvironmentFailure("ModelUnavailable", why)) from None
                await asyncio.sleep(1.0 + again)
        raise AssertionError("every try returns or raises")  # pragma: no cover

    async def _once(self, path: str, data: bytes, seconds: float, piece: Piece | None) -> ModelAnswer:
        async with self._http.post(f"{self._url}/{path}", data=data, headers=self._headers(seconds)) as response:
            if response.content_type == "text/event-stream":
                return await self._streamed(response.content.iter_any(), piece)
            body = await response.content.read(_ANSWER_BYTES)
            while not response.content.at_eof() and len(body) < _ANSWER_BYTES:
                body += await response.content.read(_ANSWER_BYTES)
            if response.status < 400:
                self._count(response.headers.get("Casewarden-Usage", ""))
                return ModelAnswer(response.status, body, "application/json")
            reason = response.headers.get("Casewarden-Reason")
            if reason is not None:
                return ModelAnswer(response.status, body, "application/json", reason)
            raise self._break(_refused(response.status, body))

    async def _streamed(self, pieces: Any, piece: Piece | None) -> ModelAnswer:
        kept, rest = bytearray(), b""
        async for data in pieces:
            rest += data
            # Whole events only, so that the relay's note to us is never handed on, not even half of it.
            events, cut, rest = rest.rpartition(b"\n\n")
            for event in (events + cut).split(b"\n\n") if cut else ():
                if event.startswith(_USAGE_COMMENT):
                    self._count(event.removeprefix(_USAGE_COMMENT).decode("ascii", "replace"))
                elif event:
                    kept += event + b"\n\n"
                    if piece is not None:
                        await piece(event + b"\n\n")
        return ModelAnswer(200, bytes(kept), "text/event-stream")

    def _count(self, told: str) -> None:
        words = told.split()
        if len(words) != 3 or not (words[0].isdigit() and words[1].isdigit()):
            raise EnvironmentFailure("EvidenceFailed", f"the relay did not tell what a model call used: {told!r}")
        self.prompt_tokens += int(words[0])
        self.completion_tokens += int(words[1])
        self.tokens = self.prompt_tokens + self.completion_tokens
        self.calls += 1
        known = words[2] if words[2] in _SOURCES else "estimated"
        self.source = max(self.source or known, known, key=_SOURCES.index)

    def _headers(self, seconds: float) -> dict[str, str]:
        path = Path(self._settings.places.token)
        token = (path / "token" if path.is_dir() else path).read_text(encoding="ascii").strip()
        headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Casewarden-Priority": str(self.model.priority),
            "Casewarden-Seconds": f"{seconds:.3f}",
        }
        if self.model.headers:
            headers["Casewarden-Headers"] = json.dumps(dict(self.model.headers))
        if self._role is not None:
            headers["Casewarden-Role"] = self._role
        if self.model.budget:
            headers["Casewarden-Budget"] = json.dumps(dict(self.model.budget))
        return headers

    def _break(self, error: CandidateError | EnvironmentFailure) -> CandidateError | EnvironmentFailure:
        if self.broken is None:
            self.broken = error
            if self.on_broken is not None:
                self.on_broken()
        return self.broken


def _never_arrived(error: Exception) -> bool:
    from aiohttp import ClientConnectorError

    return isinstance(error, ClientConnectorError)


def _refused(status: int, body: bytes) -> CandidateError | EnvironmentFailure:
    try:
        document = json.loads(body)
        reason, message = str(document["reason"]), str(document["error"])
    except (ValueError, LookupError, TypeError, RecursionError):
        reason, message = "", f"the relay answered {status}"
    if reason == "BudgetSpent":
        return EnvironmentFailure("BudgetSpent", message)
    if reason in _RUN_REASONS:
        return EnvironmentFailure("ModelUnavailable", message)
    if status in (400, 404, 413):
        return CandidateError("BadRequest", message)
    return EnvironmentFailure("ModelUnavailable", message)
