"""The candidate's side: sessions one after another, their limits, and who is to blame when one breaks.

Everything that the candidate could have caused is a ``CandidateError``: it runs beside the shim, so a shim that is
lost or does not answer, once a foreign byte has run, is the candidate's too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from casewarden_sdk.connection import ConnectionLost, Refusal, error_of
from casewarden_sdk.errors import CandidateError, EnvironmentFailure
from casewarden_sdk.supervisor import SIGKILL, Exit, Session, ShimLimits, Supervisor
from casewarden_sdk.termination import cut_text
from casewarden_sdk.wire import WireError

from .clock import CaseClock
from .command import candidate_environment, resolve_argv
from .settings import Settings
from .transcript import Transcript

__all__ = ["Candidate", "Finished"]

T = TypeVar("T")

_OPEN_FILES = 1024
# A shim answers at once; these bound a wait for one that its container's load has stopped.
_SHIM_SECONDS = 30.0
_SWEEP_SECONDS = 60.0
# A program that closes its stdout is about to exit; how it does says more than that it closed.
_EXIT_GRACE = 1.0
_FAREWELL_SECONDS = 1.0
_STDERR_SHOWN = 160


@dataclass(frozen=True, slots=True)
class Finished:
    """How a session ended, in the words of the ``finish`` answer."""

    code: int | None
    signal: int | None
    output_bytes: int
    stderr_tail: str
    unsolicited: int


class Candidate:
    """Make it inside a running event loop: it listens for the shim from then on; ``close`` it.

    ``variables`` are put into the candidate's environment where the run itself does not set them.
    """

    def __init__(
        self,
        settings: Settings,
        clock: CaseClock,
        transcript: Transcript,
        on_connected: Callable[[], None],
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings
        self._variables = dict(variables or {})
        self._limits = settings.limits
        self._clock = clock
        self._transcript = transcript
        self._session: Session | None = None
        self._finished: dict[int, Finished] = {}
        self._sends = 0
        self._shim = asyncio.ensure_future(
            Supervisor.accept(settings.places.candidate_socket, self._limits.hold_seconds, self._output)
        )
        self._shim.add_done_callback(lambda shim: None if shim.cancelled() or shim.exception() else on_connected())

    async def start(self, default: Sequence[str] | None) -> int:
        """Sweep the container, start the program, and return the session's number."""
        own, places = self._settings.candidate, self._settings.places
        if own is None:
            raise EnvironmentFailure("TaskFailed", "this kind of case has no candidate container to start anything in")
        if self._clock.started:
            self._clock.left()
        shim = await self._supervisor()
        await self._sweep(shim)
        argv = resolve_argv(own, places, default)
        self._clock.start()
        limits = ShimLimits(
            processes=self._limits.processes,
            file_bytes=self._limits.state_mib << 20,
            open_files=_OPEN_FILES,
            output_bytes=self._limits.output_bytes,
        )
        session = await self._asked(
            shim.start(
                argv,
                {**self._variables, **candidate_environment(own, places)},
                places.workspace,
                own.network,
                limits,
                max(self._limits.start_seconds, _SHIM_SECONDS),
            )
        )
        self._session = session
        self._transcript.add(session.number, "start", json.dumps(argv).encode("ascii"))
        self._clock.busy()
        return session.number

    async def send(self, number: int, line: bytes) -> None:
        """Write one line, within the response time; every line is an action."""
        session, shim = self._current(number), await self._supervisor()
        self.count_action()
        if len(line) + 1 > self._limits.request_bytes:
            raise EnvironmentFailure("TaskFailed", f"a request of {len(line) + 1} bytes is over request_bytes")
        self._transcript.add(number, "in", line)
        seconds = self._clock.left(self._limits.response_seconds)
        try:
            await self._asked(shim.write(session, line + b"\n", seconds), on_timeout=self._late)
        except CandidateError as error:
            raise await self._ended(shim, session) if error.reason == "Exited" else error from None
        finally:
            self._clock.busy()

    async def action(self, number: int, payload: bytes) -> bytes:
        """Refuse: a program is sent lines."""
        raise EnvironmentFailure("TaskFailed", f"session {number} is a program's: send it lines and receive them")

    def count_action(self) -> None:
        """Count one more question; ``CandidateError`` when there were too many."""
        self._sends += 1
        if self._limits.actions is not None and self._sends > self._limits.actions:
            raise CandidateError("ActionLimit", f"used up its {self._limits.actions} actions without finishing")

    def has_ended(self, number: int) -> str | None:
        """Say how the session's process ended; None while it runs."""
        session = self._current(number)
        if session.exit is None:
            return None
        return f"code {session.exit.code}" if session.exit.signal is None else f"signal {session.exit.signal}"

    async def how_it_ended(self, number: int) -> CandidateError | EnvironmentFailure | None:
        """Return what a process that is gone is to be told by; None while it runs."""
        session, shim = self._current(number), await self._supervisor()
        with contextlib.suppress(TimeoutError):
            await shim.wait(session, lambda: session.exit is not None, _EXIT_GRACE)
        if shim.lost.is_set() or session.exit is not None:
            return await self._ended(shim, session)
        return None

    async def kill(self) -> None:
        """Kill the program that runs, so that whoever waits for it learns at once that the case is over."""
        if self._session is not None and self._session.number not in self._finished and self._session.exit is None:
            with contextlib.suppress(CandidateError, EnvironmentFailure, Refusal):
                await self._asked_raw((await self._supervisor()).signal(self._session, SIGKILL, _SHIM_SECONDS))

    async def receive(self, number: int, seconds: float) -> bytes:
        """Return the program's next line without its newline."""
        session, shim = self._current(number), await self._supervisor()
        allowed = self._clock.left(seconds)

        def answered() -> bool:
            return b"\n" in session.stdout or session.stdout_eof or session.exit is not None

        try:
            await shim.wait(session, answered, allowed)
        except TimeoutError:
            raise self._late(seconds) from None
        finally:
            self._clock.busy()
        self._clock.left()
        if session.output_bytes > self._limits.output_bytes:
            raise self._flood()
        line = session.take_line()
        if line is None:
            raise await self._ended(shim, session)
        self._transcript.add(number, "out", line)
        return line

    async def finish(self, number: int, how: str) -> Finished:
        """Stop the program by ``eof`` or ``kill``, then everything that it started; again for a finished session."""
        if number in self._finished:
            return self._finished[number]
        session, shim = self._current(number), await self._supervisor()
        try:
            if how == "eof":
                await self._let_end(shim, session)
            else:
                self._clock.left()
        finally:
            # Also when time is up: the program must not run on while its driver goes on to grade.
            finished = await self._end(shim, session)
        if how == "eof" and session.exit is not None and (broken := self._broken(session.exit)):
            raise broken
        return finished

    async def stop(self) -> None:
        """Kill whatever of the candidate still runs; what it broke before is not told again."""
        if self._session is not None and self._session.number not in self._finished:
            with contextlib.suppress(CandidateError, EnvironmentFailure):
                await self._end(await self._supervisor(), self._session)

    async def close(self) -> None:
        """Let the shim exit; one that has not dialled yet gets a moment, so that it need not look for us in vain."""
        await asyncio.wait({self._shim}, timeout=_FAREWELL_SECONDS)
        self._shim.cancel()
        try:
            await (await self._shim).exit()
        except (asyncio.CancelledError, TimeoutError, OSError, WireError, asyncio.IncompleteReadError):
            return

    def _current(self, number: int) -> Session:
        if self._session is None or self._session.number != number:
            raise EnvironmentFailure("TaskFailed", f"session {number!r} is not the one that runs")
        return self._session

    async def _supervisor(self) -> Supervisor:
        try:
            return await asyncio.shield(self._shim)
        except TimeoutError:
            why = f"it did not connect within {self._limits.hold_seconds:g} s"
        except (OSError, WireError, asyncio.IncompleteReadError) as error:
            why = str(error)
        raise EnvironmentFailure("EvidenceFailed", f"the candidate container's shim: {why}")

    async def _let_end(self, shim: Supervisor, session: Session) -> None:
        seconds = self._clock.left(self._limits.response_seconds)
        with contextlib.suppress(Refusal):
            await self._asked_raw(shim.close_stdin(session, seconds), on_timeout=self._late)
        try:
            await shim.wait(session, lambda: session.exit is not None, seconds)
        except TimeoutError:
            self._clock.left()
            raise CandidateError("TimeLimit", f"did not exit within {seconds:g} s after its input ended") from None
        finally:
            self._clock.busy()
        if session.exit is None:
            raise await self._lost()

    async def _end(self, shim: Supervisor, session: Session) -> Finished:
        """Kill, reap and sweep; write the end of the session's transcript."""
        if session.exit is None:
            with contextlib.suppress(Refusal):
                await self._asked_raw(shim.signal(session, SIGKILL, _SHIM_SECONDS))
        await self._sweep(shim)
        with contextlib.suppress(TimeoutError):
            await shim.wait(session, lambda: session.exit is not None, _SHIM_SECONDS)
        if session.exit is None:
            raise await self._lost()
        number, rest = session.number, bytes(session.stdout)
        session.stdout.clear()
        self._transcript.stderr_end(number)
        if rest:
            self._transcript.add(number, "out", rest)
        ended = session.exit
        self._transcript.add(number, "exit", json.dumps({"code": ended.code, "signal": ended.signal}).encode("ascii"))
        tail = self._transcript.stderr_tail(number)
        finished = Finished(ended.code, ended.signal, session.output_bytes, tail, len(rest.strip()))
        self._finished[number] = finished
        return finished

    async def _sweep(self, shim: Supervisor) -> None:
        swept = await self._asked(shim.sweep((), _SWEEP_SECONDS))
        if swept.left:
            raise CandidateError("ProcessLimit", f"{swept.left} of its processes could not be ended")

    async def _ended(self, shim: Supervisor, session: Session) -> CandidateError | EnvironmentFailure:
        """Say how a program ended that should not have."""
        with contextlib.suppress(TimeoutError):
            await shim.wait(session, lambda: session.exit is not None, _EXIT_GRACE)
        if shim.lost.is_set() and session.exit is None:
            return await self._lost()
        if session.exit is None:
            return CandidateError("Exited", "closed its stdout before it answered")
        if broken := self._broken(session.exit):
            return broken
        how = f"code {session.exit.code}" if session.exit.signal is None else f"signal {session.exit.signal}"
        words = (self._transcript.stderr_tail(session.number).strip().splitlines() or [""])[-1]
        said = f": {cut_text(words, _STDERR_SHOWN)}" if words else ""
        return CandidateError("Exited", f"exited with {how} before it answered{said}")

    async def _lost(self) -> CandidateError | EnvironmentFailure:
        if not self._clock.started:
            return EnvironmentFailure("EvidenceFailed", "the candidate container's shim went away before any start")
        # A pod that is being taken away stops the shim too. Then the driver is stopped as well, and this connection
        # with it, before the loss is told.
        await asyncio.sleep(self._settings.loss_grace)
        return CandidateError("ShimLost", "its container ended, or its shim was ended, while it ran")

    def late(self, seconds: float) -> CandidateError:
        """Return the limit of time that was passed."""
        return self._late(seconds)

    def _late(self, seconds: float | None = None) -> CandidateError:
        allowed = self._limits.response_seconds if seconds is None else seconds
        try:
            self._clock.left()
        except CandidateError as error:
            return error
        return CandidateError("TimeLimit", f"did not answer within {allowed:g} s")

    def _broken(self, ended: Exit) -> CandidateError | None:
        """Return the limit that ended a program; None where it ended by itself, whatever it lost on the way."""
        if ended.code == 0:
            return None
        if ended.oom:
            return CandidateError("OOMKilled", "used up the memory of its container")
        if ended.output_limit:
            return self._flood()
        if ended.process_limit:
            return CandidateError("ProcessLimit", f"started more than {self._limits.processes} processes")
        return None

    def _flood(self) -> CandidateError:
        return CandidateError("OutputLimit", f"wrote more than {self._limits.output_bytes} bytes in one session")

    async def _asked_raw(self, question: Awaitable[T], on_timeout: Callable[[], CandidateError] | None = None) -> T:
        try:
            return await question
        except ConnectionLost:
            raise await self._lost() from None
        except TimeoutError:
            if on_timeout is not None:
                raise on_timeout() from None
            if not self._clock.started:
                raise EnvironmentFailure("EvidenceFailed", "the candidate container's shim does not answer") from None
            raise CandidateError("ShimLost", "its container left the shim no room to answer") from None

    async def _asked(self, question: Awaitable[T], on_timeout: Callable[[], CandidateError] | None = None) -> T:
        try:
            return await self._asked_raw(question, on_timeout)
        except Refusal as refusal:
            raise error_of(refusal) from None

    def _output(self, session: Session, stream: str, data: bytes) -> None:
        if stream == "stderr":
            self._transcript.stderr(session.number, data)
