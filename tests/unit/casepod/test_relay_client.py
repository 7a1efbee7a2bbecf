"""The relay's answers, and what becomes of each: taken, tried again, or the end of the attempt."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

import pytest
from support.attempt import settings_for
from support.packs import cases

from casewarden.casepod.relay_client import Answer, RelaySink, call_over_http
from casewarden_sdk.errors import EnvironmentFailure

CASE = cases(17)[0]
ATTEMPT = "/v1/runs/run-1/cases/17/say-it-again/0/1"


class Relay:
    """Answers from a script; the last answer is for ever. Time passes only when the sink sleeps."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, str, bytes]] = []
        self.tokens: list[str] = []
        self.slept: list[float] = []
        self.now = 0.0

    def __call__(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        self.calls.append((method, path, body))
        self.tokens.append(headers["Authorization"])
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def refusal(status: int, reason: str = "", retry_after: float = 0.0) -> Answer:
    return Answer(status, json.dumps({"error": "no", "reason": reason}).encode(), retry_after)


OK = Answer(200, b"{}")


@pytest.fixture
def sink_of(tmp_path):
    (tmp_path / "token").write_text("token-1\n")

    def make(relay: Relay, hold: float = 100.0) -> RelaySink:
        settings = settings_for(CASE, tmp_path, limits={"hold_seconds": hold})
        return RelaySink(settings, relay, sleep=relay.sleep, monotonic=lambda: relay.now, jitter=lambda: 0.5)

    return make


async def test_a_claim_is_won_or_lost(sink_of):
    relay = Relay(OK)
    assert await sink_of(relay).claim()
    assert relay.calls == [("POST", f"{ATTEMPT}/claim", b"")]
    assert not await sink_of(Relay(refusal(409, "claimed"))).claim()
    assert not await sink_of(Relay(refusal(409, "sealed"))).claim()


async def test_bundles_go_to_their_own_places(sink_of):
    relay = Relay(Answer(201, b"{}"))
    await sink_of(relay).put_bundle(b"b", partial=False)
    await sink_of(relay).put_bundle(b"p", partial=True)
    assert relay.calls == [("PUT", f"{ATTEMPT}/bundle?partial=0", b"b"), ("PUT", f"{ATTEMPT}/bundle?partial=1", b"p")]


async def test_the_first_seal_counts(sink_of):
    assert await sink_of(Relay(Answer(201, b"{}"))).put_sealed({"v": 1})
    assert await sink_of(Relay(Answer(200, b"{}"))).put_sealed({"v": 1})
    assert not await sink_of(Relay(refusal(409, "sealed"))).put_sealed({"v": 1})


@pytest.mark.parametrize("reason", ["claimed", "NoBundle", ""])
async def test_a_conflict_that_is_no_earlier_seal_is_a_failure_of_ours(sink_of, reason):
    with pytest.raises(EnvironmentFailure, match="EvidenceFailed"):
        await sink_of(Relay(refusal(409, reason))).put_sealed({"v": 1})


@pytest.mark.parametrize(
    "trouble", [refusal(503), refusal(500), refusal(429), ConnectionRefusedError("no"), TimeoutError()]
)
async def test_what_may_pass_is_tried_again_with_longer_pauses(sink_of, trouble):
    relay = Relay(trouble, trouble, trouble, OK)
    assert await sink_of(relay).claim()
    assert relay.slept == [0.25, 0.5, 1.0]


async def test_the_relay_may_ask_for_a_longer_pause_but_not_for_an_endless_one(sink_of):
    relay = Relay(refusal(503, retry_after=7), refusal(503, retry_after=9999), OK)
    await sink_of(relay).claim()
    assert relay.slept == [7, 30]


async def test_a_finished_verdict_is_held_and_not_longer_than_the_hold_time(sink_of):
    relay = Relay(refusal(503))
    with pytest.raises(EnvironmentFailure, match=r"StoreUnavailable.*hold time of 100 s was over: 503"):
        await sink_of(relay).put_bundle(b"x", partial=False)
    assert sum(relay.slept) == pytest.approx(100)
    assert len(relay.calls) > 10


async def test_the_hold_time_is_one_for_all_calls_of_the_attempt(sink_of):
    relay = Relay(*[refusal(503)] * 8, OK, refusal(503))
    sink = sink_of(relay, hold=60)
    await sink.put_bundle(b"x", partial=False)
    spent = relay.now
    with pytest.raises(EnvironmentFailure, match="StoreUnavailable"):
        await sink.put_sealed({"v": 1})
    assert spent > 20
    assert relay.now == pytest.approx(60)


@pytest.mark.parametrize("status", [400, 404, 413, 301])
async def test_a_no_that_stays_no_ends_the_attempt_at_once(sink_of, status):
    relay = Relay(refusal(status, "TooLarge"))
    with pytest.raises(EnvironmentFailure, match=f"EvidenceFailed.*{status}"):
        await sink_of(relay).put_bundle(b"x", partial=False)
    assert len(relay.calls) == 1


async def test_an_unknown_pod_gets_a_minute_to_become_known(sink_of):
    relay = Relay(refusal(403), refusal(401), OK)
    assert await sink_of(relay).claim()
    relay = Relay(refusal(403, "NotYours"))
    with pytest.raises(EnvironmentFailure, match=r"EvidenceFailed.*NotYours"):
        await sink_of(relay, hold=900).claim()
    assert 60 <= relay.now < 75


async def test_the_token_is_read_again_for_every_call_and_waited_for(sink_of, tmp_path):
    relay = Relay(OK)
    sink = sink_of(relay)
    await sink.claim()
    (tmp_path / "token").unlink()
    (tmp_path / "token").mkdir()
    (tmp_path / "token" / "token").write_text("token-2")
    await sink.claim()
    assert relay.tokens == ["Bearer token-1", "Bearer token-2"]


async def test_a_workspace_is_asked_for_in_the_tokens_own_namespace(sink_of, tmp_path):
    claims = {"kubernetes.io": {"namespace": "evals"}}
    payload = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    (tmp_path / "token").write_text(f"head.{payload}.signature")
    relay = Relay(Answer(200, b"archive"))
    assert await sink_of(relay).fetch_workspace("d" * 64) == b"archive"
    assert relay.calls == [("GET", f"/v1/workspaces/evals/{'d' * 64}", b"")]


async def test_a_token_without_a_namespace_is_a_failure_of_ours(sink_of):
    with pytest.raises(EnvironmentFailure, match="names no namespace"):
        await sink_of(Relay(OK)).fetch_workspace("d" * 64)


@pytest.mark.parametrize("url", ["", "relay:8080", "ftp://relay", "http://"])
def test_a_relay_url_that_is_none_is_refused(url):
    with pytest.raises(ValueError, match="relay_url"):
        call_over_http(url)
