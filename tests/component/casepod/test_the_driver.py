"""The task container's process: what it writes, how it exits, and that nothing is sealed after SIGTERM."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from support.packs import REFERENCE, cases
from support.recorder import recording
from support.troubled_pack import TROUBLE

from casewarden_sdk.termination import decode_termination

TESTS = Path(__file__).resolve().parents[2]
CASE = cases(17)[0]


async def driver(scratch: Path, *, trouble: str = "", **changes: object) -> asyncio.subprocess.Process:
    """Start the driver of the troubled pack on the scratch folder's recorder."""
    (scratch / "trouble").write_text(trouble)
    (scratch / "candidate" / "main.py").write_text(REFERENCE)
    told = {"seed": 17, "case_id": CASE.id, "params": {}, **changes}
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "casewarden_sdk", "support.troubled_pack:PACK", "drive"),
        env={
            **os.environ,
            "PYTHONPATH": str(TESTS),
            "CASEWARDEN_CASE": json.dumps(told),
            "CASEWARDEN_EVIDENCE_SOCKET": str(scratch / "s" / "t"),
            "CASEWARDEN_TERMINATION_LOG": str(scratch / "message"),
            TROUBLE: str(scratch / "trouble"),
        },
    )


def message(scratch: Path) -> dict | None:
    path = scratch / "message"
    return decode_termination(path.read_text()) if path.exists() else None


async def test_a_sealed_verdict_is_told_with_its_digest(scratch):
    async with recording(CASE, scratch) as bench:
        process = await driver(scratch)
        assert await asyncio.wait_for(process.wait(), 30) == 0
    assert bench.sink.sealed is not None
    told = message(scratch)
    assert told is not None
    names = ("status", "checks", "digest", "seconds")
    assert {name: told[name] for name in names} == {name: bench.sink.sealed[name] for name in names}
    assert told["status"] == "passed"
    assert json.loads(bench.sink.files()["record.json"])["answers"] == [17, {"a": [1, None]}]
    assert b'"name": "answers"' in bench.sink.files()["states.jsonl"]


@pytest.mark.parametrize(("trouble", "reason"), [("environment", "ModelUnavailable"), ("bug", "TaskFailed")])
async def test_an_environment_error_is_told_and_exits_3(scratch, trouble, reason):
    async with recording(CASE, scratch) as bench:
        process = await driver(scratch, trouble=trouble)
        assert await asyncio.wait_for(process.wait(), 30) == 3
    told = message(scratch)
    assert told is not None
    assert (told["status"], told["checks"], told["reason"]) == ("environment_error", "-", reason)
    assert bench.sink.sealed is None
    assert json.loads(bench.sink.files(partial=True)["attempt.json"])["reason"] == reason


async def test_the_loser_of_a_claim_says_so_and_exits_0(scratch):
    async with recording(CASE, scratch) as bench:
        bench.sink.claimed_by_another = True
        process = await driver(scratch)
        assert await asyncio.wait_for(process.wait(), 30) == 0
    told = message(scratch)
    assert told is not None
    assert (told["status"], told["checks"], told["digest"]) == ("superseded", "", None)
    assert bench.sink.bundles == {}


async def test_a_case_that_the_plan_does_not_know_is_a_mismatch(scratch):
    async with recording(CASE, scratch) as bench:
        process = await driver(scratch, seed=18)
        assert await asyncio.wait_for(process.wait(), 30) == 3
        assert bench.sink.claims == 0
    told = message(scratch)
    assert told is not None
    assert told["reason"] == "CaseMismatch"


async def test_a_case_that_the_pack_does_not_know_is_a_mismatch(scratch):
    (scratch / "s").mkdir()
    (scratch / "candidate").mkdir()
    process = await driver(scratch, case_id="nope")
    assert await asyncio.wait_for(process.wait(), 30) == 3
    told = message(scratch)
    assert told is not None
    assert told["reason"] == "CaseMismatch"
    assert "has no case 'nope'" in told["error"]


async def test_after_sigterm_nothing_is_sealed_and_nothing_told(scratch):
    async with recording(CASE, scratch) as bench:
        process = await driver(scratch, trouble="hangs")
        async with asyncio.timeout(20):
            while bench.sink.claims == 0:
                await asyncio.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 10) == 143
        assert bench.recorder is not None
        await asyncio.wait_for(asyncio.shield(bench.recorder), 10)
    assert message(scratch) is None
    assert bench.sink.sealed is None
    assert list(bench.sink.bundles) == [True]


async def test_a_recorder_that_goes_away_is_an_environment_error(scratch):
    async with recording(CASE, scratch) as bench:
        process = await driver(scratch)
        (scratch / "candidate" / "main.py").write_text("import time; time.sleep(60)")
        async with asyncio.timeout(20):
            while bench.sink.claims == 0:
                await asyncio.sleep(0.02)
        bench.stop.set()
        assert await asyncio.wait_for(process.wait(), 20) == 3
    told = message(scratch)
    assert told is not None
    assert (told["status"], told["reason"]) == ("environment_error", "EvidenceFailed")
    assert bench.sink.sealed is None


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "usage"),
        (("support.packs:PACK", "dance"), "usage"),
        (("support.packs", "plan"), "name the pack as MODULE:PACK"),
        (("support.packs:NOPE", "plan"), "has no NOPE"),
        (("no_such_module:PACK", "plan"), "PYTHONPATH"),
    ],
)
async def test_a_command_line_that_is_none_is_explained(arguments, text):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "casewarden_sdk", *arguments),
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 2
    assert text in said.decode()
    assert "Traceback" not in said.decode()


async def test_records_are_graded_again_by_the_verb_grade():
    row = {"case": dict(CASE.content), "dimensions": ["echo"]}
    lines = [
        {**row, "record": {"answers": [17, {"a": [1, None]}]}},
        {**row, "record": {"answers": []}},
        {**row, "record": {"candidate_error": {"reason": "Exited", "message": "gone"}}},
        {**row, "record": {}},
    ]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "casewarden_sdk", "support.packs:PACK", "grade"),
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    out, _ = await asyncio.wait_for(process.communicate(data), 30)
    verdicts = [json.loads(line) for line in out.splitlines()]
    assert [item.get("status") for item in verdicts] == ["passed", "failed", "agent_error", None]
    assert "KeyError" in verdicts[3]["error"]
    assert process.returncode == 1
