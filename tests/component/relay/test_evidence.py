from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import ClientError
from support.relay import MakeAttempt, Relay
from yarl import URL

from casewarden.core.evidence import json_file
from casewarden.ports.store import StoreUnavailable


async def test_a_pod_claims_uploads_seals_and_the_operator_reads_it_back(relay: Relay, attempt: MakeAttempt) -> None:
    pod = attempt()

    assert await pod.claim() == (200, None)
    uploaded = await relay.call("PUT", f"{pod.path}/bundle?partial=0", pod.token, data=pod.bundle)
    assert uploaded.status == 201
    assert (await uploaded.json()) == {"digest": hashlib.sha256(pod.bundle).hexdigest()}
    assert await pod.seal() == (201, None)

    sealed = await relay.call("GET", f"{pod.case_path}/sealed")
    assert (sealed.status, await sealed.json()) == (200, pod.sealed())
    bundle = await relay.call("GET", f"{pod.path}/bundle")
    assert (bundle.status, await bundle.read()) == (200, pod.bundle)
    assert set(relay.store.values) == {
        "runs/run-1/17/a/0/1.claim.json",
        "runs/run-1/17/a/0/1.tar.zst",
        "runs/run-1/17/a/0/sealed.json",
    }


async def test_every_call_may_be_repeated_by_the_same_pod(attempt: MakeAttempt) -> None:
    pod = attempt()

    assert [(await pod.claim())[0] for _ in range(3)] == [200, 200, 200]
    assert [(await pod.upload())[0] for _ in range(3)] == [201, 200, 200]
    assert [(await pod.seal())[0] for _ in range(3)] == [201, 200, 200]


async def test_of_two_pods_of_one_attempt_only_the_first_gets_the_claim_and_the_other_can_do_nothing(
    attempt: MakeAttempt,
) -> None:
    first, second = attempt(pod_uid="pod-a"), None
    assert await first.claim() == (200, None)
    second = attempt(pod_uid="pod-b")

    assert await second.claim() == (409, "claimed")
    assert await second.upload(b"other") == (409, "claimed")
    assert await second.seal() == (409, "claimed")
    assert await first.claim() == (200, None)


async def test_nobody_uploads_or_seals_without_a_claim(attempt: MakeAttempt) -> None:
    assert await attempt().upload() == (409, "claimed")
    assert await attempt().seal() == (409, "claimed")


async def test_who_claims_after_the_seal_is_told_so(attempt: MakeAttempt) -> None:
    first, late = attempt(1), attempt(2)
    await first.claim()
    await first.upload()
    await first.seal()

    assert await late.claim() == (409, "sealed")


async def test_a_late_loser_is_given_the_verdict_that_counts(relay: Relay, attempt: MakeAttempt) -> None:
    first, late = attempt(1), attempt(2)
    for pod in (first, late):
        assert await pod.claim() == (200, None)
        assert await pod.upload() == (201, None)
    assert await first.seal(status="failed", checks="0") == (201, None)

    refused = await relay.call("PUT", f"{late.case_path}/sealed", late.token, data=json_file(late.sealed()))

    assert refused.status == 409
    body = await refused.json()
    assert (body["reason"], body["sealed"]["attempt"], body["sealed"]["status"]) == ("sealed", 1, "failed")


async def test_of_many_concurrent_seals_of_a_case_exactly_one_is_first(attempt: MakeAttempt) -> None:
    pods = [attempt(number) for number in range(1, 31)]
    for pod in pods:
        await pod.claim()
        await pod.upload()

    statuses = [status for status, _ in await asyncio.gather(*(pod.seal() for pod in pods))]

    assert sorted(statuses) == [201] + [409] * 29


async def test_of_many_concurrent_claims_of_an_attempt_exactly_one_wins(relay: Relay, attempt: MakeAttempt) -> None:
    pods = [attempt(pod_uid=f"pod-{number}") for number in range(20)]
    for pod in pods:  # the relay remembers each pod from the time at which it was the live one
        relay.reviewer.admit_pod(pod.token, "evals", "my-run", "run-1", pod.key, pod.pod_uid)
        await pod.upload()

    statuses = [status for status, _ in await asyncio.gather(*(pod.claim() for pod in pods))]

    assert sorted(statuses) == [200] + [409] * 19


async def test_a_seal_without_its_bundle_is_refused(attempt: MakeAttempt) -> None:
    pod = attempt()
    await pod.claim()

    assert await pod.seal() == (409, "NoBundle")
    await pod.relay.said("PUT", f"{pod.path}/bundle?partial=1", pod.token, data=pod.bundle)
    assert await pod.seal() == (409, "NoBundle"), "a partial bundle is no evidence of a verdict"


