"""From the driver's hello to the seal: the order that neither party can change, and what is kept."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from support.packs import REFERENCE
from support.recorder import recording

from casewarden_sdk.bundle import transcript_sha256
from casewarden_sdk.canonical import canonical, sha256_bytes
from casewarden_sdk.connection import ConnectionLost, Refusal
from casewarden_sdk.contract import Case, Verdict
from casewarden_sdk.workspace import digest_workspace, pack_workspace, workspace_of

CASE = Case("a-case", ("b", "a"), {"id": "a-case", "x": 1})
CONTENT = canonical(dict(CASE.content)).encode()


async def test_a_verdict_is_sealed_with_everything_that_was_said(scratch):
    async with recording(CASE, scratch) as bench:
        assert (await bench.hello())["limits"]["case_seconds"] == 20
        session = await bench.start("import sys\nprint('note', file=sys.stderr)\n" + REFERENCE)
        assert await bench.say(session, b'{"a": "\xc3\xa9"}') == b'{"a": "\xc3\xa9"}'
        await bench.ask("state", b'{"tickets": 2}', name="after")
        ended = await bench.finish(session)
        assert (ended["code"], ended["unsolicited"], ended["stderr_tail"]) == (0, 0, "note\n")
        answer = await bench.seal(Verdict.assessed(CASE, {"a": True, "b": False}, "b is wrong"))

    files = bench.sink.files()
    assert answer["digest"] == sha256_bytes(bench.sink.bundles[False])
    assert bench.sink.sealed == {
        "v": 1, "run_uid": "run-1", "seed": 17, "case_id": "a-case", "repeat": 0, "attempt": 1, "pod_uid": "pod-1",
        "digest": answer["digest"], "status": "failed", "checks": "10", "reason": None, "error": "b is wrong",
        "seconds": answer["seconds"],
    }  # fmt: skip
    assert files["case.json"] == CONTENT
    assert json.loads(files["record.json"]) == {"x": 1}
    assert [json.loads(line)["value"] for line in files["states.jsonl"].splitlines()] == [{"tickets": 2}]
    rows = [json.loads(line) for line in files["transcript.jsonl"].splitlines()]
    said = [(row["dir"], row["text"]) for row in rows if row["dir"] in ("in", "out", "err")]
    assert sorted(said) == [("err", "note"), ("in", '{"a": "é"}'), ("out", '{"a": "é"}')]
    assert [row["dir"] for row in rows if row["dir"] in ("start", "exit")] == ["start", "exit"]
    verdict = json.loads(files["verdict.json"])
    assert verdict["transcript_sha256"] == transcript_sha256(rows)
    assert (verdict["seed"], verdict["repeat"], verdict["attempt"], verdict["passed"]) == (17, 0, 1, False)
    assert verdict["duration_seconds"] == answer["seconds"] > 0
    attempt = json.loads(files["attempt.json"])
    assert (attempt["partial"], attempt["pod_uid"]) == (False, "pod-1")
    assert attempt["limits"]["processes"] == 64


@pytest.mark.parametrize(
    "change", [{"v": 2}, {"case_id": "b-case"}, {"seed": 18}, {"case_sha256": "0" * 64}, {"seed": None}]
)
async def test_a_driver_of_another_case_or_version_gets_no_claim(scratch, change):
    async with recording(CASE, scratch, real_shim=False) as bench:
        with pytest.raises(Refusal, match="CaseMismatch"):
            await bench.hello(**change)
        assert bench.sink.claims == 0
        assert (await bench.refused("start")).reason == "TaskFailed"


async def test_the_loser_of_the_claim_is_superseded_and_starts_nothing(scratch):
    async with recording(CASE, scratch, real_shim=False) as bench:
        bench.sink.claimed_by_another = True
        with pytest.raises(Refusal) as caught:
            await bench.hello()
        assert caught.value.header["superseded"] is True
        assert (await bench.refused("start")).reason == "TaskFailed"
    assert bench.sink.bundles == {}


async def test_the_second_to_seal_is_superseded(scratch):
    async with recording(CASE, scratch) as bench:
        await bench.hello()
        bench.sink.sealed_by_another = True
        with pytest.raises(Refusal) as caught:
            await bench.seal()
        assert caught.value.header["superseded"] is True
    assert bench.sink.sealed is None


async def test_a_store_that_is_away_is_an_environment_error(scratch):
    async with recording(CASE, scratch, real_shim=False) as bench:
        bench.sink.away = True
        with pytest.raises(Refusal, match="StoreUnavailable") as caught:
            await bench.hello()
        assert caught.value.party == "environment"


@pytest.mark.parametrize(
    "op", ["case", "start", "send", "receive", "finish", "state", "seal", "abandon", "dance", None]
)
async def test_nothing_is_done_before_the_claim(scratch, op):
    async with recording(CASE, scratch, real_shim=False) as bench:
        refusal = await bench.refused(op, session=1, seconds=1, how="kill")
        assert (refusal.party, refusal.reason) == ("environment", "TaskFailed")
        assert bench.sink.claims == 0


async def test_nothing_is_done_after_the_seal(scratch):
    async with recording(CASE, scratch) as bench:
        await bench.hello()
        await bench.seal()
        sealed = bench.sink.sealed
        refusal = await bench.refused("seal", verdict=Verdict.agent_error(CASE, "Exited", "x").to_json())
        assert refusal.reason == "TaskFailed"
        assert (await bench.refused("start")).reason == "TaskFailed"
    assert bench.sink.sealed is sealed
    assert True not in bench.sink.bundles


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        Verdict.assessed(Case("other", ("a", "b"), {"id": "other"}), {"a": True, "b": True}).to_json(),
        Verdict.assessed(Case("a-case", ("a",), {"id": "a-case"}), {"a": True}).to_json(),
        Verdict.environment_error(CASE, "TaskFailed", "x").to_json(),
        {**Verdict.assessed(CASE, {"a": True, "b": False}).to_json(), "passed": True},
    ],
)
async def test_a_verdict_that_this_attempt_cannot_have_is_never_sealed(scratch, document):
    async with recording(CASE, scratch) as bench:
        await bench.hello()
        refusal = await bench.refused("seal", b"{}", verdict=document)
        assert (refusal.party, refusal.reason) == ("environment", "TaskFailed")
    assert bench.sink.sealed is None


async def test_a_case_of_another_content_is_noticed(scratch):
    async with recording(CASE, scratch, real_shim=False) as bench:
        await bench.hello()
        assert (await bench.refused("case", b'{"id": "a-case"}')).reason == "CaseMismatch"


async def test_the_candidate_is_stopped_before_its_verdict_is_sealed(scratch):
    lives = "import os, time\nprint(os.getpid(), flush=True)\nos.setsid() if os.fork() == 0 else None\ntime.sleep(60)\n"
    async with recording(CASE, scratch) as bench:
        await bench.hello()
        session = await bench.start(lives)
        pid = int((await bench.ask("receive", session=session, seconds=5))[1])
        await bench.seal()
        assert not Path("/proc", str(pid)).exists()


async def test_a_driver_that_goes_without_a_verdict_leaves_a_partial_bundle(scratch):
    async with recording(CASE, scratch) as bench:
        await bench.hello()
        session = await bench.start(REFERENCE)
        await bench.say(session, b"1")
        assert bench.driver is not None
        await bench.driver.close()
        assert bench.recorder is not None
        await asyncio.wait_for(asyncio.shield(bench.recorder), 10)
    files = bench.sink.files(partial=True)
    assert bench.sink.sealed is None
    assert json.loads(files["attempt.json"])["partial"] is True
    assert b'"dir": "in"' in files["transcript.jsonl"]
    assert "verdict.json" not in files


async def test_an_environment_error_is_kept_with_its_reason_and_record(scratch):
    async with recording(CASE, scratch) as bench:
        await bench.hello()
        await bench.ask("abandon", b'{"half": 1}', reason="TaskFailed", error="grade: KeyError")
    files = bench.sink.files(partial=True)
    attempt = json.loads(files["attempt.json"])
    assert (attempt["reason"], attempt["error"]) == ("TaskFailed", "grade: KeyError")
    assert json.loads(files["record.json"]) == {"half": 1}
    assert bench.sink.sealed is None


async def test_nothing_is_sealed_for_a_driver_that_is_gone(scratch):
    async with recording(CASE, scratch, limits={"hold_seconds": 30}) as bench:
        await bench.hello()
        gate = asyncio.Event()
        put, entered = bench.sink.put_bundle, asyncio.Event()

        async def slow(data: bytes, *, partial: bool) -> None:
            entered.set()
            if not partial:
                await gate.wait()
            await put(data, partial=partial)

        bench.sink.put_bundle = slow  # type: ignore[method-assign]
        sealing = asyncio.ensure_future(bench.seal())
        await entered.wait()
        assert bench.driver is not None
        await bench.driver.close()
        with pytest.raises(ConnectionLost):
            await sealing
        assert bench.recorder is not None
        await asyncio.wait_for(asyncio.shield(bench.recorder), 10)
    assert bench.sink.sealed is None
    assert list(bench.sink.bundles) == [True]


async def test_the_stop_of_the_pod_leaves_a_partial_bundle_within_seconds(scratch):
    async with recording(CASE, scratch) as bench:
        await bench.hello()
        await bench.start(REFERENCE)
        bench.stop.set()
        assert bench.recorder is not None
        await asyncio.wait_for(asyncio.shield(bench.recorder), 6)
    assert json.loads(bench.sink.files(partial=True)["attempt.json"])["partial"] is True
    assert bench.sink.sealed is None


async def test_a_restarted_recorder_refuses_the_driver_it_knows_nothing_of(scratch):
    async with recording(CASE, scratch, real_shim=False, restarted=True) as bench:
        with pytest.raises(Refusal, match="EvidenceFailed"):
            await bench.hello()
        assert bench.sink.claims == 0


async def test_there_is_one_driver_and_no_other(scratch):
    async with recording(CASE, scratch, real_shim=False) as bench:
        await bench.connect()
        await bench.hello()
        assert not (scratch / "s" / "t").exists()
        with pytest.raises(OSError, match="No such file"):
            await asyncio.open_unix_connection(scratch / "s" / "t")


async def test_an_uploaded_workspace_is_fetched_checked_and_laid_out_before_the_start(scratch):
    from casewarden.casepod.zstd import compress

    files = workspace_of([("main.py", REFERENCE.encode()), ("evalarc.toml", b'command = ["{python}", "main.py"]')])
    digest = digest_workspace(files)
    candidate = {"argv": None, "default_argv": ["/x"], "fetch_workspace": True, "workspace_digest": digest}
    async with recording(CASE, scratch, candidate=candidate) as bench:
        bench.sink.workspace = pack_workspace(files, compress)
        await bench.hello()
        session = int((await bench.ask("start", argv=["/never"]))[0]["session"])
        assert await bench.say(session, b"1") == b"1"


@pytest.mark.parametrize("archive", [b"", b"rubbish", "another"])
async def test_a_workspace_that_is_not_the_runs_is_an_environment_error(scratch, archive):
    from casewarden.casepod.zstd import compress

    data = pack_workspace(workspace_of([("x", b"")]), compress) if archive == "another" else archive
    candidate = {"argv": None, "default_argv": ["x"], "fetch_workspace": True, "workspace_digest": "d" * 64}
    async with recording(CASE, scratch, real_shim=False, candidate=candidate) as bench:
        bench.sink.workspace = data
        with pytest.raises(Refusal, match="EvidenceFailed"):
            await bench.hello()


async def test_a_kind_without_a_candidate_starts_none(scratch):
    async with recording(CASE, scratch, real_shim=False, candidate=None) as bench:
        await bench.hello()
        assert (await bench.refused("start")).reason == "TaskFailed"
        await bench.seal()
    assert bench.sink.sealed is not None


async def test_a_verdict_without_the_cases_content_is_not_sealed(scratch):
    async with recording(CASE, scratch, real_shim=False) as bench:
        await bench.ask("hello", v=1, case_id=CASE.id, seed=17, case_sha256=CASE.sha256)
        verdict = Verdict.assessed(CASE, {"a": True, "b": True})
        assert (await bench.refused("seal", b"{}", verdict=verdict.to_json())).reason == "TaskFailed"
    assert bench.sink.sealed is None


async def test_a_state_that_is_no_json_is_the_packs_mistake(scratch):
    async with recording(CASE, scratch, real_shim=False) as bench:
        await bench.hello()
        for payload in (b"", b"{", b"NaN", b"[" * 100_000):
            assert (await bench.refused("state", payload, name="x")).reason == "TaskFailed"
