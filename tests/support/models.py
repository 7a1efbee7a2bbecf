"""A relay with endpoints before a scripted model, and the token of one attempt's pod, for tests of the case pod."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import ClientSession
from aiohttp.test_utils import TestServer
from support.fake_models import FakeModels
from support.ports import free_port
from support.relay import OPERATOR

from casewarden.adapters.stores.memory import MemoryStore
from casewarden.api.endpoint import Endpoint
from casewarden.core.evidence import json_file, meta_document
from casewarden.core.model import AttemptKey, CaseKey
from casewarden.relay.app import make_app
from casewarden.relay.auth import Identity, StaticReviewer

__all__ = ["ModelBench", "model_bench"]


@dataclass
class ModelBench:
    """``attempt`` are the fields of ``CASEWARDEN_ATTEMPT`` by which a recorder finds the model."""

    models: FakeModels
    url: str
    port: int

    def attempt(self, name: str, **model: Any) -> dict[str, Any]:
        asked = {
            "endpoint": "team", "name": name, "dialect": "openai", "parameters": {}, "tokens": None, "budget": {},
            "priority": 0, "port": self.port,
        }  # fmt: skip
        return {"relay_url": self.url, "model": {**asked, **model}}


@contextlib.asynccontextmanager
async def model_bench(scratch: Path, case_id: str) -> AsyncIterator[ModelBench]:
    """Serve; the pod of attempt 1 of the case has claimed it, and its token lies in ``scratch``."""
    reviewer = StaticReviewer(tokens={"operator": Identity(OPERATOR)})
    reviewer.admit_pod("pod-token", "evals", "my-run", "run-1", AttemptKey(CaseKey(17, case_id, 0), 1), "pod-1")
    (scratch / "token").write_text("pod-token")
    for name in ("team", "claude"):
        (scratch / "keys" / name).mkdir(parents=True)
        (scratch / "keys" / name / "key").write_text("sk-1")
    with FakeModels(key="sk-1") as models:
        secret = {"url": models.url, "secret": {"name": "team"}, "retrySeconds": 1}
        endpoints = {
            "team": Endpoint.model_validate(secret),
            "claude": Endpoint.model_validate({**secret, "dialect": "anthropic"}),
        }
        app = make_app(MemoryStore(), reviewer, operator_user=OPERATOR, endpoints=endpoints, keys=scratch / "keys")
        async with TestServer(app) as server, ClientSession() as http:
            url = str(server.make_url("")).rstrip("/")
            meta = json_file(meta_document(namespace="evals", name="my-run", run_uid="run-1"))
            await http.put(
                f"{url}/v1/runs/run-1/files/meta.json", data=meta, headers={"Authorization": "Bearer operator"}
            )
            claim = f"{url}/v1/runs/run-1/cases/17/{case_id}/0/1/claim"
            assert (await http.post(claim, headers={"Authorization": "Bearer pod-token"})).status == 200
            yield ModelBench(models, url, free_port())
