"""One attempt on this machine: shim, recorder and driver around a scratch folder, as a case pod has them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from casewarden.casepod.recorder import Recorder
from casewarden.casepod.settings import Places, Settings
from casewarden.core.model import AttemptKey, PlannedCase
from casewarden.core.pod_context import ModelSpec, candidate_network
from casewarden.ports.store import Store
from casewarden_sdk.termination import MESSAGE_BYTES
from casewarden_sdk.workspace import WorkspaceFile, write_workspace

from .models import LocalModels
from .sink import StoreSink

__all__ = ["Ended", "Ground", "LocalAttempt"]

_HOLD_SECONDS = 60.0
_BACKSTOP_SECONDS = 300.0
_GRACE_SECONDS = 3.0
_LOG_BYTES = 8192
# sun_path has room for 107 bytes; what is put below the scratch folder takes less than 40 of them.
_LONGEST_TEMPORARY = 60


@dataclass(frozen=True, slots=True)
class Ground:
    """What all attempts of a run stand on. ``limits`` are the effective ones, by their names in ``CASEWARDEN_ATTEMPT``.

    ``pack`` is ``MODULE:PACK``; ``environments`` are the names of the environment containers of each class of cases.
    ``port`` is a server's. ``model`` plays alone where ``alone`` is set. ``models`` is the way to it and to
    ``task_models``. ``variables`` are put into the driver's environment.
    """

    run_uid: str
    store: Store
    shim: Path
    pack: str
    params: Mapping[str, Any]
    limits: Mapping[str, Any]
    argv: Sequence[str] | None
    default_argv: Sequence[str]
    env: Sequence[tuple[str, str]] = ()
    files: Sequence[WorkspaceFile] = ()
    environments: Mapping[str, Sequence[str]] | None = None
    port: int | None = None
    agent: Mapping[str, Any] | None = None
    alone: bool = False
    model: ModelSpec | None = None
    task_models: Mapping[str, ModelSpec] = field(default_factory=dict)
    models: LocalModels | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended:
    """How the driver ended, its termination message, and the end of what it wrote to stderr."""

    exit_code: int
    message: str
    log: str


class LocalAttempt:
    """Plays one attempt; ``stop`` ends it as SIGTERM ends a pod."""

    def __init__(self, ground: Ground, key: AttemptKey, case: PlannedCase, pod_name: str, pod_uid: str) -> None:
        self._ground = ground
        self._key = key
        self._case = case
        self._pod_name = pod_name
        self._pod_uid = pod_uid
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Let the driver be terminated; it seals nothing after that."""
        self._stopped.set()

    async def play(self) -> Ended:
        """Run to the end and leave no process and no file of the attempt behind, whatever happens."""
        scratch = Path(tempfile.mkdtemp(prefix="cw-", dir=_short_temporary()))
        try:
            return await self._play(scratch)
        finally:
            await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)

    async def _play(self, scratch: Path) -> Ended:
        settings = self._settings(scratch)
        for folder in ("state", "home", "s", "spool", "candidate"):
            (scratch / folder).mkdir()
        await asyncio.to_thread(write_workspace, self._ground.files, scratch / "candidate")
        recorder = asyncio.ensure_future(Recorder(settings, StoreSink(self._ground.store, settings)).run(self._stopped))
        started: list[asyncio.subprocess.Process] = []
        try:
            for socket in self._shim_sockets(scratch):
                shim = await self._spawn([str(self._ground.shim), "--local", "--dial", socket], {}, None)
                started.append(shim)
            with (scratch / "driver.log").open("wb") as log:
                command = [sys.executable, "-m", "casewarden_sdk", self._ground.pack, "drive"]
                driver = await self._spawn(command, self._driver_environment(scratch), log.fileno())
                started.append(driver)
            await self._until_over(driver)
            await asyncio.wait({recorder}, timeout=_GRACE_SECONDS)
            return _ended(driver.returncode, scratch)
        finally:
            recorder.cancel()
            for process in started:
                await _reap(process)
            await asyncio.wait({recorder})
            if not recorder.cancelled() and (error := recorder.exception()) is not None:
                print(f"casewarden: the recorder failed: {error!r}", file=sys.stderr)

    def _settings(self, scratch: Path) -> Settings:
        ground, case = self._ground, self._key.case
        # Attempts share this machine's loopback address, so each has a gateway of its own.
        gateway = _free_port()
        document = {
            "run_uid": ground.run_uid,
            "seed": case.seed,
            "case_id": case.case_id,
            "repeat": case.repeat,
            "attempt": self._key.attempt,
            "pod_name": self._pod_name,
            "pod_uid": self._pod_uid,
            "case_sha256": self._case.sha256,
            "dimensions": list(self._case.dimensions),
            "limits": {**ground.limits, "hold_seconds": _HOLD_SECONDS},
            "candidate": None if ground.alone else self._candidate(gateway),
            **self._models(scratch, gateway),
        }
        workspace = str(scratch / "candidate")
        places = Places(
            task_socket=str(scratch / "s" / "t"),
            candidate_socket=str(scratch / "s" / "c"),
            spool=str(scratch / "spool"),
            token=str(scratch / "token"),
            own_workspace=workspace,
            workspace=workspace,
            state=str(scratch / "state"),
            home=str(scratch / "home"),
            path=os.environ.get("PATH", os.defpath),
            python=_python(),
        )
        # Nothing else can end a local shim, so its loss needs no second look.
        return Settings.from_json(document, places, loss_grace=0.0)

    def _candidate(self, gateway: int) -> dict[str, Any]:
        ground = self._ground
        return {
            "argv": ground.argv,
            "default_argv": ground.default_argv,
            "env": [{"name": name, "value": value} for name, value in ground.env],
            "network": candidate_network(ground.port, gateway if ground.model is not None else None),
            **({} if ground.port is None else {"port": ground.port}),
            **({} if ground.agent is None else {"agent": dict(ground.agent)}),
        }

    def _models(self, scratch: Path, gateway: int) -> dict[str, Any]:
        ground = self._ground
        if ground.models is None:
            return {}
        token = scratch / "token"
        token.touch(mode=0o600)
        token.write_text(ground.models.admit(self._key, self._pod_uid), encoding="ascii")
        told: dict[str, Any] = {"relay_url": ground.models.url}
        if ground.model is not None:
            told["model"] = ground.model.to_json(ground.limits.get("tokens"), gateway)
        if ground.task_models:
            told["models"] = {role: model.to_json(None, gateway) for role, model in ground.task_models.items()}
        return told

    def _shim_sockets(self, scratch: Path) -> list[str]:
        names = (self._ground.environments or {}).get(self._case.kind, ())
        for name in names:
            (scratch / "e" / name).mkdir(parents=True)
        own = [] if self._ground.alone else [str(scratch / "s" / "c")]
        return [*own, *(str(scratch / "e" / name / "shim.sock") for name in names)]

    def _driver_environment(self, scratch: Path) -> dict[str, str]:
        case = {"seed": self._key.case.seed, "case_id": self._key.case.case_id, "params": dict(self._ground.params)}
        return {
            **self._ground.variables,
            "CASEWARDEN_CASE": json.dumps(case),
            "CASEWARDEN_EVIDENCE_SOCKET": str(scratch / "s" / "t"),
            "CASEWARDEN_ENVIRONMENTS": str(scratch / "e"),
            "CASEWARDEN_TERMINATION_LOG": str(scratch / "message"),
        }

    async def _spawn(self, argv: list[str], env: dict[str, str], log: int | None) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *argv,
            env={**os.environ, **env},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log if log is not None else asyncio.subprocess.DEVNULL,
            stderr=log,
            # An interrupt from the terminal is for the run, which stops its attempts in order.
            start_new_session=True,
        )

    async def _until_over(self, driver: asyncio.subprocess.Process) -> None:
        ended, stopped = asyncio.ensure_future(driver.wait()), asyncio.ensure_future(self._stopped.wait())
        backstop = float(self._ground.limits["case_seconds"]) + _HOLD_SECONDS + _BACKSTOP_SECONDS
        try:
            await asyncio.wait({ended, stopped}, timeout=backstop, return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                driver.terminate()
                await asyncio.wait({ended}, timeout=_GRACE_SECONDS)
        finally:
            ended.cancel()
            stopped.cancel()


def _ended(code: int | None, scratch: Path) -> Ended:
    message = b""
    with contextlib.suppress(FileNotFoundError):
        message = (scratch / "message").read_bytes()[: 2 * MESSAGE_BYTES]
    log = (scratch / "driver.log").read_bytes()[-_LOG_BYTES:]
    # A driver that had to be killed has no code yet; its pod would say 137.
    exit_code = 128 + signal.SIGKILL if code is None else code if code >= 0 else 128 - code
    return Ended(exit_code, message.decode("utf-8", "replace"), log.decode("utf-8", "replace"))


async def _reap(process: asyncio.subprocess.Process) -> None:
    """Wait for a process that is about to end by itself, and kill it where it does not."""
    if process.returncode is None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_SECONDS):
                await process.wait()
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _python() -> str:
    """Return the interpreter without this project's packages, which a candidate has no business with."""
    return getattr(sys, "_base_executable", None) or sys.executable


def _short_temporary() -> str:
    folder = tempfile.gettempdir()
    return folder if len(folder) <= _LONGEST_TEMPORARY else "/tmp"  # noqa: S108 - mkdtemp makes a private folder in it
