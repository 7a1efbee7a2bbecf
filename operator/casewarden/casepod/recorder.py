"""The recorder: answers one driver, from its hello to the seal, and keeps what was said.

The order that cannot be changed by either party: the claim before anything else, the candidate stopped before the
bundle is made, the bundle in the store before the seal, the seal before the driver is told. When the driver goes
without a seal, what there is is kept as a partial bundle.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewarden_sdk.canonical import canonical, sha256_bytes
from casewarden_sdk.connection import accept_once, refusal_of
from casewarden_sdk.errors import CandidateError, EnvironmentFailure
from casewarden_sdk.wire import WIRE_VERSION, Frame, WireError, encode, read_frame
from casewarden_sdk.workspace import WorkspaceError, digest_workspace, unpack_workspace, write_workspace

from .candidate import Candidate
from .chat import ModelCandidate, ServerCandidate
from .clock import CaseClock
from .evidence import Evidence, checked_verdict
from .settings import Settings
from .sink import EvidenceSink
from .transcript import Transcript
from .zstd import decompress

if TYPE_CHECKING:
    from .gateway import Gateway
    from .models import Models
    from .taskmodels import TaskModels

__all__ = ["Recorder"]

_STOPPED_SECONDS = 5.0
_ABANDON_SECONDS = 30.0
_MAX_STATES_BYTES = 32 << 20


class _Superseded(Exception):
    """The claim is another's, or the case is sealed."""


