"""Model calls through the relay, against a real server of a scripted model."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession
from aiohttp.test_utils import TestServer
from support.fake_models import FakeModels
from support.relay import OPERATOR, SMALL, Attempt, MakeAttempt, Relay
from support.tokenizers import a_tokenizer

from casewarden.adapters.stores.memory import MemoryStore
from casewarden.api.endpoint import Endpoint
from casewarden.core.evidence import json_file, meta_document
from casewarden.ports.store import NotFound
from casewarden.relay.app import make_app
from casewarden.relay.auth import Identity, StaticReviewer
from casewarden.relay.metrics import RelayMetrics
from casewarden.relay.models import calls

KEY = "sk-secret-of-the-team"


@pytest.fixture
def models() -> Iterator[FakeModels]:
    with FakeModels(key=KEY) as server:
        yield server


@pytest.fixture
async def relay(models: FakeModels, tmp_path: Path) -> AsyncIterator[Relay]:
    secret = {"name": "team", "key": "key"}
    base: dict[str, Any] = {"url": models.url, "secret": secret, "retrySeconds": 2, "idleSeconds": 1}
    endpoints = {
        "team": Endpoint.model_validate({**base, "price": {"prompt": "1000", "completion": "2000"}}),
        "elsewhere": Endpoint.model_validate({**base, "namespaces": ["other"]}),
        "narrow": Endpoint.model_validate({**base, "concurrency": 2}),
        "wrong": Endpoint.model_validate(base),
        "keyless": Endpoint.model_validate(base),
        "claude": Endpoint.model_validate({**base, "dialect": "anthropic"}),
        "counting": Endpoint.model_validate({**base, "tokenizer": a_tokenizer(tmp_path / "tokenizer.json")}),
        "miscounting": Endpoint.model_validate({**base, "tokenizer": "/no/such/tokenizer.json"}),
    }
    for name in endpoints:
        if name != "keyless":
            (tmp_path / name).mkdir()
            (tmp_path / name / "key").write_text("sk-of-somebody" if name == "wrong" else KEY + "\n")
    store, metrics, reviewer = MemoryStore(), RelayMetrics(), StaticReviewer()
    reviewer.tokens["operator"] = Identity(OPERATOR, "operator-0", "operator-uid")
    app = make_app(
        store, reviewer, operator_user=OPERATOR, limits=SMALL, metrics=metrics, endpoints=endpoints, keys=tmp_path
    )
    async with TestServer(app) as server, ClientSession() as session:
        yield Relay(server, session, store, metrics, reviewer)


@pytest.fixture
async def pod(relay: Relay, attempt: MakeAttempt) -> Attempt:
    meta = meta_document(namespace="evals", name="my-run", run_uid="run-1")
    await relay.call("PUT", "/v1/runs/run-1/files/meta.json", data=json_file(meta))
    made = attempt()
    assert await made.claim() == (200, None)
    return made


async def ask(
    pod: Attempt,
    model: str,
    endpoint: str = "team",
    path: str = "chat/completions",
    *,
    headers: Any = None,
    **body: Any,
) -> ClientResponse:
    document = {"model": model, "messages": [{"role": "user", "content": "hello there"}], **body}
    return await pod.relay.call(
        "POST", f"{pod.path}/models/{endpoint}/{path}", pod.token, data=json.dumps(document), headers=headers or {}
    )


async def said(pod: Attempt, *rest: Any, **body: Any) -> tuple[int, str, str]:
    response = await ask(pod, *rest, **body)
    document = await response.json()
    return response.status, document["reason"], document["error"]


async def usage(pod: Attempt) -> Any:
    return await (await pod.relay.call("GET", "/v1/runs/run-1/files/usage.json")).json()


async def test_a_call_is_answered_with_the_key_that_only_the_relay_has(pod: Attempt, models: FakeModels) -> None:
    response = await ask(pod, "echo")
    assert (await response.json())["choices"][0]["message"]["content"] == "echo: hello there"
    assert response.headers["Casewarden-Usage"] == "11 7 reported"
    assert models.stats.keys == [KEY]
    assert await usage(pod) == {
        "v": 1, "prompt_tokens": 11, "completion_tokens": 7, "model_calls": 1, "source": "reported", "cost": "0.025",
    }  # fmt: skip


async def test_a_stream_comes_event_by_event_without_the_count_that_nobody_asked_for(pod: Attempt) -> None:
    text = await (await ask(pod, "echo", stream=True)).text()
    events = [line for line in text.splitlines() if line]
    assert events[-2:] == ["data: [DONE]", ": casewarden 11 7 reported"]
    assert not any('"usage"' in event for event in events)
    asked = await (await ask(pod, "echo", stream=True, stream_options={"include_usage": True})).text()
    assert '"usage"' in asked


async def test_a_stream_that_breaks_off_is_cut_and_not_ended(pod: Attempt) -> None:
    with pytest.raises(Exception, match=r"payload|closed|disconnected"):
        await ask(pod, "cut", stream=True)


async def test_busy_and_failing_servers_are_asked_again(pod: Attempt, models: FakeModels) -> None:
    assert (await ask(pod, "busy1")).status == 200
    assert (await ask(pod, "failing1")).status == 200
    assert models.stats.calls == 4
    assert (await usage(pod))["model_calls"] == 2


async def test_retry_after_keeps_every_call_of_the_endpoint_back(pod: Attempt, models: FakeModels) -> None:
    busy = asyncio.create_task(ask(pod, "busy1"))
    while models.stats.calls < 1:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    await asyncio.gather(busy, ask(pod, "echo"))
    assert models.stats.times[1] - models.stats.times[0] >= 0.2


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("failing99", "500"),
        ("bad-json", "no JSON"),
        ("redirect", "redirects (307)"),
        ("bomb", "is over 8388608 bytes"),
        ("stall", "imeout"),
    ],
)
async def test_a_server_that_cannot_be_used_is_the_environments(pod: Attempt, model: str, why: str) -> None:
    status, reason, error = await said(pod, model)
    assert (status, reason) == (502, "ModelUnavailable")
    assert why in error


async def test_a_wrong_key_is_said_so_and_shown_to_nobody(pod: Attempt) -> None:
    _, reason, error = await said(pod, "echo", "wrong")
    assert reason == "ModelUnavailable"
    assert error == "endpoint wrong: it refuses the relay's key (401)"
    assert (await said(pod, "echo", "keyless"))[2].startswith("endpoint keyless: its key cannot be read")


@pytest.mark.parametrize(
    ("model", "status", "reason"), [("context", 400, "ContextLimit"), ("unknown", 404, "BadRequest")]
)
async def test_refusals_of_the_model_pass_with_their_reason(pod: Attempt, model: str, status: int, reason: str) -> None:
    response = await ask(pod, model)
    assert (response.status, response.headers["Casewarden-Reason"]) == (status, reason)
    assert (await pod.relay.call("GET", "/v1/runs/run-1/files/usage.json")).status == 404


async def test_endpoints_are_for_the_namespaces_that_the_administrator_names(pod: Attempt) -> None:
    assert (await said(pod, "echo", "elsewhere"))[:2] == (403, "EndpointNotAllowed")
    assert (await said(pod, "echo", "nowhere"))[:2] == (404, "UnknownEndpoint")
    assert (await said(pod, "echo", "team", "models/delete"))[:2] == (404, "BadRequest")


async def test_only_the_pod_that_claimed_the_attempt_may_call(pod: Attempt, attempt: MakeAttempt) -> None:
    assert (await said(attempt(case_id="b"), "echo"))[:2] == (409, "claimed")
    stranger = attempt(case_id="c")
    stranger.key = pod.key
    assert (await said(stranger, "echo"))[:2] == (403, "NotYours")


async def test_no_more_calls_are_under_way_than_the_endpoint_allows(pod: Attempt, models: FakeModels) -> None:
    began = time.monotonic()
    calls = [asyncio.create_task(ask(pod, "slow", "narrow")) for _ in range(8)]
    await asyncio.sleep(0.1)
    # Those that nobody waits for any more hold their slot until the server is done with them.
    for call in calls[:2]:
        call.cancel()
    assert all(answer.status == 200 for answer in await asyncio.gather(*calls[2:]))
    assert models.stats.most == 2
    assert time.monotonic() - began < 2.5


async def test_false_and_missing_counts_are_estimated_and_never_zero(pod: Attempt) -> None:
    assert (await ask(pod, "false-usage")).headers["Casewarden-Usage"] == "3 5 estimated"
    assert (await ask(pod, "no-usage")).headers["Casewarden-Usage"] == "3 5 estimated"
    assert (await usage(pod))["source"] == "estimated"


@pytest.mark.parametrize(
    ("budget", "why"),
    [({"tokens": 0}, "0 tokens"), ({"calls": 1}, "1 model calls"), ({"cost": "0.03"}, "0.03 of money")],
)
async def test_a_run_stops_at_its_budget(pod: Attempt, models: FakeModels, budget: Any, why: str) -> None:
    header = {"Casewarden-Budget": json.dumps(budget)}
    if budget != {"tokens": 0}:
        assert (await ask(pod, "echo", headers=header, max_tokens=1)).status == 200
    response = await ask(pod, "echo", headers=header, max_tokens=3)
    document = await response.json()
    assert (response.status, document["reason"]) == (403, "BudgetSpent")
    assert why in document["error"]
    assert models.stats.calls == (0 if budget == {"tokens": 0} else 1)


async def test_calls_under_way_count_against_the_budget(pod: Attempt, models: FakeModels) -> None:
    header = {"Casewarden-Budget": '{"calls": 3}'}
    answers = await asyncio.gather(*(ask(pod, "slow", headers=header) for _ in range(6)))
    assert sorted(answer.status for answer in answers) == [200] * 3 + [403] * 3
    assert models.stats.calls == 3


async def test_usage_is_kept_with_the_evidence(pod: Attempt) -> None:
    await ask(pod, "echo")
    await asyncio.sleep(1.2)
    kept = json.loads(await pod.relay.store.get("runs/run-1/usage.json", limit=1000))
    assert kept["model_calls"] == 1


async def test_tokens_that_an_endpoint_does_not_report_are_counted_by_the_models_own_tokenizer(pod: Attempt) -> None:
    response = await ask(pod, "no-usage", "counting")
    assert response.headers["Casewarden-Usage"] == "2 3 counted"
    assert (await usage(pod))["source"] == "counted"
    assert (await ask(pod, "echo", "counting")).headers["Casewarden-Usage"] == "11 7 reported"
    assert (await usage(pod))["source"] == "reported"


async def test_an_endpoint_whose_tokenizer_cannot_be_read_is_not_used(pod: Attempt, models: FakeModels) -> None:
    status, reason, error = await said(pod, "echo", "miscounting")
    assert (status, reason) == (502, "ModelUnavailable")
    assert "tokenizer: /no/such/tokenizer.json: No such file" in error
    assert models.stats.calls == 0


async def test_a_store_that_hangs_keeps_no_answer_back(pod: Attempt, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(key: str, *_: object, **__: object) -> None:
        assert key.endswith("usage.json")
        await asyncio.Event().wait()

    monkeypatch.setattr(calls, "_KEEP_SECONDS", 0.1)
    with monkeypatch.context() as patched:
        patched.setattr(pod.relay.store, "put", hang)
        async with asyncio.timeout(20):
            assert (await ask(pod, "echo")).status == 200
    # What was not kept then is kept as soon as the store takes it.
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(NotFound):
                kept = json.loads(await pod.relay.store.get("runs/run-1/usage.json", limit=1000))
                break
            await asyncio.sleep(0.05)
    assert kept["model_calls"] == 1


async def test_anthropics_dialect_is_spoken_too(pod: Attempt) -> None:
    response = await ask(pod, "echo", "claude", "messages", max_tokens=10)
    assert (await response.json())["content"][0]["text"] == "echo: hello there"
    assert response.headers["Casewarden-Usage"] == "11 7 reported"
    text = await (await ask(pod, "echo", "claude", "messages", max_tokens=10, stream=True)).text()
    assert text.splitlines()[-2] == ": casewarden 11 7 reported"


async def test_cost_and_the_use_of_budgets_can_be_watched(pod: Attempt) -> None:
    header = {"Casewarden-Budget": json.dumps({"calls": 4})}
    for _ in range(2):
        assert (await ask(pod, "echo", headers=header, max_tokens=1)).status == 200
    registry = pod.relay.metrics.registry
    assert registry.get_sample_value("casewarden_relay_model_budget_used_ratio", {"endpoint": "team"}) == 0.5
    assert registry.get_sample_value("casewarden_relay_model_budget_used_ratio", {"endpoint": "narrow"}) == 0
    cost = registry.get_sample_value("casewarden_relay_model_cost_total", {"endpoint": "team"})
    assert cost == pytest.approx(float((await usage(pod))["cost"]))
    assert registry.get_sample_value("casewarden_relay_model_cost_total", {"endpoint": "narrow"}) is None
