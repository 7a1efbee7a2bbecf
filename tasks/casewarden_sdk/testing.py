"""For the tests of packs: play a case against a program without a cluster, sidecar or shim.

``play`` runs the pack's own driver and grader over plain subprocesses of this machine. It is no sandbox, measures no
memory, and does not see a daemon that outlives its session; ``casewarden run`` and the case pod do.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from .connection import Refusal, refusal_of
from .contract import JSON, Case, Control, Limits, Pack, Verdict
from .errors import CandidateError, EnvironmentFailure
from .judging import candidate_error_record, judge
from .runtime import Runtime
from .wire import Frame

__all__ = ["Played", "ScriptedModel", "play", "play_async"]

Program = Union[str, Path, Control, Mapping[str, str]]
# Plays a model of the task's own: takes the request, returns the text of its answer, or the whole message.
ScriptedModel = Callable[[Mapping[str, Any]], Union[str, Mapping[str, JSON]]]


@dataclasses.dataclass(frozen=True)
class Played:
    """What came of a case: the verdict, the record it was made of, and the states that the driver noted."""

    verdict: Verdict
    record: JSON
    notes: Tuple[Tuple[str, JSON], ...]


def play(
    pack: Pack,
    case: Case,
    program: Program,
    argv: Optional[Sequence[str]] = None,
    seed: int = 0,
    models: Optional[Mapping[str, ScriptedModel]] = None,
) -> Played:
    """Drive and grade one case against ``program``: a folder, a control, or a map of file names to text.

    ``argv`` defaults to the control's, then to the pack's ``default_argv``. ``models`` play the models that the driver
    asks, by role. An ``EnvironmentFailure`` is raised.
    """
    return asyncio.run(play_async(pack, case, program, argv, seed, models))


async def play_async(
    pack: Pack,
    case: Case,
    program: Program,
    argv: Optional[Sequence[str]] = None,
    seed: int = 0,
    models: Optional[Mapping[str, ScriptedModel]] = None,
) -> Played:
    """``play`` inside a running event loop."""
    if isinstance(program, Control):
        argv = argv or program.argv
        program = program.files
    with tempfile.TemporaryDirectory(prefix="casewarden-play-") as scratch:
        workspace, state = _lay_out(Path(scratch), program)
        recorder = _Subprocesses(workspace, state, tuple(argv or pack.default_argv), pack.limits, models or {})
        runtime = Runtime(recorder, pack.limits, seed, str(Path(scratch, "env")))
        try:
            record = await pack.drive(case, runtime)
        except CandidateError as error:
            record = candidate_error_record(error)
        finally:
            await runtime.close()
        return Played(judge(pack, case, record), record, tuple(recorder.notes))


def _lay_out(scratch: Path, program: Union[str, Path, Mapping[str, str]]) -> Tuple[Path, Path]:
    state = scratch / "state"
    state.mkdir()
    if not isinstance(program, Mapping):
        return Path(program).resolve(), state
    workspace = scratch / "candidate"
    workspace.mkdir()
    for name, text in program.items():
        (workspace / name).write_text(text, encoding="utf-8")
    return workspace, state


class _Running:
    """A subprocess, what is left of its time, and what its pipes have said."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.stderr = bytearray()
        self.output_bytes = 0
        self.drain = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        assert self.process.stderr is not None
        while True:
            chunk = await self.process.stderr.read(65536)
            if not chunk:
                return
            self.output_bytes += len(chunk)
            self.stderr += chunk
            del self.stderr[:-2048]


