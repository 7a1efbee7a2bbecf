from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer
from support.relay import OPERATOR, SMALL, Attempt, MakeAttempt, Relay

from casewarden.adapters.stores.memory import MemoryStore
from casewarden.core.evidence import json_file, meta_document
from casewarden.core.model import AttemptKey, CaseKey
from casewarden.relay.app import make_app
from casewarden.relay.auth import Identity, StaticReviewer
from casewarden.relay.metrics import RelayMetrics


@pytest.fixture
async def relay() -> AsyncIterator[Relay]:
    store, metrics, reviewer = MemoryStore(), RelayMetrics(), StaticReviewer()
    reviewer.tokens["operator"] = Identity(OPERATOR, "operator-0", "operator-uid")
    reviewer.tokens["reader"] = Identity("system:serviceaccount:evals:casewarden-reader")
    reviewer.tokens["other-reader"] = Identity("system:serviceaccount:other:casewarden-reader")
    app = make_app(store, reviewer, operator_user=OPERATOR, limits=SMALL, metrics=metrics)
    async with TestServer(app) as server, ClientSession() as session:
        yield Relay(server, session, store, metrics, reviewer)


@pytest.fixture
def attempt(relay: Relay) -> MakeAttempt:
    """Make the pod of an attempt of run ``run-1`` in namespace ``evals``."""

    def make(
        number: int = 1,
        case_id: str = "a",
        pod_uid: str | None = None,
        run_uid: str = "run-1",
        namespace: str = "evals",
    ) -> Attempt:
        key = AttemptKey(CaseKey(17, case_id, 0), number)
        uid = pod_uid or f"pod-{case_id}-{number}"
        token = f"token-{uid}"
        relay.reviewer.admit_pod(token, namespace, "my-run", run_uid, key, uid)
        return Attempt(relay, token, key, run_uid, uid)

    return make


@pytest.fixture
async def known_run(relay: Relay) -> None:
    """Let the operator make ``run-1`` of namespace ``evals`` known."""
    meta = meta_document(namespace="evals", name="my-run", run_uid="run-1")
    assert (await relay.call("PUT", "/v1/runs/run-1/files/meta.json", data=json_file(meta))).status == 201
