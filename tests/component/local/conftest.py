"""What the tests of local runs share: an EvalRun of a small pack, run in a folder of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from casewarden.api.endpoint import Endpoint
from casewarden.api.evalrun import EvalRun
from casewarden.local.run import LocalResult, Options, run_evalrun
from casewarden_sdk.workspace import WorkspaceFile, workspace_of

TESTS = Path(__file__).resolve().parents[2]
Runner = Callable[..., Awaitable[LocalResult]]


def eval_run(**spec: Any) -> EvalRun:
    """An EvalRun of the echo pack with seed 17, changed by ``spec``."""
    whole = {"task": {"name": "echo"}, "seeds": {"values": [17]}, "candidate": {"control": "reference"}, **spec}
    return EvalRun.model_validate(
        {"apiVersion": "casewarden.dev/v1alpha1", "kind": "EvalRun", "metadata": {"name": "a-run"}, "spec": whole}
    )


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Run an EvalRun: ``spec`` as keywords, ``pack``, and the candidate's ``files`` where it is a program."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS))

    async def run_it(
        *,
        pack: str = "support.packs:PACK",
        files: dict[str, str] | Sequence[WorkspaceFile] | None = None,
        seen: list[Any] | None = None,
        endpoints: dict[str, str] | None = None,
        keys: dict[str, str] | None = None,
        **spec: Any,
    ) -> LocalResult:
        if isinstance(files, dict):
            files = workspace_of((name, text.encode()) for name, text in files.items())
            spec.setdefault("candidate", {"program": {"workspace": {"configMap": "agent"}}})
        made = {name: Endpoint(url=url, retry_seconds=1) for name, url in (endpoints or {}).items()}
        options = Options(tmp_path / "store", pack, files, made, keys or {}, None if seen is None else seen.append)
        return await run_evalrun(eval_run(**spec), options)

    return run_it
