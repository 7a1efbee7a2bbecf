"""Candidates that answer messages: a model, and a server that speaks the chat dialect on a loopback port."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from casewarden_sdk.dialects import from_anthropic, to_anthropic
from casewarden_sdk.errors import CandidateError, EnvironmentFailure
from casewarden_sdk.prompters import MODEL_PROMPTERS, formatted, prompted, says_context_limit

from .candidate import Candidate, Finished
from .clock import CaseClock
from .settings import AgentSettings, ModelSettings, PrompterSettings, Settings
from .transcript import Transcript

if TYPE_CHECKING:
    from aiohttp import ClientSession

    from .models import Models

__all__ = ["ModelCandidate", "ServerCandidate", "answer_message", "asked_of", "checked_request", "error_text"]

_HOST = "127.0.0.1"
_LOOK_SECONDS = 0.05
_ANSWER_BYTES = 8 << 20
_AGENT_PAUSES = (2.0, 3.0)
_AGENT_TRIES = len(_AGENT_PAUSES) + 1


class ModelCandidate:
    """A model that plays by itself: there is no process, and a session is a conversation."""

    def __init__(self, settings: Settings, clock: CaseClock, transcript: Transcript, models: Models) -> None:
        self._limits = settings.limits
        self._clock = clock
        self._transcript = transcript
        self._models = models
        self._sessions = 0
        self._open: set[int] = set()
        self._actions = 0

    async def start(self, _: Sequence[str] | None) -> int:
        """Begin a conversation."""
        if self._clock.started:
            self._clock.left()
        self._clock.start()
        self._sessions += 1
        self._open.add(self._sessions)
        self._models.session_number = self._sessions
        self._transcript.add(self._sessions, "start", json.dumps({"model": self._models.model.name}).encode("ascii"))
        self._clock.busy()
        return self._sessions

    async def action(self, number: int, payload: bytes) -> bytes:
        """Ask for the message that follows ``{"messages", "tools"}``."""
        if number not in self._open:
            raise EnvironmentFailure("TaskFailed", f"session {number!r} is not open")
        self._actions += 1
        if self._limits.actions is not None and self._actions > self._limits.actions:
            raise CandidateError("ActionLimit", f"used up its {self._limits.actions} actions without finishing")
        document = checked_request(payload)
        self._transcript.add(number, "in", payload)
        try:
            path, asked = asked_of(self._models.model, document)
            answer = await self._models.call(path, asked)
        finally:
            self._clock.busy()
        if answer.status >= 400:
            raise CandidateError(answer.reason or "BadRequest", error_text(answer.body))
        message = answer_message(answer.body, self._models.model.dialect)
        self._transcript.add(number, "out", message)
        return message

    async def send(self, number: int, line: bytes) -> None:
        """Refuse: there is no process to write to."""
        raise _no_process(number)

    async def receive(self, number: int, seconds: float) -> bytes:
        """Refuse: there is no process to read from."""
        raise _no_process(number)

    async def finish(self, number: int, how: str) -> Finished:
        """End a conversation."""
        if number in self._open:
            self._open.discard(number)
            self._transcript.add(number, "exit", b'{"code": 0, "signal": null}')
        return Finished(0, None, 0, "", 0)

    async def stop(self) -> None:
        """Nothing runs."""
        self._open.clear()

    async def close(self) -> None:
        """Nothing is held."""


class ServerCandidate(Candidate):
    """A server in the candidate's container: started by the shim, asked by the recorder alone."""

    async def start(self, default: Sequence[str] | None) -> int:
        """Start the server and wait until it listens."""
        number = await super().start(default)
        await self._until_ready(number)
        return number

    async def action(self, number: int, payload: bytes) -> bytes:
        """Ask the server for the message that follows; every failure of it is its own."""
        from aiohttp import ClientError, ClientSession, ClientTimeout

        self.count_action()
        self._transcript.add(number, "in", payload)
        path, headers, document = self._request(checked_request(payload))
        seconds = self._clock.left(self._limits.response_seconds)
        url = f"http://{_HOST}:{self.port}{path}"
        try:
            async with (
                asyncio.timeout(seconds),
                ClientSession(timeout=ClientTimeout(total=seconds)) as http,
            ):
                status, body = await self._asked_again(http, url, headers, document)
        except TimeoutError:
            raise self.late(seconds) from None
        except (ClientError, OSError) as error:
            # How its process ended says more than that its connection did.
            if (ended := await self.how_it_ended(number)) is not None:
                raise ended from None
            raise CandidateError("ServerError", f"{type(error).__name__}: {error}") from None
        finally:
            self._clock.busy()
        if len(body) > _ANSWER_BYTES:
            raise CandidateError("OutputLimit", f"answered with more than {_ANSWER_BYTES} bytes")
        if status != 200 and self._agent is not None and says_context_limit(body.decode("utf-8", "replace")):
            raise CandidateError("ContextLimit", error_text(body))
        if status != 200:
            raise CandidateError("ServerError", f"answered {status}: {error_text(body)}")
        message = answer_message(body) if self._agent is None else _agent_message(self._agent, body)
        self._transcript.add(number, "out", message)
        return message

    @property
    def _agent(self) -> AgentSettings | None:
        own = self._settings.candidate
        return None if own is None else own.agent

    def _request(self, asked: Mapping[str, Any]) -> tuple[str, Mapping[str, str], Mapping[str, Any]]:
        agent = self._agent
        if agent is None:
            return "/v1/chat/completions", {}, {"model": self.model_name, **asked}
        return agent.path, agent.headers, {**agent.body, **_prompted(agent.prompter, asked)}

    async def _asked_again(
        self, http: ClientSession, url: str, headers: Mapping[str, str], document: Mapping[str, Any]
    ) -> tuple[int, bytes]:
        """Ask; by AgentBench's interface up to three times where there is no good answer, as its client does."""
        tries = 1 if self._agent is None else _AGENT_TRIES
        for number in range(tries):
            async with http.post(url, json=document, headers=headers, allow_redirects=False) as response:
                body = await response.content.read(_ANSWER_BYTES + 1)
                while not response.content.at_eof() and len(body) <= _ANSWER_BYTES:
                    body += await response.content.read(_ANSWER_BYTES)
                status = response.status
            text = body.decode("utf-8", "replace") if status != 200 else ""
            if status == 200 or number + 1 == tries or says_context_limit(text):
                break
            await asyncio.sleep(_AGENT_PAUSES[number])
        return status, body

    async def finish(self, number: int, how: str) -> Finished:
        """Stop the server: it has no input that could end, so it is killed either way."""
        finished = await super().finish(number, "kill")
        return Finished(0, None, finished.output_bytes, finished.stderr_tail, 0) if how == "eof" else finished

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        own = self._settings.candidate
        if own is None or own.port is None:
            raise EnvironmentFailure("EvidenceFailed", "the recorder was told of no server's port")
        return own.port

    @property
    def model_name(self) -> str:
        """What is asked for: the run's model where it has one."""
        return self._settings.model.name if self._settings.model is not None else "candidate"

    async def _until_ready(self, number: int) -> None:
        seconds = self._clock.left(self._limits.start_seconds)
        try:
            async with asyncio.timeout(seconds):
                while not await _listens(self.port):
                    if (ended := self.has_ended(number)) is not None:
                        raise CandidateError("NotReady", f"ended before it listened on port {self.port}: {ended}")
                    await asyncio.sleep(_LOOK_SECONDS)
        except TimeoutError:
            raise CandidateError("NotReady", f"did not listen on port {self.port} within {seconds:g} s") from None
        finally:
            self._clock.busy()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(_HOST, port)
    except OSError:
        return False
    writer.close()
    return True


