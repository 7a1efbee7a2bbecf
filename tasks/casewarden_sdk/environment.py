"""An environment container: what an agent acts upon, reached by the driver over that container's shim."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Coroutine, Mapping, Optional, Sequence, TypeVar

from .connection import ConnectionLost, Refusal
from .errors import CandidateError, EnvironmentFailure
from .supervisor import SIGKILL, ShimLimits, Supervisor, Swept
from .wire import WireError

__all__ = ["Environment", "Executed"]

T = TypeVar("T")
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Executed:
    """What a command in an environment container did. ``timed_out`` and ``output_limit`` say that it was killed."""

    code: Optional[int]
    signal: Optional[int]
    stdout: bytes
    stderr: bytes
    timed_out: bool
    output_limit: bool
    seconds: float


class Environment:
    """A connected environment container.

    ``agent`` on a call says that it carries out an action of the agent's: should the container die in it, the agent is
    to blame (``SandboxKilled``); otherwise it is an ``EnvironmentFailure``.
    """

    def __init__(self, name: str, supervisor: Supervisor, stderr: dict[int, bytearray]) -> None:
        self.name = name
        self._supervisor = supervisor
        self._stderr = stderr

    @classmethod
    async def connect(cls, name: str, path: str, seconds: float) -> Environment:
        """Accept the container's shim at ``path``."""
        stderr: dict[int, bytearray] = {}

        def keep(session: Any, stream: str, data: bytes) -> None:
            if stream == "stderr":
                stderr.setdefault(session.number, bytearray()).extend(data)

        try:
            supervisor = await Supervisor.accept(path, seconds, keep)
        except asyncio.TimeoutError:
            message = f"environment {name!r}: its shim did not connect within {seconds:g} s"
            raise EnvironmentFailure("EnvironmentFailed", message) from None
        except (OSError, WireError, asyncio.IncompleteReadError) as error:
            raise EnvironmentFailure("EnvironmentFailed", f"environment {name!r}: {error}") from None
        return cls(name, supervisor, stderr)

    async def exec(
        self,
        argv: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 60.0,
        env: Optional[Mapping[str, str]] = None,
        cwd: str = "/",
        max_bytes: int = 1 << 20,
        network: str = "none",
        agent: bool = False,
    ) -> Executed:
        """Run a command to its end, at most ``seconds`` and ``max_bytes`` of output, and return what it did."""
        variables = {"PATH": _DEFAULT_PATH, "LANG": "C.UTF-8", **(env or {})}
        limits = ShimLimits(output_bytes=max_bytes)
        supervisor = self._supervisor
        session = await self._asked(supervisor.start(argv, variables, cwd, network, limits, 30.0), agent)

        async def feed() -> None:
            # A command need not read its input; it is its exit that counts.
            try:
                if stdin:
                    await supervisor.write(session, stdin)
                await supervisor.close_stdin(session)
            except Refusal:
                pass

        async def play() -> None:
            await asyncio.gather(feed(), supervisor.wait(session, lambda: session.exit is not None, None))

        async def kill() -> None:
            await supervisor.signal(session, SIGKILL, 10.0)
            await supervisor.wait(session, lambda: session.exit is not None, 10.0)

        timed_out = False
        try:
            await self._asked(asyncio.wait_for(play(), seconds), agent)
        except asyncio.TimeoutError:
            timed_out = True
            try:
                await self._asked(kill(), agent)
            except asyncio.TimeoutError:
                raise self._gone("a command could not be killed", agent) from None
        ended = session.exit
        if ended is None:
            raise self._gone("it ended during a command", agent)
        del supervisor.sessions[session.number]
        return Executed(
            ended.code,
            ended.signal,
            bytes(session.stdout),
            bytes(self._stderr.pop(session.number, b"")),
            timed_out,
            ended.output_limit,
            ended.seconds,
        )

    async def put(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a file of the container."""
        await self._asked(self._supervisor.put(path, data, mode, 60.0), False)

    async def get(self, path: str, max_bytes: int = 1 << 20, agent: bool = False) -> bytes:
        """Read a file of the container; an ``EnvironmentFailure`` where there is none or it is larger."""
        return await self._asked(self._supervisor.get(path, max_bytes, 60.0), agent)

    async def sweep(self, empty: Sequence[str] = ()) -> Swept:
        """Kill every process of the container but the shim and empty its temporary folders and ``empty``."""
        return await self._asked(self._supervisor.sweep(empty, 60.0), False)

    async def close(self) -> None:
        """Ask the shim to exit."""
        await self._supervisor.exit()

    def _gone(self, why: str, agent: bool) -> Exception:
        message = f"environment {self.name!r} is gone: {why}"
        if agent:
            return CandidateError("SandboxKilled", message)
        return EnvironmentFailure("EnvironmentFailed", message)

    async def _asked(self, question: Coroutine[Any, Any, T], agent: bool) -> T:
        try:
            return await question
        except ConnectionLost as lost:
            raise self._gone(str(lost), agent) from None
        except Refusal as refusal:
            if agent:
                raise CandidateError("SandboxKilled", f"environment {self.name!r}: {refusal}") from None
            raise EnvironmentFailure("EnvironmentFailed", f"environment {self.name!r}: {refusal}") from None
