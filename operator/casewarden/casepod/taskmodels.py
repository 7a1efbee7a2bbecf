"""Models that the task asks, such as a judge: metered apart, in the transcript, and never the candidate's fault.

Imported only where a case has such a model, as ``models``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from casewarden_sdk.canonical import canonical
from casewarden_sdk.errors import CandidateError, EnvironmentFailure

from .chat import answer_message, asked_of, checked_request, error_text
from .clock import CaseClock
from .models import SAFETY_SECONDS, Models
from .settings import Settings
from .transcript import Transcript

__all__ = ["TaskModels"]

# What a model refuses for what it is asked; anything else is refused to everybody.
_OF_CONTENT = ("ContextLimit", "Refused", "BadRequest")


class _Refusal(Exception):
    """The endpoint took a request and would not answer it."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


class _Blamed(_Refusal):
    """What it would not answer for the candidate's words."""


class TaskModels:
    """Make it in a running loop; ``close`` it.

    All calls of a case together may take as long as the case may; the case's own clock stands still meanwhile.
    ``failed`` is the first failure: after it nothing may be sealed.
    """

    def __init__(self, settings: Settings, clock: CaseClock, transcript: Transcript) -> None:
        self.failed: EnvironmentFailure | None = None
        self._clock = clock
        self._transcript = transcript
        self._allowed = settings.limits.case_seconds
        self._spent = 0.0
        self._models = {
            role: Models(settings, model, clock, transcript, role=role) for role, model in settings.models.items()
        }

    async def close(self) -> None:
        """Let go of the relay."""
        for model in self._models.values():
            await model.close()

    def usage(self) -> dict[str, Any]:
        """Return what each was asked for, for the bundle."""
        return {role: model.usage() for role, model in self._models.items() if model.calls}

    async def ask(self, role: str, payload: bytes) -> bytes:
        """Return the message that a model answers with; ``EnvironmentFailure`` for everything that goes wrong.

        But for one thing: a request that it refuses, while it answers ``control`` of the same request, in which nothing
        is of the candidate's, is refused for what the candidate said: ``CandidateError``.
        """
        if role not in self._models:
            known = ", ".join(sorted(self._models)) or "none"
            raise EnvironmentFailure("TaskFailed", f"the run has no model for {role!r} (it has {known})")
        if self.failed is not None:
            raise self.failed
        document, control = _parted(checked_request(payload))
        started = asyncio.get_running_loop().time()
        try:
            with self._clock.held():
                return await self._ruled(role, document, control)
        except _Blamed as blamed:
            raise CandidateError(blamed.reason, f"{role}: for what the candidate said: {blamed.message}") from None
        except (CandidateError, _Refusal) as error:
            self.failed = EnvironmentFailure("ModelUnavailable", f"{role}: {error.message}")
        except EnvironmentFailure as error:
            self.failed = EnvironmentFailure(error.reason, f"{role}: {error.message}")
        finally:
            self._spent += asyncio.get_running_loop().time() - started
        raise self.failed from None

    async def _ruled(self, role: str, document: Mapping[str, Any], control: list[Any] | None) -> bytes:
        """Ask; where that is refused and ``control`` is answered, the candidate's words are to blame."""
        try:
            return await self._asked(role, document)
        except _Refusal as refusal:
            if control is None or refusal.reason not in _OF_CONTENT:
                raise
            await self._asked(role, {**document, "messages": control})
            raise _Blamed(refusal.reason, refusal.message) from None

    async def _asked(self, role: str, document: Mapping[str, Any]) -> bytes:
        model, left = self._models[role], self._allowed - self._spent
        path, asked = asked_of(model.model, document)
        data = canonical(model.prepared(asked)).encode("ascii")
        self._transcript.add(0, f"{role}-in", data)
        try:
            if left <= 0:
                raise TimeoutError
            async with asyncio.timeout(left):
                answer = await model.send(path, data, max(0.1, left - SAFETY_SECONDS))
        except TimeoutError:
            why = f"the task's models took more than {self._allowed:g} s of this case"
            raise EnvironmentFailure("ModelUnavailable", why) from None
        self._transcript.add(0, f"{role}-out", answer.body)
        if answer.status >= 400:
            why = f"it refused ({answer.reason or answer.status}): {error_text(answer.body)}"
            raise _Refusal(answer.reason or "", why)
        message = json.loads(answer_message(answer.body, model.model.dialect))
        if not isinstance(message["content"], (str, type(None))):
            raise EnvironmentFailure("ModelUnavailable", "it answered with something else than a text")
        return json.dumps({**message, "content": message["content"] or ""}).encode("ascii")


def _parted(request: Mapping[str, Any]) -> tuple[dict[str, Any], list[Any] | None]:
    """Return what a model is asked, and the messages without the candidate's words, if there are any."""
    document = dict(request)
    control = document.pop("control", None)
    if control is not None and not isinstance(control, list):
        raise EnvironmentFailure("TaskFailed", "control must be a list of messages")
    return document, control
