"""What a pack's ``drive`` holds: it starts the candidate, speaks JSON lines with it, reaches environment containers.

Every candidate process is started here and nowhere else. The evidence sidecar at the other end of the socket enforces
limits and deadlines, keeps the transcript, and says who is to blame; a driver only sees ``CandidateError`` (assess it)
and ``EnvironmentFailure`` (let it pass).
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple

from .canonical import canonical
from .connection import ConnectionLost, Refusal, error_of
from .contract import JSON, Limits
from .environment import Environment
from .errors import CandidateError, EnvironmentFailure
from .jsonlines import dump_line, parse_line
from .wire import Frame, WireError

__all__ = ["Chat", "Ended", "Process", "Recorder", "Runtime"]


class Recorder(Protocol):
    """What carries requests to the evidence sidecar (or plays it): ``Connection`` is one."""

    async def ask(self, header: Dict[str, Any], payload: bytes = b"", seconds: Optional[float] = None) -> Frame:
        """Send a request of wire.md 3.2 and return the answer; ``Refusal`` where it is not ``ok``."""


@dataclass(frozen=True)
class Ended:
    """How a candidate process ended. ``unsolicited`` are bytes of stdout, whitespace aside, that nobody received."""

    code: Optional[int]
    signal: Optional[int]
    output_bytes: int
    stderr_tail: str
    unsolicited: int

    def to_json(self) -> Dict[str, JSON]:
        """Return plain JSON, for a record."""
        return dict(self.__dict__)


class Process:
    """A running candidate program. Use it as an async context manager: leaving kills what has not been finished."""

    def __init__(self, runtime: Runtime, session: int) -> None:
        self.session = session
        self.ended: Optional[Ended] = None
        self._runtime = runtime
        self._over = False

    async def __aenter__(self) -> Process:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def request(self, value: JSON, seconds: Optional[float] = None) -> JSON:
        """Send one JSON line and return the one that answers it within ``seconds`` (``limits.response_seconds``)."""
        await self.send(value)
        return await self.receive(seconds)

    async def send(self, value: JSON) -> None:
        """Send one JSON line.

        A line over ``limits.request_bytes`` (newline included) is the candidate's doing once it has answered anything,
        since what it said may have grown it; before that it is the pack's.
        """
        line = dump_line(value)
        allowed = self._runtime.limits.request_bytes
        if len(line) + 1 > allowed:
            message = f"the next message has {len(line) + 1} bytes; the limit request_bytes is {allowed}"
            if self._runtime.heard:
                raise CandidateError("OutputLimit", message)
            raise EnvironmentFailure("TaskFailed", message)
        await self._runtime.ask({"op": "send", "session": self.session}, line)

    async def receive(self, seconds: Optional[float] = None) -> JSON:
        """Return the next JSON line; ``CandidateError`` for what is none, for silence, for an exit, for a flood."""
        patience = self._runtime.limits.response_seconds if seconds is None else seconds
        _, line = await self._runtime.ask({"op": "receive", "session": self.session, "seconds": patience})
        self._runtime.heard = True
        return parse_line(line)

    async def finish(self, how: str = "eof") -> Ended:
        """Stop the program and everything that it started.

        ``eof`` closes its input and expects exit code 0 and nothing more on stdout, else ``CandidateError``
        (``Exited``, ``Protocol``); ``kill`` is SIGKILL and expects nothing.
        """
        if how not in ("eof", "kill"):
            raise ValueError(f"finish({how!r}): use 'eof' or 'kill'")
        self._over = True
        header, _ = await self._runtime.ask({"op": "finish", "session": self.session, "how": how})
        self.ended = ended = Ended(
            header.get("code"),
            header.get("signal"),
            int(header.get("output_bytes", 0)),
            str(header.get("stderr_tail", "")),
            int(header.get("unsolicited", 0)),
        )
        if how == "eof":
            if ended.code != 0:
                how_it_went = f"code {ended.code}" if ended.signal is None else f"signal {ended.signal}"
                raise CandidateError("Exited", f"exited with {how_it_went} after its input ended; 0 is expected")
            if ended.unsolicited:
                raise CandidateError("Protocol", f"wrote {ended.unsolicited} bytes to stdout that nobody asked for")
        return ended

    async def close(self) -> None:
        """Kill what has not been finished. A limit that the candidate broke before is not told again."""
        if not self._over and not self._runtime.stopped:
            with contextlib.suppress(CandidateError):
                await self.finish("kill")


class Chat:
    """A conversation with the candidate: messages go out, the assistant's next one comes back.

    A model or a server is asked by the sidecar. A program gets ``{"messages", "tools"}`` as a JSON line and answers
    with the message as one, so that controls of a chat pack are plain programs. Use it as an async context manager.
    """

    def __init__(self, runtime: Runtime, session: int, process: Optional[Process]) -> None:
        self.session = session
        self.ended: Optional[Ended] = None
        self._runtime = runtime
        self._process = process
        self._over = False

    async def __aenter__(self) -> Chat:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def action(self, messages: Sequence[JSON], tools: Optional[Sequence[JSON]] = None) -> Dict[str, JSON]:
        """Return the message that follows ``messages``: ``role``, ``content`` and, where it calls, ``tool_calls``.

        Messages and ``tools`` are those of OpenAI's chat completions. ``CandidateError`` for an answer that is no
        message, and for what a model refuses (``ContextLimit``, ``Refused``, ``BadRequest``).
        """
        asked: Dict[str, JSON] = {"messages": list(messages)}
        if tools:
            asked["tools"] = list(tools)
        if self._process is not None:
            return _checked_message(await self._process.request(asked))
        header = {"op": "action", "session": self.session}
        _, payload = await self._runtime.ask(header, canonical(asked).encode("ascii"))
        self._runtime.heard = True
        return _checked_message(json.loads(payload))

    async def finish(self, how: str = "eof") -> Ended:
        """End the conversation; a program is stopped as ``Process.finish`` stops it."""
        if self._process is not None:
            self._over = True
            self.ended = await self._process.finish(how)
            return self.ended
        self._over = True
        header, _ = await self._runtime.ask({"op": "finish", "session": self.session, "how": how})
        self.ended = Ended(
            header.get("code"), header.get("signal"), int(header.get("output_bytes", 0)),
            str(header.get("stderr_tail", "")), int(header.get("unsolicited", 0)),
        )  # fmt: skip
        return self.ended

    async def close(self) -> None:
        """End what has not been finished."""
        if not self._over and not self._runtime.stopped:
            with contextlib.suppress(CandidateError):
                await self.finish("kill")


def _checked_message(message: JSON) -> Dict[str, JSON]:
    """Return a message with nothing in it that a driver would have to check again."""
    if not isinstance(message, dict) or message.get("role", "assistant") != "assistant":
        raise CandidateError("Protocol", "the answer must be a message of the role assistant")
    content, calls = message.get("content"), message.get("tool_calls") or []
    if not isinstance(content, str) and not (content is None and calls):
        raise CandidateError("Protocol", "the message has neither a text as content nor tool_calls")
    if not isinstance(calls, list):
        raise CandidateError("Protocol", "tool_calls must be a list")
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if (
            not isinstance(function, dict)
            or not isinstance(call.get("id"), str)
            or not all(isinstance(function.get(name), str) for name in ("name", "arguments"))
        ):
            raise CandidateError(
                "Protocol", "each of tool_calls needs id, and function with name and arguments as texts"
            )
    return {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}


class Runtime:
    """Given to ``Pack.drive``. ``limits`` are the pack's as the run tightened them; ``seed`` is the case's.

    ``candidate`` is what plays: ``program``, ``server`` or ``model``. Programs are started, the others are talked to.
    """

    def __init__(
        self,
        recorder: Recorder,
        limits: Limits,
        seed: int,
        environments: str = "/casewarden/env",
        candidate: str = "program",
    ) -> None:
        self.limits = limits
        self.seed = seed
        self.candidate = candidate
        self.heard = False
        self.stopped = False
        """Whether the pod is being taken away: the sidecar ends the candidate then, and nothing is sealed."""
        self._recorder = recorder
        self._folder = environments
        self._environments: Dict[str, Environment] = {}
        self._processes: List[Process] = []
        self._chats: List[Chat] = []
        self._on_stop: List[Callable[[EnvironmentFailure], None]] = []

    def on_stop(self, callback: Callable[[EnvironmentFailure], None]) -> None:
        """Be called when the pod is to end: by a deadline, suspend or deletion of the run. ``drive`` is to return soon.

        Without a callback the driver ends at once.
        """
        self._on_stop.append(callback)

    @property
    def is_heard(self) -> bool:
        """Whether anybody wants to be told of the pod's end."""
        return bool(self._on_stop)

    def stop(self, cause: EnvironmentFailure) -> None:
        """Tell that the pod is to end."""
        self.stopped = True
        for callback in self._on_stop:
            callback(cause)

    async def start(self, argv: Optional[Sequence[str]] = None) -> Process:
        """Start the candidate's program, as a new process in a swept container; its state folder persists.

        ``argv`` is the pack's default command, for a candidate that names none (placeholders ``{python}``,
        ``{workspace}``, ``{state}``); None means the pack's ``default_argv``.
        """
        header, _ = await self.ask({"op": "start", "argv": None if argv is None else list(argv)})
        process = Process(self, int(header["session"]))
        self._processes.append(process)
        return process

    async def chat(self) -> Chat:
        """Begin a conversation with the candidate, whatever it is; a server is started and waited for."""
        if self.candidate == "program":
            process = await self.start()
            return Chat(self, process.session, process)
        header, _ = await self.ask({"op": "start", "argv": None})
        made = Chat(self, int(header["session"]), None)
        self._chats.append(made)
        return made

    async def note(self, name: str, value: JSON) -> None:
        """Keep a state of the host's as evidence: a named JSON value, in order, in the bundle's ``states.jsonl``."""
        await self.ask({"op": "state", "name": name}, canonical(value).encode("ascii"))

    async def ask_model(
        self,
        role: str,
        messages: Sequence[JSON],
        tools: Optional[Sequence[JSON]] = None,
        parameters: Optional[Mapping[str, JSON]] = None,
        control: Optional[Sequence[JSON]] = None,
    ) -> Dict[str, JSON]:
        """Ask a model of the task's own (``Pack.models``), such as a judge; return the message that it answers with.

        Messages and ``tools`` are those of OpenAI's chat completions; ``parameters`` are the pack's (``temperature``),
        which the run's own win over. ``content`` is always a text, empty where the model said nothing. The time is not
        the candidate's, and no failure is: what goes wrong is an ``EnvironmentFailure`` (``ModelUnavailable``), to let
        pass; after one nothing can be sealed. What was asked and answered is evidence; put what grading needs into the
        record, since ``grade`` asks nobody.

        ``control`` are the same messages with nothing of the candidate's in them. Where the model refuses ``messages``
        (a content filter, its context's limit) it is asked those: if it answers them, what the candidate said is the
        cause, and the refusal is a ``CandidateError`` (``Refused``, ``ContextLimit``, ``BadRequest``), to be ruled on
        or let pass. Without ``control`` nobody can tell, and a candidate may have its case dealt anew by what it says.
        """
        asked: Dict[str, JSON] = {**(parameters or {}), "messages": list(messages)}
        if tools:
            asked["tools"] = list(tools)
        if control is not None:
            asked["control"] = list(control)
        _, payload = await self.ask({"op": "model", "role": role}, canonical(asked).encode("ascii"))
        answer: Dict[str, JSON] = json.loads(payload)
        return answer

    async def environment(self, name: str, seconds: float = 120.0) -> Environment:
        """Return the environment container ``name`` of the case's kind; the first call waits ``seconds`` for it."""
        if name not in self._environments:
            self._environments[name] = await Environment.connect(name, f"{self._folder}/{name}/shim.sock", seconds)
        return self._environments[name]

    async def close(self) -> None:
        """Kill every candidate process still running and let the environment containers go."""
        for chat in self._chats:
            await chat.close()
        for process in self._processes:
            await process.close()
        for environment in self._environments.values():
            await environment.close()

    async def ask(self, header: Dict[str, Any], payload: bytes = b"") -> Tuple[Dict[str, Any], bytes]:
        """Ask the sidecar; its refusals become the error of who is to blame."""
        try:
            return await self._recorder.ask(header, payload)
        except Refusal as refusal:
            raise error_of(refusal) from None
        except WireError as error:
            raise EnvironmentFailure("TaskFailed", f"{header['op']}: {error}") from None
        except ConnectionLost as lost:
            raise EnvironmentFailure("EvidenceFailed", f"the evidence sidecar is gone: {lost}") from None