async def test_a_seal_that_names_another_digest_than_what_arrived_is_refused(attempt: MakeAttempt) -> None:
    pod = attempt()
    await pod.claim()
    await pod.upload(b"something else")

    assert await pod.seal() == (409, "NoBundle")


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "environment_error", "checks": "-", "reason": "Evicted"},
        {"status": "passed", "checks": "0"},
        {"status": "failed", "checks": "1"},
        {"status": "failed", "checks": "0", "reason": "TimeLimit"},
        {"status": "agent_error", "checks": "0"},
        {"checks": ""},
        {"checks": "1x"},
        {"digest": "abc"},
        {"seed": 18},
        {"seed": "17"},
        {"case_id": "b"},
        {"repeat": 1},
        {"repeat": False},
        {"attempt": 0},
        {"attempt": True},
        {"run_uid": "run-2"},
        {"v": 2},
        {"seconds": -1},
        {"extra": 1},
        {"error": "x" * 9000},
    ],
)
async def test_a_malformed_seal_is_refused(attempt: MakeAttempt, changes: dict[str, Any]) -> None:
    pod = attempt()
    await pod.claim()
    await pod.upload()

    assert await pod.seal(**changes) == (400, "BadSeal")
    assert await pod.seal() == (201, None)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'"x"', b"\xff", b"[" * 60_000])
async def test_a_seal_that_is_no_json_object_is_refused(relay: Relay, attempt: MakeAttempt, body: bytes) -> None:
    pod = attempt()
    assert await relay.said("PUT", f"{pod.case_path}/sealed", pod.token, data=body) == (400, "BadJSON")


async def test_a_pod_cannot_seal_in_the_name_of_another_pod_or_attempt(attempt: MakeAttempt) -> None:
    pod = attempt(1)
    await pod.claim()
    await pod.upload()

    assert await pod.seal(pod_uid="somebody-else") == (403, "NotYours")
    assert await pod.seal(attempt=2) == (403, "NotYours")


@pytest.mark.parametrize("path", ["17/b/0/1", "18/a/0/1", "17/a/1/1", "17/a/0/2"])
async def test_a_pod_has_no_business_with_another_attempts_paths(relay: Relay, attempt: MakeAttempt, path: str) -> None:
    pod = attempt()

    for method, call in (("POST", "claim"), ("PUT", "bundle")):
        answer = await relay.said(method, f"/v1/runs/run-1/cases/{path}/{call}", pod.token, data=b"x")
        assert answer == (403, "NotYours")


async def test_a_pod_has_no_business_with_another_run(relay: Relay, attempt: MakeAttempt) -> None:
    pod = attempt()
    assert await relay.said("POST", "/v1/runs/run-2/cases/17/a/0/1/claim", pod.token) == (403, "NotYours")


async def test_a_pod_that_only_wears_the_labels_of_a_run_is_not_its_pod(relay: Relay, attempt: MakeAttempt) -> None:
    pod = attempt()
    ((where, facts),) = relay.reviewer.pods.items()
    relay.reviewer.pods[where] = replace(facts, owner_uid="run-2")

    assert await pod.claim() == (403, "NotYours")


async def test_a_pod_of_another_namespace_than_the_runs_is_refused(attempt: MakeAttempt, known_run: None) -> None:
    stranger = attempt(namespace="other")

    assert await stranger.claim() == (403, "NotYours")


async def test_a_token_that_is_bound_to_no_pod_may_claim_nothing(relay: Relay, known_run: None) -> None:
    for token in ("operator", "reader"):
        assert (await relay.said("POST", "/v1/runs/run-1/cases/17/a/0/1/claim", token))[0] == 403


async def test_the_token_of_a_pod_that_is_gone_or_was_replaced_is_refused(relay: Relay, attempt: MakeAttempt) -> None:
    gone = attempt(pod_uid="pod-a")
    relay.reviewer.pods.clear()
    assert await gone.claim() == (403, "PodGone")

    attempt(pod_uid="pod-b")
    assert await gone.claim() == (403, "PodGone")


async def test_case_pods_may_read_nothing(relay: Relay, attempt: MakeAttempt, known_run: None) -> None:
    pod = attempt()
    await pod.claim()
    await pod.upload()
    await pod.seal()

    for path in (
        f"{pod.case_path}/sealed",
        f"{pod.path}/bundle",
        "/v1/runs/run-1/index",
        "/v1/runs/run-1/files/meta.json",
    ):
        assert await relay.said("GET", path, pod.token) == (403, "NotYours")


