from __future__ import annotations

import pytest
from support.relay import MakeAttempt, Relay

from casewarden.core.evidence import json_file, meta_document

META = json_file(meta_document(namespace="evals", name="my-run", run_uid="run-1"))
FILES = "/v1/runs/run-1/files"


async def test_the_operator_writes_a_runs_files_and_its_readers_read_them(relay: Relay) -> None:
    files = {"meta.json": META, "plan.json": b"{}\n", "results.jsonl": b"{}\n{}\n", "run.json": b'{"v": 1}\n'}
    for name, data in files.items():
        assert (await relay.call("PUT", f"{FILES}/{name}", data=data)).status == 201

    for name, data in files.items():
        for token in ("operator", "reader"):
            answer = await relay.call("GET", f"{FILES}/{name}", token)
            assert (answer.status, await answer.read()) == (200, data)
        assert await relay.said("GET", f"{FILES}/{name}", "other-reader") == (403, "NotYours")


async def test_results_may_be_replaced_and_a_plan_never(relay: Relay) -> None:
    for name, again in (("plan.json", (409, "exists")), ("results.jsonl", (201, None)), ("run.json", (201, None))):
        assert await relay.said("PUT", f"{FILES}/{name}", data=b"one") == (201, None)
        assert await relay.said("PUT", f"{FILES}/{name}", data=b"two") == again
    assert await relay.said("PUT", f"{FILES}/plan.json", data=b"one") == (200, None)


async def test_nobody_but_the_operator_writes(relay: Relay, attempt: MakeAttempt, known_run: None) -> None:
    pod = attempt()
    for token in ("reader", "other-reader", pod.token):
        for name in ("meta.json", "plan.json", "results.jsonl", "run.json"):
            assert await relay.said("PUT", f"{FILES}/{name}", token, data=META) == (403, "NotYours")


@pytest.mark.parametrize(
    "meta",
    [
        b"",
        b"[]",
        b"{}",
        json_file(meta_document(namespace="evals", name="r", run_uid="run-2")),
        json_file(meta_document(namespace="../evals", name="r", run_uid="run-1")),
        json_file({"namespace": 1, "name": "r", "uid": "run-1"}),
    ],
)
async def test_a_meta_file_that_says_nothing_of_this_run_is_refused(relay: Relay, meta: bytes) -> None:
    assert (await relay.call("PUT", f"{FILES}/meta.json", data=meta)).status == 400
    assert relay.store.values == {}


@pytest.mark.parametrize("name", ["other.json", "gone.json", "..%2frun-2%2fmeta.json", "17"])
async def test_a_run_has_no_other_files(relay: Relay, name: str) -> None:
    assert (await relay.call("PUT", f"{FILES}/{name}", data=b"x")).status == 404
    assert (await relay.call("GET", f"{FILES}/{name}")).status == 404
    assert relay.store.values == {}


async def test_runs_are_listed_for_their_namespace(relay: Relay) -> None:
    for uid, namespace in (("run-1", "evals"), ("run-2", "evals"), ("run-3", "other")):
        meta = json_file(meta_document(namespace=namespace, name=f"name-{uid}", run_uid=uid))
        await relay.call("PUT", f"/v1/runs/{uid}/files/meta.json", data=meta)

    async def listed(path: str, token: str) -> list[str]:
        return [run["uid"] for run in await (await relay.call("GET", path, token)).json()]

    assert await listed("/v1/runs", "operator") == ["run-1", "run-2", "run-3"]
    assert await listed("/v1/runs?namespace=other", "operator") == ["run-3"]
    assert await listed("/v1/runs", "reader") == ["run-1", "run-2"]
    assert await listed("/v1/runs?namespace=evals", "reader") == ["run-1", "run-2"]
    assert await relay.said("GET", "/v1/runs?namespace=other", "reader") == (403, "NotYours")
    assert await relay.said("GET", "/v1/runs?namespace=..%2f", "operator") == (400, "BadPath")


async def test_without_a_good_token_there_is_nothing_but_health_and_metrics(relay: Relay) -> None:
    for path in ("/v1/runs", f"{FILES}/run.json", "/v1/runs/run-1/index", "/v1/workspaces/evals/" + "0" * 64):
        assert await relay.said("GET", path, None) == (401, "NoToken")
        assert await relay.said("GET", path, "unknown-token") == (401, "BadToken")
        assert (await relay.call("GET", path, None, headers={"Authorization": "Basic abc"})).status == 401

    assert await (await relay.call("GET", "/healthz", None)).text() == "ok\n"
    assert (await relay.call("GET", "/metrics", None)).status == 200


async def test_metrics_count_calls_by_name_and_never_by_run(relay: Relay, attempt: MakeAttempt) -> None:
    pod = attempt()
    await pod.claim()
    await pod.upload()
    await pod.seal()
    await relay.call("GET", "/v1/whatever/run-1")

    text = await (await relay.call("GET", "/metrics", None)).text()

    assert 'casewarden_relay_requests_total{call="claim",code="200"} 1.0' in text
    assert 'casewarden_relay_requests_total{call="unknown",code="404"} 1.0' in text
    assert 'casewarden_relay_seals_total{outcome="first"} 1.0' in text
    assert "run-1" not in text
    assert "pod-" not in text


async def test_a_wrong_method_is_refused_in_json_too(relay: Relay) -> None:
    assert await relay.said("DELETE", f"{FILES}/run.json") == (405, "BadMethod")


async def test_a_broken_file_of_the_store_is_an_error_of_the_relay_and_not_of_the_caller(relay: Relay) -> None:
    relay.store.values["runs/run-1/meta.json"] = b"[]"
    assert await relay.said("GET", "/v1/runs/run-1/index", "reader") == (500, "Internal")
