"""A shim that never comes, is none, or is lost: who is to blame depends on whether a foreign byte has run."""

from __future__ import annotations

import asyncio

import pytest
from support.recorder import FakeShim, recording

from casewarden_sdk.connection import ConnectionLost, Refusal
from casewarden_sdk.contract import Case

CASE = Case("a-case", ("a",), {"id": "a-case"})


async def started(bench, fake) -> int:
    asking = asyncio.ensure_future(bench.ask("start", argv=None))
    await fake.answer("sweep", killed=0, left=0)
    header = await fake.answer("start", session=1, pid=5)
    assert header["limits"] == {"processes": 64, "file_bytes": 16 << 20, "open_files": 1024, "output_bytes": 65536}
    assert header["network"] == "none"
    return int((await asking)[0]["session"])


async def test_a_shim_that_never_comes_is_nobodys_verdict(scratch):
    async with recording(CASE, scratch, real_shim=False, limits={"hold_seconds": 0.3}) as bench:
        await bench.hello()
        refusal = await bench.refused("start")
        assert (refusal.party, refusal.reason) == ("environment", "EvidenceFailed")
        assert "did not connect within 0.3 s" in refusal.message


@pytest.mark.parametrize("hello", [{"event": "hello", "v": 2}, {"event": "exit"}, {"id": 1}])
async def test_what_says_no_hello_is_no_shim(scratch, hello):
    async with recording(CASE, scratch, real_shim=False) as bench:
        await bench.hello()
        await FakeShim.dial(scratch / "s" / "c", hello)
        refusal = await bench.refused("start")
        assert (refusal.party, refusal.reason) == ("environment", "EvidenceFailed")


async def test_a_shim_lost_before_anything_ran_is_an_environment_error(scratch):
    async with recording(CASE, scratch, real_shim=False) as bench:
        await bench.hello()
        fake = await FakeShim.dial(scratch / "s" / "c")
        fake.close()
        refusal = await bench.refused("start")
        assert (refusal.party, refusal.reason) == ("environment", "EvidenceFailed")


@pytest.mark.parametrize("moment", ["receive", "send", "finish", "start"])
async def test_a_shim_lost_while_the_candidate_runs_is_the_candidates(scratch, moment):
    async with recording(CASE, scratch, real_shim=False) as bench:
        await bench.hello()
        fake = await FakeShim.dial(scratch / "s" / "c")
        session = await started(bench, fake)
        asking = asyncio.ensure_future(bench.refused(moment, b"1", session=session, seconds=10, how="eof"))
        await asyncio.sleep(0.05)
        fake.close()
        refusal = await asking
        assert (refusal.party, refusal.reason) == ("candidate", "ShimLost")
        await bench.seal()
    assert bench.sink.sealed is not None


async def test_frames_that_are_none_are_a_lost_shim(scratch):
    async with recording(CASE, scratch, real_shim=False) as bench:
        await bench.hello()
        fake = await FakeShim.dial(scratch / "s" / "c")
        session = await started(bench, fake)
        fake.writer.write(b"\xff" * 64)
        assert (await bench.refused("receive", session=session, seconds=10)).reason == "ShimLost"


async def test_the_end_of_the_whole_pod_is_not_held_against_the_candidate(scratch):
    """The shim is gone first, the driver a moment later: it must not have heard of a loss by then."""
    async with recording(CASE, scratch, real_shim=False, loss_grace=2.0) as bench:
        await bench.hello()
        fake = await FakeShim.dial(scratch / "s" / "c")
        session = await started(bench, fake)
        asking = asyncio.ensure_future(bench.ask("receive", session=session, seconds=10))
        fake.close()
        done, _ = await asyncio.wait({asking}, timeout=0.3)
        assert not done
        assert bench.driver is not None
        await bench.driver.close()
        with pytest.raises(ConnectionLost):
            await asking
    assert bench.sink.sealed is None


async def test_processes_that_cannot_be_ended_are_the_candidates(scratch):
    async with recording(CASE, scratch, real_shim=False) as bench:
        await bench.hello()
        fake = await FakeShim.dial(scratch / "s" / "c")
        session = await started(bench, fake)
        asking = asyncio.ensure_future(bench.refused("finish", session=session, how="kill"))
        await fake.answer("signal")
        fake.send({"event": "exit", "session": 1, "code": None, "signal": 9, "seconds": 1.0})
        await fake.answer("sweep", killed=3, left=2)
        refusal = await asking
        assert (refusal.party, refusal.reason) == ("candidate", "ProcessLimit")
        fake.close()


@pytest.mark.parametrize(
    ("flags", "reason"), [({"oom": True}, "OOMKilled"), ({"process_limit": True}, "ProcessLimit"), ({}, "Exited")]
)
async def test_the_shims_word_on_what_ended_a_program_is_the_reason(scratch, flags, reason):
    async with recording(CASE, scratch, real_shim=False) as bench:
        await bench.hello()
        fake = await FakeShim.dial(scratch / "s" / "c")
        session = await started(bench, fake)
        fake.send({"event": "exit", "session": 1, "code": None, "signal": 9, "seconds": 1.0, **flags})
        assert (await bench.refused("receive", session=session, seconds=10)).reason == reason
        fake.close()


async def test_a_program_that_lost_a_child_to_memory_and_went_on_is_not_held_to_it(scratch):
    async with recording(CASE, scratch, real_shim=False) as bench:
        await bench.hello()
        fake = await FakeShim.dial(scratch / "s" / "c")
        session = await started(bench, fake)
        asking = asyncio.ensure_future(bench.finish(session))
        await fake.answer("close_stdin")
        fake.send({"event": "exit", "session": 1, "code": 0, "signal": None, "seconds": 1.0, "oom": True})
        await fake.answer("sweep", killed=0, left=0)
        assert (await asking)["code"] == 0
        fake.close()


async def test_a_failure_of_the_shims_own_is_an_environment_error(scratch):
    async with recording(CASE, scratch, real_shim=False) as bench:
        await bench.hello()
        fake = await FakeShim.dial(scratch / "s" / "c")
        asking = asyncio.ensure_future(bench.ask("start", argv=None))
        await fake.answer("sweep", killed=0, left=0)
        error = {"party": "environment", "reason": "EnvironmentFailed", "message": "no seccomp"}
        await fake.answer("start", ok=False, error=error)
        with pytest.raises(Refusal, match="EnvironmentFailed: no seccomp"):
            await asking
        fake.close()