async def test_readers_read_runs_of_their_namespace_only(relay: Relay, attempt: MakeAttempt, known_run: None) -> None:
    pod = attempt()
    await pod.claim()
    await pod.upload()
    await pod.seal()

    for path in (
        f"{pod.case_path}/sealed",
        f"{pod.path}/bundle",
        "/v1/runs/run-1/index",
        "/v1/runs/run-1/files/meta.json",
    ):
        assert (await relay.call("GET", path, "reader")).status == 200
        assert await relay.said("GET", path, "other-reader") == (403, "NotYours")
    assert await relay.said("GET", "/v1/runs/run-9/index", "reader") == (404, "NotFound")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/runs/run-1/cases/17/..%2f..%2fx/0/1/claim", 400),
        ("/v1/runs/run-1/cases/17/%2e%2e/0/1/claim", 400),
        ("/v1/runs/%2e%2e%2frun-1/cases/17/a/0/1/claim", 400),
        ("/v1/runs/run-1/cases/017/a/0/1/claim", 400),
        ("/v1/runs/run-1/cases/17/a/-1/1/claim", 400),
        ("/v1/runs/run-1/cases/17/a/0/0/claim", 400),
        ("/v1/runs/run-1/cases/17/.hidden/0/1/claim", 400),
        ("/v1/runs/run-1/cases/17/a/0/99999999999999999999/claim", 400),
        ("/v1/runs/run-1/cases/17/a%00b/0/1/claim", 400),
        ("/v1/nothing", 404),
    ],
)
async def test_paths_that_are_no_attempt_are_refused_before_anything_else(
    relay: Relay, attempt: MakeAttempt, path: str, status: int
) -> None:

    pod = attempt()
    url = URL(f"{relay.server.make_url('/')}{path[1:]}", encoded=True)
    async with relay.session.post(url, headers={"Authorization": f"Bearer {pod.token}"}) as response:
        assert response.status == status
        assert {"error", "reason"} <= (await response.json()).keys()
    assert relay.store.values == {}


async def test_a_bundle_over_its_size_is_refused_whether_or_not_it_says_so(relay: Relay, attempt: MakeAttempt) -> None:
    pod = attempt()
    await pod.claim()
    big = b"x" * ((1 << 20) + 1)

    async def unannounced() -> Any:
        for start in range(0, len(big), 1 << 16):
            yield big[start : start + (1 << 16)]

    assert await pod.upload(big) == (413, "TooLarge")
    assert await pod.upload(unannounced()) == (413, "TooLarge")
    assert list(relay.store.values) == ["runs/run-1/17/a/0/1.claim.json"]


async def test_a_truncated_upload_leaves_nothing_and_can_be_made_again(relay: Relay, attempt: MakeAttempt) -> None:
    pod = attempt()
    await pod.claim()
    host, port = relay.server.host, relay.server.port
    _, writer = await asyncio.open_connection(host, port)
    head = [f"PUT {pod.path}/bundle HTTP/1.1", "Host: x", f"Authorization: Bearer {pod.token}", "Content-Length: 1000"]
    writer.write("\r\n".join([*head, "", "x" * 400]).encode())
    await writer.drain()
    writer.close()
    await asyncio.sleep(0.1)

    assert not any(key.endswith(".tar.zst") for key in relay.store.values)
    assert await pod.upload() == (201, None)


async def test_an_upload_that_stalls_is_ended(relay: Relay, attempt: MakeAttempt) -> None:
    pod = attempt()
    await pod.claim()

    async def stalling() -> Any:
        yield b"x"
        await asyncio.sleep(3)

    with pytest.raises((ClientError, AssertionError)):
        assert (await pod.upload(stalling()))[0] != 408
    assert not any(key.endswith(".tar.zst") for key in relay.store.values)


async def test_too_many_uploads_at_once_are_told_to_come_again(relay: Relay, attempt: MakeAttempt) -> None:
    pods = [attempt(1, case_id=f"c{number}") for number in range(9)]
    for pod in pods:
        await pod.claim()
    let_go = asyncio.Event()

    async def slow() -> Any:
        while not let_go.is_set():
            yield b"x"
            await asyncio.sleep(0.05)

    holding = [asyncio.create_task(pod.upload(slow())) for pod in pods[:8]]
    await asyncio.sleep(0.2)
    refused = await relay.call("PUT", f"{pods[8].path}/bundle", pods[8].token, data=b"x")
    let_go.set()

    assert (refused.status, refused.headers["Retry-After"]) == (503, "2")
    assert {status for status, _ in await asyncio.gather(*holding)} == {201}
    assert await pods[8].upload() == (201, None)


