"""A recorder at work in this process, with the real shim or a fake one, and a driver's connection to it."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from unittest import mock

from support.attempt import MemorySink, settings_for
from support.shim import shim

from casewarden.casepod import candidate
from casewarden.casepod.recorder import Recorder
from casewarden_sdk.canonical import canonical
from casewarden_sdk.connection import Connection, Refusal
from casewarden_sdk.contract import Case, Verdict
from casewarden_sdk.wire import encode, read_frame

__all__ = ["Bench", "FakeShim", "recording"]


class Bench:
    """What a test holds: the driver's connection, the sink, the scratch folder and the recorder's stop."""

    def __init__(self, case: Case, scratch: Path, sink: MemorySink, stop: asyncio.Event) -> None:
        self.case = case
        self.scratch = scratch
        self.sink = sink
        self.stop = stop
        self.driver: Connection | None = None
        self.recorder: asyncio.Task[None] | None = None

    async def connect(self) -> Connection:
        """Dial as the driver does."""
        path = self.scratch / "s" / "t"
        async with asyncio.timeout(10):
            while not path.exists():
                await asyncio.sleep(0.005)
        self.driver = Connection(*(await asyncio.open_unix_connection(path)))
        return self.driver

    async def ask(self, op: str, payload: bytes = b"", **fields: Any) -> tuple[dict[str, Any], bytes]:
        """Ask the recorder; ``Refusal`` where it refuses."""
        driver = self.driver or await self.connect()
        return await driver.ask({"op": op, **fields}, payload, 60)

    async def hello(self, **changes: Any) -> dict[str, Any]:
        """Say hello as the case's own driver would."""
        told = {"v": 1, "case_id": self.case.id, "seed": 17, "case_sha256": self.case.sha256, **changes}
        answer = (await self.ask("hello", **told))[0]
        await self.ask("case", canonical(dict(self.case.content)).encode())
        return answer

    async def start(self, program: str) -> int:
        """Lay out ``program`` as the candidate and start it."""
        (self.scratch / "candidate" / "main.py").write_text(program)
        return int((await self.ask("start", argv=None))[0]["session"])

    async def say(self, session: int, line: bytes, seconds: float = 5) -> bytes:
        """Send a line and return the one that answers it."""
        await self.ask("send", line, session=session)
        return (await self.ask("receive", session=session, seconds=seconds))[1]

    async def finish(self, session: int, how: str = "eof") -> dict[str, Any]:
        """Finish a session."""
        return (await self.ask("finish", session=session, how=how))[0]

    async def refused(self, op: str, payload: bytes = b"", **fields: Any) -> Refusal:
        """Ask what must be refused."""
        try:
            answer = await self.ask(op, payload, **fields)
        except Refusal as refusal:
            return refusal
        raise AssertionError(f"{op} was answered: {answer}")

    async def seal(self, verdict: Verdict | None = None) -> dict[str, Any]:
        """Hand over a verdict, by default a passed one."""
        verdict = verdict or Verdict.assessed(self.case, dict.fromkeys(self.case.dimensions, True))
        return (await self.ask("seal", canonical({"x": 1}).encode(), verdict=verdict.to_json()))[0]


class FakeShim:
    """Dials like a shim and says what a test tells it to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def dial(cls, path: Path, hello: dict[str, Any] | None = None) -> FakeShim:
        """Connect and say hello, or something else."""
        async with asyncio.timeout(10):
            while not path.exists():
                await asyncio.sleep(0.005)
        fake = cls(*(await asyncio.open_unix_connection(path)))
        fake.send({"event": "hello", "v": 1, "pid": 1, "uid": 1, "kernel": {}} if hello is None else hello)
        return fake

    def send(self, header: dict[str, Any], payload: bytes = b"") -> None:
        """Send a frame."""
        self.writer.write(encode(header, payload))

    async def answer(self, op: str, **fields: Any) -> dict[str, Any]:
        """Read a request, which must be ``op``, and answer it."""
        header, _ = await asyncio.wait_for(read_frame(self.reader), 10)
        assert header["op"] == op, header
        self.send({"id": header["id"], "ok": True, **fields})
        return header

    def close(self) -> None:
        """Hang up."""
        self.writer.close()


@contextlib.asynccontextmanager
async def recording(
    case: Case, scratch: Path, *, real_shim: bool = True, restarted: bool = False, **settings: Any
) -> AsyncIterator[Bench]:
    """Run a recorder, and the real shim unless a test brings its own; both are gone afterwards."""
    sink, stop = MemorySink(), asyncio.Event()
    made = settings_for(case, scratch, **settings)
    bench = Bench(case, scratch, sink, stop)
    bench.recorder = asyncio.create_task(Recorder(made, sink, restarted=restarted).run(stop))
    process = None
    if real_shim:
        command = [str(shim()), "--local", "--dial", made.places.candidate_socket]
        process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        # A shim that never dials need not be waited for at the end.
        farewell = 1.0 if real_shim else 0.01
        with mock.patch.object(candidate, "_FAREWELL_SECONDS", farewell):
            yield bench
            await _end(bench, process)
    finally:
        stop.set()
        await asyncio.wait({bench.recorder}, timeout=20)


async def _end(bench: Bench, process: asyncio.subprocess.Process | None) -> None:
    """Let driver, recorder and shim go, in this order; each must."""
    if bench.driver is not None:
        await bench.driver.close()
    bench.stop.set()
    assert bench.recorder is not None
    await asyncio.wait({bench.recorder}, timeout=20)
    if process is not None:
        code = await asyncio.wait_for(process.wait(), 10)
        assert code == 0, f"the shim ended with {code}"
    await bench.recorder
