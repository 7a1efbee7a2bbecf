"""The other end of the shim: what the recorder uses for a candidate and a driver for an environment container.

The shim dials; ``Supervisor.accept`` listens at a unix socket, takes the first connection and no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from .connection import Connection, accept_once
from .wire import WIRE_VERSION, WireError, read_frame

__all__ = ["Exit", "Session", "ShimLimits", "Supervisor", "Swept"]

SIGKILL = 9
OutputHook = Callable[["Session", str, bytes], None]


@dataclass(frozen=True)
class ShimLimits:
    """What one started program may use: processes of its user, bytes of a file, open files, bytes of stdout and stderr.

    None leaves a resource at what the container has.
    """

    processes: Optional[int] = None
    file_bytes: Optional[int] = None
    open_files: Optional[int] = None
    output_bytes: Optional[int] = None

    def to_json(self) -> Dict[str, int]:
        """Return the limits that are set."""
        return {name: value for name, value in self.__dict__.items() if value is not None}


@dataclass(frozen=True)
class Exit:
    """How a program ended: an exit code or a signal, which limit it broke if one, and its wall seconds."""

    code: Optional[int]
    signal: Optional[int]
    oom: bool = False
    output_limit: bool = False
    process_limit: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class Swept:
    """What a sweep did: processes killed, and processes that could not be ended (0 when clean)."""

    killed: int
    left: int


class Session:
    """One started program. ``stdout`` holds the bytes that nobody has taken yet; ``changed`` is set at every event."""

    def __init__(self, number: int, pid: int) -> None:
        self.number = number
        self.pid = pid
        self.stdout = bytearray()
        self.stdout_eof = False
        self.output_bytes = 0
        self.exit: Optional[Exit] = None
        self.changed = asyncio.Event()

    def take_line(self) -> Optional[bytes]:
        """Remove and return the first whole line without its newline; None where there is none yet."""
        end = self.stdout.find(b"\n")
        if end < 0:
            return None
        line = bytes(self.stdout[:end])
        del self.stdout[: end + 1]
        return line


class Supervisor:
    """Asks a connected shim. Its methods raise ``Refusal`` and ``ConnectionLost`` (module ``connection``)."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        hello: Mapping[str, Any],
        on_output: Optional[OutputHook] = None,
    ) -> None:
        self.hello = dict(hello)
        self.sessions: Dict[int, Session] = {}
        self._early: Dict[int, List[Any]] = {}
        self._on_output = on_output
        self._connection = Connection(reader, writer, self._event, self._wake)

    @classmethod
    async def accept(cls, path: str, seconds: float, on_output: Optional[OutputHook] = None) -> Supervisor:
        """Accept one connection at ``path`` within ``seconds`` and read its hello.

        ``asyncio.TimeoutError`` where no shim dialled; ``WireError`` where what dialled is no shim of this version.
        """
        reader, writer = await accept_once(path, seconds)
        try:
            hello, _ = await asyncio.wait_for(read_frame(reader), 10)
            if hello.get("event") != "hello" or hello.get("v") != WIRE_VERSION:
                raise WireError(f"the first frame is {hello!r}, not the hello of a shim of version {WIRE_VERSION}")
        except BaseException:
            writer.close()
            raise
        return cls(reader, writer, hello, on_output)

    @property
    def lost(self) -> asyncio.Event:
        """Set once the connection is gone."""
        return self._connection.lost

    async def start(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str,
        network: str = "none",
        limits: ShimLimits = ShimLimits(),
        seconds: Optional[float] = None,
    ) -> Session:
        """Start a program; the argv is no shell line. ``Refusal`` with ``CannotStartProgram`` where that fails."""
        request = {
            "op": "start",
            "argv": list(argv),
            "env": dict(env),
            "cwd": cwd,
            "network": network,
            "limits": limits.to_json(),
        }
        answer, _ = await self._connection.ask(request, seconds=seconds)
        session = self.sessions[answer["session"]] = Session(answer["session"], answer.get("pid", 0))
        for header, payload in self._early.pop(session.number, []):
            self._event(header, payload)
        return session

    async def write(self, session: Session, data: bytes, seconds: Optional[float] = None) -> None:
        """Write to a program's standard input; returns when the kernel has taken all of it."""
        await self._connection.ask({"op": "write", "session": session.number}, data, seconds)

    async def close_stdin(self, session: Session, seconds: Optional[float] = None) -> None:
        """Close a program's standard input."""
        await self._connection.ask({"op": "close_stdin", "session": session.number}, seconds=seconds)

    async def signal(self, session: Session, number: int, seconds: Optional[float] = None) -> None:
        """Send a signal to the program's process group."""
        request = {"op": "signal", "session": session.number, "signal": number}
        await self._connection.ask(request, seconds=seconds)

    async def sweep(self, empty: Sequence[str] = (), seconds: Optional[float] = None) -> Swept:
        """Kill every process of the container but the shim, and empty what they could write and ``empty``."""
        answer, _ = await self._connection.ask({"op": "sweep", "empty": list(empty)}, seconds=seconds)
        return Swept(int(answer.get("killed", 0)), int(answer.get("left", 0)))

    async def put(self, path: str, data: bytes, mode: int = 0o644, seconds: Optional[float] = None) -> None:
        """Write a file of the container in one step."""
        await self._connection.ask({"op": "put", "path": path, "mode": mode}, data, seconds)

    async def get(self, path: str, max_bytes: int, seconds: Optional[float] = None) -> bytes:
        """Read a file of the container; ``Refusal`` where it is larger than ``max_bytes``."""
        return (await self._connection.ask({"op": "get", "path": path, "max": max_bytes}, seconds=seconds))[1]

    async def stat(self, paths: Sequence[str], seconds: Optional[float] = None) -> List[Any]:
        """List the container's files at ``paths`` and below: path, mode, size, change time in ns, target of a link."""
        _, payload = await self._connection.ask({"op": "stat", "paths": list(paths)}, seconds=seconds)
        return [json.loads(line) for line in payload.splitlines()]

    async def exit(self, seconds: float = 5.0) -> None:
        """Ask the shim to exit, whether or not it still can, and close the connection."""
        with contextlib.suppress(Exception):
            await self._connection.ask({"op": "exit"}, seconds=seconds)
        await self.close()

    async def close(self) -> None:
        """Close the connection; the shim then kills everything and exits."""
        await self._connection.close()

    async def wait(self, session: Session, done: Callable[[], bool], seconds: Optional[float]) -> None:
        """Wait until ``done()`` holds or the shim is lost; looked at on every event of the session.

        ``asyncio.TimeoutError`` after ``seconds``.
        """

        async def until() -> None:
            while not done() and not self.lost.is_set():
                session.changed.clear()
                await session.changed.wait()

        await asyncio.wait_for(until(), seconds)

    def _wake(self) -> None:
        for session in self.sessions.values():
            session.changed.set()

    def _event(self, header: Dict[str, Any], payload: bytes) -> None:
        number = header.get("session")
        if not isinstance(number, int):
            return
        session = self.sessions.get(number)
        if session is None:
            # Output may be on the wire before the answer to the start that tells its session.
            self._early.setdefault(number, []).append((header, payload))
            return
        if header.get("event") == "output":
            stream = "stderr" if header.get("stream") == "stderr" else "stdout"
            session.output_bytes += len(payload)
            if stream == "stdout":
                session.stdout += payload
                session.stdout_eof = session.stdout_eof or header.get("eof") is True
            if payload and self._on_output is not None:
                self._on_output(session, stream, payload)
        elif header.get("event") == "exit":
            session.exit = Exit(
                header.get("code"),
                header.get("signal"),
                header.get("oom") is True,
                header.get("output_limit") is True,
                header.get("process_limit") is True,
                float(header.get("seconds", 0.0)),
            )
        session.changed.set()