async def test_other_bytes_for_an_attempt_are_refused(relay: Relay, attempt: MakeAttempt) -> None:
    pod = attempt()
    await pod.claim()
    await pod.upload()

    assert await pod.upload(b"other bytes") == (409, "exists")
    assert relay.store.values["runs/run-1/17/a/0/1.tar.zst"] == pod.bundle


async def test_a_partial_bundle_lies_beside_the_whole_one(relay: Relay, attempt: MakeAttempt) -> None:
    pod = attempt()
    await pod.claim()
    assert await relay.said("PUT", f"{pod.path}/bundle?partial=1", pod.token, data=b"half") == (201, None)
    assert await relay.said("PUT", f"{pod.path}/bundle?partial=x", pod.token, data=b"half") == (400, "BadPath")
    assert await pod.upload() == (201, None)

    assert await (await relay.call("GET", f"{pod.path}/bundle?partial=1")).read() == b"half"
    assert await (await relay.call("GET", f"{pod.path}/bundle")).read() == pod.bundle


async def test_a_store_that_is_away_answers_503_and_the_seal_succeeds_later(relay: Relay, attempt: MakeAttempt) -> None:
    pod = attempt()
    await pod.claim()
    await pod.upload()
    relay.store.unavailable = "No space left on device"

    refused = await relay.call("PUT", f"{pod.case_path}/sealed", pod.token, data=json_file(pod.sealed()))
    assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
    assert (await refused.json())["reason"] == "StoreUnavailable"

    relay.store.unavailable = None
    assert await pod.seal() == (201, None)


async def test_a_store_that_fails_in_the_middle_of_an_answer_cuts_it_off(relay: Relay, attempt: MakeAttempt) -> None:
    pod = attempt()
    await pod.claim()
    await pod.upload(b"x" * 300_000)

    async def failing(key: str) -> AsyncIterator[bytes]:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"x" * 100_000
            raise StoreUnavailable("gone")

        return pieces()

    relay.store.stream = failing  # type: ignore[method-assign]
    with pytest.raises(ClientError):
        await relay.call("GET", f"{pod.path}/bundle")


async def test_a_caller_may_ask_whether_something_is_there_without_reading_it(
    relay: Relay, attempt: MakeAttempt
) -> None:
    pod = attempt()
    await pod.claim()
    assert (await relay.call("HEAD", f"{pod.path}/bundle")).status == 404
    await pod.upload()
    answer = await relay.call("HEAD", f"{pod.path}/bundle")

    assert (answer.status, await answer.read()) == (200, b"")


async def test_a_caller_who_leaves_in_the_middle_is_no_error(
    relay: Relay, attempt: MakeAttempt, caplog: pytest.LogCaptureFixture
) -> None:
    pod = attempt()
    await pod.claim()
    await pod.upload(b"x" * 1_000_000)
    async with relay.session.get(
        relay.server.make_url(f"{pod.path}/bundle"), headers={"Authorization": "Bearer operator"}
    ) as answer:
        assert answer.status == 200
        answer.close()
    await asyncio.sleep(0.1)

    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


async def test_what_does_not_exist_is_404(relay: Relay) -> None:
    for path in ("/v1/runs/run-1/cases/17/a/0/sealed", "/v1/runs/run-1/cases/17/a/0/1/bundle"):
        assert await relay.said("GET", path) == (404, "NotFound")


async def test_the_index_lists_every_claim_bundle_and_seal(relay: Relay, attempt: MakeAttempt) -> None:
    first, second = attempt(1), attempt(2, case_id="b")
    await first.claim()
    await relay.said("PUT", f"{first.path}/bundle?partial=1", first.token, data=b"half")
    await first.upload()
    await first.seal()
    await second.claim()

    lines = [json.loads(line) for line in (await (await relay.call("GET", "/v1/runs/run-1/index")).text()).splitlines()]

    assert {(line["case_id"], line["attempt"], line["kind"]) for line in lines} == {
        ("a", 1, "claim"),
        ("a", 1, "partial"),
        ("a", 1, "bundle"),
        ("a", 1, "sealed"),
        ("b", 2, "claim"),
    }
    assert next(line["sealed"] for line in lines if line["kind"] == "sealed") == first.sealed()
