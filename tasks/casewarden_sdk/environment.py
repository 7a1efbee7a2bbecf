"""An environment container: what an agent acts upon, reached by the driver over that container's shim."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Coroutine, List, Mapping, NamedTuple, Optional, Sequence, TypeVar

from .connection import ConnectionLost, Refusal
from .errors import CandidateError, EnvironmentFailure
from .running import Running
from .supervisor import SIGKILL, ShimLimits, Supervisor, Swept
from .wire import WireError

__all__ = ["Environment", "Executed", "FileStat"]

T = TypeVar("T")
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# A drain, or a deletion, stops all containers at once, and a driver that is told to stop tells nothing more. So a
# container that is gone is held against the agent only when the driver has outlived it for so long.
_LOSS_GRACE = 2.0


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


class FileStat(NamedTuple):
    """A file as its inode has it. ``changed`` is when it last changed in any way, in nanoseconds; no program of a
    container can set that."""

    path: str
    mode: int
    size: int
    changed: int
    link: str


class Environment:
    """A connected environment container.

    ``agent`` on a call says that it carries out an action of the agent's. From the first of these on, whatever becomes
    of the container may be the agent's doing, who can leave a process or a file behind for a later call to fall over:
    should the container die or refuse a call, the agent is to blame (``SandboxKilled``). Before, it is an
    ``EnvironmentFailure``, for which the case is tried again.
    """

    def __init__(
        self, name: str, supervisor: Supervisor, stderr: dict[int, bytearray], loss_grace: float = _LOSS_GRACE
    ) -> None:
        self.name = name
        self._supervisor = supervisor
        self._stderr = stderr
        self._loss_grace = loss_grace
        self._agent_acted = False

    @classmethod
    async def connect(cls, name: str, path: str, seconds: float, loss_grace: float = _LOSS_GRACE) -> Environment:
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
        return cls(name, supervisor, stderr, loss_grace)

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
        processes: Optional[int] = 256,
    ) -> Executed:
        """Run a command to its end, at most ``seconds`` and ``max_bytes`` of output, and return what it did.

        ``processes`` bounds those of the container's user, threads included, so that no fork bomb takes those of the
        driver; None leaves it to the container. It does not bind root.
        """
        variables = {"PATH": _DEFAULT_PATH, "LANG": "C.UTF-8", **(env or {})}
        limits = ShimLimits(processes=processes, output_bytes=max_bytes)
        supervisor = self._supervisor
        session = await self.asked(supervisor.start(argv, variables, cwd, network, limits, 30.0), agent)

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
            await self.asked(asyncio.wait_for(play(), seconds), agent, late=False)
        except asyncio.TimeoutError:
            timed_out = True
            await self.asked(kill(), agent)
        ended = session.exit
        if ended is None:
            raise await self.lost("it ended during a command")
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

    async def open(
        self,
        argv: Sequence[str],
        env: Optional[Mapping[str, str]] = None,
        cwd: str = "/",
        max_bytes: int = 1 << 20,
        network: str = "none",
        agent: bool = False,
        processes: Optional[int] = 256,
    ) -> Running:
        """Start a command that goes on running; ``max_bytes`` of output in all end it. Else as ``exec``."""
        variables = {"PATH": _DEFAULT_PATH, "LANG": "C.UTF-8", **(env or {})}
        limits = ShimLimits(processes=processes, output_bytes=max_bytes)
        session = await self.asked(self._supervisor.start(argv, variables, cwd, network, limits, 30.0), agent)
        errors = self._stderr.setdefault(session.number, bytearray())
        return Running(self, self._supervisor, session, lambda: bytes(errors), agent)

    def acts(self) -> None:
        """Say that the agent acts from here on, in a program that was opened before it did."""
        self._agent_acted = True

    async def stat(self, paths: Sequence[str], agent: bool = False) -> List[FileStat]:
        """Tell what there is at ``paths`` and below them, links not followed.

        The container's shim looks, not a program that the agent could have replaced.
        """
        rows = await self.asked(self._supervisor.stat(paths, 60.0), agent)
        return [FileStat(*row) for row in rows]

    async def put(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write a file of the container."""
        await self.asked(self._supervisor.put(path, data, mode, 60.0), False)

    async def get(self, path: str, max_bytes: int = 1 << 20, agent: bool = False) -> bytes:
        """Read a file of the container; a failure as of the class where there is none or it is larger."""
        return await self.asked(self._supervisor.get(path, max_bytes, 60.0), agent)

    async def sweep(self, empty: Sequence[str] = ()) -> Swept:
        """Kill every process of the container but the shim and empty its temporary folders and ``empty``."""
        return await self.asked(self._supervisor.sweep(empty, 60.0), False)

    async def close(self) -> None:
        """Ask the shim to exit."""
        await self._supervisor.exit()

    async def lost(self, why: str) -> Exception:
        """Return the error of who is to blame for the loss of what should be there, the container or its server."""
        if self._agent_acted:
            await asyncio.sleep(self._loss_grace)
        return self._broken(f"environment {self.name!r} is gone: {why}")

    def _broken(self, message: str) -> Exception:
        if self._agent_acted:
            return CandidateError("SandboxKilled", message)
        return EnvironmentFailure("EnvironmentFailed", message)

    async def asked(self, question: Coroutine[Any, Any, T], agent: bool, late: bool = True) -> T:
        """Ask the shim. ``late`` says that no answer in time is a failure too, and not for the caller to judge."""
        # What died before the agent's first action was not killed by it, though that action is the first to find out.
        self._agent_acted = self._agent_acted or (agent and not self._supervisor.lost.is_set())
        try:
            return await question
        except ConnectionLost as lost:
            raise await self.lost(str(lost)) from None
        except Refusal as refusal:
            raise self._broken(f"environment {self.name!r}: {refusal}") from None
        except asyncio.TimeoutError:
            if not late:
                raise
            raise self._broken(f"environment {self.name!r}: its shim does not answer") from None