class Recorder:
    """Serves one driver.

    ``restarted`` refuses it, because what came before is lost with the process that knew it. ``on_used`` is called when
    a driver or a shim has connected: from then on another process could not take over.
    """

    def __init__(
        self,
        settings: Settings,
        sink: EvidenceSink,
        *,
        restarted: bool = False,
        on_used: Callable[[], None] | None = None,
    ) -> None:
        self._settings = settings
        self._sink = sink
        self._restarted = restarted
        self._on_used = on_used or _nothing
        self._clock = CaseClock(settings.limits.case_seconds)
        self._transcript = Transcript(self._clock.now)
        self._evidence = Evidence(settings, self._transcript, time.time())
        self._candidate: Candidate | ModelCandidate | None = None
        self._models: Models | None = None
        self._task_models: TaskModels | None = None
        self._gateway: Gateway | None = None
        self._killing: asyncio.Task[None] | None = None
        self._claimed = False
        self._over = False
        self._states_size = 0
        self._answers: Mapping[str, Callable[[Mapping[str, Any], bytes], Awaitable[Frame]]] = {
            "hello": self._hello,
            "case": self._case,
            "start": self._start,
            "action": self._action,
            "model": self._model,
            "send": self._send,
            "receive": self._receive,
            "finish": self._finish,
            "state": self._state,
            "seal": self._seal,
            "abandon": self._abandon,
        }

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until the driver is gone or ``stop`` is set, then let the shim exit."""
        self._candidate = await self._made()
        stopping = asyncio.ensure_future(stop.wait())
        serving = asyncio.ensure_future(self._serve())
        try:
            await asyncio.wait({stopping, serving}, return_when=asyncio.FIRST_COMPLETED)
            serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await serving
            await self._keep_partial(_STOPPED_SECONDS if stop.is_set() else _ABANDON_SECONDS)
        finally:
            stopping.cancel()
            await self._candidate.close()
            await self._close_models()

    async def _serve(self) -> None:
        # The pod's own deadline bounds this wait: nobody can know how long the task's image takes to pull.
        reader, writer = await accept_once(self._settings.places.task_socket, None)
        self._on_used()
        frames: asyncio.Queue[Frame | None] = asyncio.Queue(maxsize=64)
        giving_up = asyncio.Event()
        pump = asyncio.ensure_future(_pump(reader, frames, giving_up))
        gone = asyncio.ensure_future(_wait_for(pump))
        given_up = asyncio.ensure_future(giving_up.wait())
        try:
            while (frame := await frames.get()) is not None:
                answer = asyncio.ensure_future(self._answer(*frame))
                await asyncio.wait({answer, gone, given_up}, return_when=asyncio.FIRST_COMPLETED)
                if not answer.done() and given_up.done() and frame[0].get("op") != "abandon":
                    # The driver waits for no answer any more: it is being stopped, and hands over what it has.
                    answer.cancel()
                    await asyncio.wait({answer})
                    continue
                await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not answer.done():
                    # Nobody waits for it any more; above all, nothing may be sealed for a driver that is gone.
                    answer.cancel()
                    await asyncio.wait({answer})
                    return
                writer.write(answer.result())
                await writer.drain()
        except ConnectionError:
            return
        finally:
            pump.cancel()
            gone.cancel()
            given_up.cancel()
            writer.close()

    async def _answer(self, header: dict[str, Any], payload: bytes) -> bytes:
        number = header.get("id")
        try:
            fields, data = await self._handle(header, payload)
            return encode({**fields, "id": number, "ok": True}, data)
        except _Superseded as error:
            refusal = {"party": "environment", "reason": "Superseded", "message": str(error)}
            return encode({"id": number, "ok": False, "superseded": True, "error": refusal})
        except (CandidateError, EnvironmentFailure) as error:
            return encode({"id": number, "ok": False, "error": refusal_of(error)})
        except Exception as error:
            traceback.print_exc()
            failure = EnvironmentFailure("EvidenceFailed", f"the recorder failed: {type(error).__name__}: {error}")
            return encode({"id": number, "ok": False, "error": refusal_of(failure)})

    async def _handle(self, header: Mapping[str, Any], payload: bytes) -> Frame:
        op = header.get("op")
        handler = self._answers.get(op) if isinstance(op, str) else None
        if handler is None:
            raise EnvironmentFailure("TaskFailed", f"the recorder has no request {op!r}")
        if self._over or (op != "hello" and not self._claimed):
            raise EnvironmentFailure("TaskFailed", f"{op} is out of order: hello comes first, seal or abandon last")
        try:
            answer = await handler(header, payload)
        except CandidateError:
            self._raise_broken()
            raise
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise EnvironmentFailure("TaskFailed", f"{op}: {type(error).__name__}: {error}") from None
        if op in ("send", "receive", "action", "finish"):
            self._raise_broken()
        return answer

    def _raise_broken(self) -> None:
        """What went wrong at the model comes first: whatever the candidate did since then follows from it."""
        if self._models is not None and self._models.broken is not None:
            raise self._models.broken from None

    async def _made(self) -> Candidate | ModelCandidate:
        settings, model = self._settings, self._settings.model
        if settings.models:
            await asyncio.to_thread(_import_gateway)
            from .taskmodels import TaskModels

            self._task_models = TaskModels(settings, self._clock, self._transcript)
        kind = ServerCandidate if settings.plays == "server" else Candidate
        if model is None:
            return kind(settings, self._clock, self._transcript, self._on_used)
        candidate = None
        if settings.plays != "model":
            candidate = kind(settings, self._clock, self._transcript, self._on_used)
        # Imported late: beside most cases this weight would be for nothing. In a thread: the shim dials for a minute
        # only, and on a busy node the import alone can take as long.
        await asyncio.to_thread(_import_gateway)
        from .gateway import Gateway, gateway_environment
        from .models import Models

        self._models = models = Models(settings, model, self._clock, self._transcript)
        if candidate is None:
            return ModelCandidate(settings, self._clock, self._transcript, models)
        self._gateway = Gateway(models, model.port)
        await self._gateway.open()
        candidate.variables = gateway_environment(model.dialect, model.name, model.port)

        def kill() -> None:
            self._killing = asyncio.ensure_future(candidate.kill())

        models.on_broken = kill
        return candidate

    async def _close_models(self) -> None:
        if self._gateway is not None:
            await self._gateway.close()
        if self._models is not None:
            await self._models.close()
        if self._task_models is not None:
            await self._task_models.close()

    async def _hello(self, header: Mapping[str, Any], _: bytes) -> Frame:
        if self._restarted:
            raise EnvironmentFailure("EvidenceFailed", "the recorder was restarted; what it knew of the case is lost")
        settings = self._settings
        told = [header.get(name) for name in ("v", "case_id", "seed", "case_sha256")]
        wanted = [WIRE_VERSION, settings.case_id, settings.seed, settings.case_sha256]
        if told != wanted:
            raise EnvironmentFailure("CaseMismatch", f"the driver has {told!r}, the plan {wanted!r}")
        if not await self._sink.claim():
            raise _Superseded("another pod has this attempt, or the case is sealed")
        self._claimed = True
        if settings.candidate is not None and settings.candidate.fetch_workspace:
            await self._unpack_workspace(settings.candidate.workspace_digest or "")
        return {"limits": dict(settings.told_limits), "candidate": settings.plays}, b""

    async def _case(self, _: Mapping[str, Any], payload: bytes) -> Frame:
        if sha256_bytes(payload) != self._settings.case_sha256:
            raise EnvironmentFailure("CaseMismatch", "the case's content has not the digest of the plan")
        self._evidence.case = payload
        return {}, b""

    async def _start(self, header: Mapping[str, Any], _: bytes) -> Frame:
        number = await self._of_candidate().start(header.get("argv"))
        if self._models is not None:
            self._models.session_number = number
        return {"session": number}, b""

    async def _action(self, header: Mapping[str, Any], payload: bytes) -> Frame:
        return {}, await self._of_candidate().action(header["session"], payload)

    async def _model(self, header: Mapping[str, Any], payload: bytes) -> Frame:
        if self._task_models is None:
            raise EnvironmentFailure("TaskFailed", f"the run has no model for {header['role']!r} (it has none)")
        return {}, await self._task_models.ask(header["role"], payload)

    async def _send(self, header: Mapping[str, Any], payload: bytes) -> Frame:
        await self._of_candidate().send(header["session"], payload)
        return {}, b""

    async def _receive(self, header: Mapping[str, Any], _: bytes) -> Frame:
        return {}, await self._of_candidate().receive(header["session"], float(header["seconds"]))

    async def _finish(self, header: Mapping[str, Any], _: bytes) -> Frame:
        ended = await self._of_candidate().finish(header["session"], header["how"])
        return {
            "code": ended.code,
            "signal": ended.signal,
            "output_bytes": ended.output_bytes,
            "stderr_tail": ended.stderr_tail,
            "unsolicited": ended.unsolicited,
        }, b""

    async def _state(self, header: Mapping[str, Any], payload: bytes) -> Frame:
        row = {"t": round(self._clock.now(), 6), "name": str(header["name"]), "value": json.loads(payload)}
        line = canonical(row).encode("ascii") + b"\n"
        self._states_size += len(line)
        if self._states_size > _MAX_STATES_BYTES:
            raise EnvironmentFailure("TaskFailed", f"the driver noted more than {_MAX_STATES_BYTES} bytes of states")
        self._evidence.states.append(line)
        return {}, b""

    async def _seal(self, header: Mapping[str, Any], payload: bytes) -> Frame:
        verdict = checked_verdict(self._settings, header.get("verdict"))
        if not self._evidence.case:
            raise EnvironmentFailure("TaskFailed", "the driver sealed before it handed over the case's content")
        if self._task_models is not None and self._task_models.failed is not None:
            raise self._task_models.failed
        await self._of_candidate().stop()
        self._evidence.record = payload
        seconds = self._clock.seconds
        self._count_usage()
        document = self._evidence.verdict_document(verdict, seconds)
        bundle = await asyncio.to_thread(self._evidence.bundle, time.time(), verdict=document)
        digest = sha256_bytes(bundle)
        await self._sink.put_bundle(bundle, partial=False)
        ours = await self._sink.put_sealed(self._evidence.sealed(verdict, digest, seconds))
        self._over = True
        if not ours:
            raise _Superseded("another attempt sealed this case first")
        return {"digest": digest, "seconds": seconds}, b""

    async def _abandon(self, header: Mapping[str, Any], payload: bytes) -> Frame:
        self._evidence.record = payload
        await self._of_candidate().stop()
        trouble = {"reason": str(header.get("reason")), "error": str(header.get("error"))}
        try:
            async with asyncio.timeout(_ABANDON_SECONDS):
                await self._put_partial(trouble)
        except TimeoutError:
            message = f"no partial bundle was taken within {_ABANDON_SECONDS:g} s"
            raise EnvironmentFailure("StoreUnavailable", message) from None
        return {}, b""

    async def _keep_partial(self, seconds: float) -> None:
        if self._claimed and not self._over:
            trouble = {"reason": "Unknown", "error": "the driver went without a verdict"}
            try:
                async with asyncio.timeout(seconds):
                    await self._of_candidate().stop()
                    await self._put_partial(trouble)
            except (TimeoutError, EnvironmentFailure) as error:
                print(f"casewarden: no partial evidence was kept: {error!r}", file=sys.stderr, flush=True)

    async def _put_partial(self, trouble: Mapping[str, Any]) -> None:
        self._over = True
        self._count_usage()
        bundle = await asyncio.to_thread(self._evidence.bundle, time.time(), trouble=trouble)
        await self._sink.put_bundle(bundle, partial=True)

    def _count_usage(self) -> None:
        self._evidence.usage = None if self._models is None else self._models.usage()
        self._evidence.task_usage = {} if self._task_models is None else self._task_models.usage()

    async def _unpack_workspace(self, digest: str) -> None:
        archive = await self._sink.fetch_workspace(digest)
        try:
            files = unpack_workspace(archive, decompress)
        except WorkspaceError as error:
            raise EnvironmentFailure("EvidenceFailed", f"workspace {digest}: {error}") from None
        if digest_workspace(files) != digest:
            raise EnvironmentFailure("EvidenceFailed", f"the store's workspace has not the digest {digest}")
        await asyncio.to_thread(write_workspace, files, Path(self._settings.places.own_workspace))

    def _of_candidate(self) -> Candidate | ModelCandidate:
        assert self._candidate is not None, "run() makes it"
        return self._candidate


def _import_gateway() -> None:
    from . import gateway  # noqa: F401


def _nothing() -> None:
    return


async def _pump(reader: asyncio.StreamReader, frames: asyncio.Queue[Frame | None], giving_up: asyncio.Event) -> None:
    try:
        while True:
            frame = await read_frame(reader)
            if frame[0].get("op") == "abandon":
                giving_up.set()
            await frames.put(frame)
    except (asyncio.IncompleteReadError, WireError, ConnectionError):
        await frames.put(None)


async def _wait_for(task: asyncio.Future[None]) -> None:
    await asyncio.wait({task})
