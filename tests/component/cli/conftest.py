from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer
from support.cluster_api import READER_TOKEN, ClusterApi
from support.relay import OPERATOR

from casewarden.adapters.stores.memory import MemoryStore
from casewarden.cli.app import run
from casewarden.relay.app import make_app
from casewarden.relay.auth import Identity, StaticReviewer


@dataclass
class Ran:
    """A command's exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class Cli:
    """The command, with a cluster and a relay at hand. ``store`` is the relay's."""

    api: ClusterApi
    store: MemoryStore
    kubeconfig: Path
    folder: Path
    capsys: pytest.CaptureFixture[str]

    async def __call__(self, *arguments: str) -> Ran:
        """Run a command in a thread: it makes an event loop of its own."""
        self.capsys.readouterr()
        code = await asyncio.to_thread(run, "casewarden", list(arguments))
        captured = self.capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    async def on_cluster(self, *arguments: str) -> Ran:
        return await self(*arguments, "--kubeconfig", str(self.kubeconfig))

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return str(self.folder / name)


@pytest.fixture
async def cli(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Cli]:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    store, reviewer = MemoryStore(), StaticReviewer()
    reviewer.tokens[READER_TOKEN] = Identity("system:serviceaccount:evals:casewarden-reader")
    async with TestServer(make_app(store, reviewer, operator_user=OPERATOR)) as relay:
        api = ClusterApi(relay.port or 0)
        await api.start()
        yield Cli(api, store, api.kubeconfig(tmp_path / "kubeconfig"), tmp_path, capsys)
        await api.stop()
