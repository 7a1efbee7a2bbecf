"""One suite for what the operator asks of the relay: the fake that ships, and the client over a real relay."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp.test_utils import TestServer
from support.relay import OPERATOR

from casewarden.adapters.relay_client import RelayClient
from casewarden.adapters.stores.memory import MemoryStore
from casewarden.core.evidence import META, PLAN, RUN, json_file, meta_document
from casewarden.ports.evidence import Evidence, EvidenceRefused, MemoryEvidence
from casewarden.relay.app import make_app
from casewarden.relay.auth import Identity, StaticReviewer

UID = "9b2f6f0e-6f0a-4d6e-9df3-0c5a2f6a1b2c"


class _Token:
    async def header(self, *, fresh: bool = False) -> str:
        return "Bearer operator"


@pytest.fixture(params=["memory", "relay"])
async def evidence(request: pytest.FixtureRequest) -> AsyncIterator[Evidence]:
    """Each of the two, with nothing in it."""
    if request.param == "memory":
        yield MemoryEvidence()
        return
    reviewer = StaticReviewer()
    reviewer.tokens["operator"] = Identity(OPERATOR, "operator-0", "operator-uid")
    app = make_app(MemoryStore(), reviewer, operator_user=OPERATOR)
    async with TestServer(app) as server, RelayClient(str(server.make_url("/")), _Token()) as client:
        await client.put_file(UID, META, meta())
        yield client


def meta() -> bytes:
    return json_file(meta_document(namespace="evals", name="one", run_uid=UID))


async def test_what_is_not_there_is_none(evidence: Evidence) -> None:
    assert await evidence.sealed(UID, 17, "case", 0) is None
    assert await evidence.get_file(UID, RUN) is None
    assert await evidence.index(UID) == []
    assert not await evidence.has_workspace("evals", "a" * 64)
    assert await evidence.workspace("evals", "a" * 64) is None


async def test_a_runs_files_can_be_written_again_but_for_those_that_fix_what_it_is(evidence: Evidence) -> None:
    await evidence.put_file(UID, META, meta())
    await evidence.put_file(UID, RUN, b"{}\n")
    await evidence.put_file(UID, RUN, b"{} \n")
    assert await evidence.get_file(UID, RUN) == b"{} \n"
    await evidence.put_file(UID, PLAN, b"one")
    await evidence.put_file(UID, PLAN, b"one")
    with pytest.raises(EvidenceRefused, match="other content"):
        await evidence.put_file(UID, PLAN, b"two")
    assert await evidence.get_file(UID, PLAN) == b"one"