def checked_request(payload: bytes) -> Mapping[str, Any]:
    """Read what the driver asks; ``EnvironmentFailure`` for what is no conversation."""
    document = json.loads(payload)
    if not isinstance(document, dict) or not isinstance(document.get("messages"), list):
        raise EnvironmentFailure("TaskFailed", "an action needs an object with messages, and tools where it has any")
    return document


def _prompted(prompter: PrompterSettings, asked: Mapping[str, Any]) -> dict[str, Any]:
    return dict(prompted(prompter.name, prompter.args, asked["messages"]))


def asked_of(model: ModelSettings, asked: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return which call of a model's endpoint is made, and its body."""
    prompter = model.prompter
    if model.dialect == "anthropic":
        try:
            return "messages", to_anthropic(asked)
        except (ValueError, LookupError, TypeError) as error:
            why = f"the conversation cannot be said in the dialect anthropic: {type(error).__name__}: {error}"
            raise EnvironmentFailure("TaskFailed", why) from None
    if prompter is None or prompter.name == "openai-chat":
        return "chat/completions", asked
    return MODEL_PROMPTERS[prompter.name], _prompted(prompter, asked)


def _agent_message(agent: AgentSettings, body: bytes) -> bytes:
    try:
        text = formatted(agent.return_format, json.loads(body))
        return json.dumps({"role": "assistant", "content": text}).encode("ascii")
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        why = f"the answer has not what {agent.return_format} reads: {type(error).__name__}: {error}"
        raise CandidateError("Protocol", why) from None


def answer_message(body: bytes, dialect: str = "openai") -> bytes:
    """Return the message of a chat completion, or the text of a plain one; ``CandidateError`` for what is neither."""
    try:
        if dialect == "anthropic":
            return json.dumps(from_anthropic(json.loads(body))).encode("ascii")
        choice = json.loads(body)["choices"][0]
        message = choice["message"] if "message" in choice else {"content": choice["text"]}
        if not isinstance(message, dict):
            raise TypeError("message is no object")
        kept = {name: message[name] for name in ("role", "content", "tool_calls") if message.get(name) is not None}
        return json.dumps({"role": "assistant", "content": None, **kept}).encode("ascii")
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise CandidateError("Protocol", f"the answer is no chat completion: {type(error).__name__}: {error}") from None


def error_text(body: bytes) -> str:
    """Return what an answer that is a refusal says, cut short."""
    text = body[:2000].decode("utf-8", "replace")
    try:
        return str(json.loads(body)["error"]["message"])[:300]
    except (ValueError, LookupError, TypeError, RecursionError):
        return text[:300]


def _no_process(number: int) -> EnvironmentFailure:
    return EnvironmentFailure("TaskFailed", f"session {number} is a conversation: ask it for an action")