class _Subprocesses:
    """Plays the evidence sidecar's part of ``Runtime`` over subprocesses."""

    def __init__(
        self, workspace: Path, state: Path, argv: Sequence[str], limits: Limits, models: Mapping[str, ScriptedModel]
    ) -> None:
        self.notes: List[Tuple[str, JSON]] = []
        self._places = {"{python}": sys.executable, "{workspace}": str(workspace), "{state}": str(state)}
        self._workspace = workspace
        self._argv = argv
        self._limits = limits
        self._models = models
        self._running: Dict[int, _Running] = {}
        self._deadline: Optional[float] = None
        self._sends = 0

    async def ask(self, header: Dict[str, Any], payload: bytes = b"", seconds: Optional[float] = None) -> Frame:
        try:
            frame: Frame = await getattr(self, "_" + header["op"])(header, payload)
            return frame
        except (CandidateError, EnvironmentFailure) as error:
            raise Refusal({"ok": False, "error": refusal_of(error)}) from None

    async def _start(self, header: Mapping[str, Any], _: bytes) -> Frame:
        if self._deadline is None:
            self._deadline = time.monotonic() + self._limits.case_seconds
        self._left(self._limits.case_seconds)
        argv = [self._place(word) for word in self._argv]
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=self._workspace,
                env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "HOME": self._places["{state}"]},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=self._limits.output_bytes,
                start_new_session=True,
            )
        except OSError as error:
            raise CandidateError("CannotStartProgram", f"{argv[0]}: {error.strerror}") from None
        number = len(self._running) + 1
        self._running[number] = _Running(process)
        return {"ok": True, "session": number}, b""

    async def _send(self, header: Mapping[str, Any], payload: bytes) -> Frame:
        self._sends += 1
        if self._limits.actions is not None and self._sends > self._limits.actions:
            raise CandidateError("ActionLimit", f"more than {self._limits.actions} actions")
        stdin = self._running[header["session"]].process.stdin
        assert stdin is not None
        stdin.write(payload + b"\n")
        try:
            await asyncio.wait_for(stdin.drain(), self._left(self._limits.response_seconds))
        except asyncio.TimeoutError:
            raise CandidateError("TimeLimit", "did not read its input in time") from None
        except ConnectionError:
            raise CandidateError("Exited", "closed its input") from None
        return {"ok": True}, b""

    async def _receive(self, header: Mapping[str, Any], _: bytes) -> Frame:
        running = self._running[header["session"]]
        assert running.process.stdout is not None
        try:
            line = await asyncio.wait_for(running.process.stdout.readuntil(), self._left(header["seconds"]))
        except asyncio.TimeoutError:
            raise CandidateError("TimeLimit", "no answer in time") from None
        except asyncio.LimitOverrunError:
            raise CandidateError("OutputLimit", f"more than {self._limits.output_bytes} bytes of output") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            raise CandidateError("Exited", "ended without a whole answer") from None
        running.output_bytes += len(line)
        if running.output_bytes > self._limits.output_bytes:
            raise CandidateError("OutputLimit", f"more than {self._limits.output_bytes} bytes of output")
        return {"ok": True}, line[:-1]

    async def _finish(self, header: Mapping[str, Any], _: bytes) -> Frame:
        running = self._running[header["session"]]
        process, late, rest = running.process, None, b""
        assert process.stdin is not None
        assert process.stdout is not None
        if header["how"] == "eof":
            process.stdin.close()
            try:
                seconds = self._left(self._limits.response_seconds)
                rest = await asyncio.wait_for(process.stdout.read(self._limits.output_bytes + 1), seconds)
                await asyncio.wait_for(process.wait(), self._left(self._limits.response_seconds))
            except (asyncio.TimeoutError, CandidateError):
                late = CandidateError("TimeLimit", "did not exit after its input ended")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        await asyncio.wait({running.drain}, timeout=5)
        running.drain.cancel()
        if late is not None:
            raise late
        code = process.returncode
        ended = {
            "code": code if code is not None and code >= 0 else None,
            "signal": -code if code is not None and code < 0 else None,
            "output_bytes": running.output_bytes + len(rest),
            "stderr_tail": running.stderr.decode("utf-8", "replace"),
            "unsolicited": len(rest.strip()),
        }
        return {"ok": True, **ended}, b""

    async def _state(self, header: Mapping[str, Any], payload: bytes) -> Frame:
        self.notes.append((header["name"], json.loads(payload)))
        return {"ok": True}, b""

    async def _model(self, header: Mapping[str, Any], payload: bytes) -> Frame:
        if header["role"] not in self._models:
            raise EnvironmentFailure("ModelUnavailable", f"play() was given no model for {header['role']!r}")
        asked = json.loads(payload)
        control = asked.pop("control", None)
        try:
            said = self._models[header["role"]](asked)
        except CandidateError:
            if control is None:
                raise EnvironmentFailure(
                    "ModelUnavailable", "the scripted model refused, and there is no control"
                ) from None
            self._models[header["role"]]({**asked, "messages": control})
            raise
        message = {"content": said} if isinstance(said, str) else dict(said)
        return {"ok": True}, json.dumps({"role": "assistant", **message}).encode("ascii")

    def _place(self, word: str) -> str:
        for placeholder, value in self._places.items():
            word = word.replace(placeholder, value)
        return word

    def _left(self, seconds: float) -> float:
        left = (self._deadline or 0.0) - time.monotonic()
        if left <= 0:
            raise CandidateError("TimeLimit", f"the case took more than {self._limits.case_seconds:g} s")
        return min(seconds, left)
