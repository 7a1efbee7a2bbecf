"""AgentBench's tasks and the end of their pod: CANCELLED reaches them, and what they leave is kept, unsealed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from support.agentbench_tasks import PACK, STUBBORN
from support.recorder import recording

SILENT = "import sys\nfor line in sys.stdin: open({seen!r}, 'w')\n"
TESTS = Path(__file__).resolve().parents[2]


async def driver(scratch: Path, pack: str, case_id: str) -> asyncio.subprocess.Process:
    (scratch / "candidate" / "main.py").write_text(SILENT.format(seen=str(scratch / "seen")))
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "casewarden_sdk", f"support.agentbench_tasks:{pack}", "drive"),
        env={
            **os.environ,
            "PYTHONPATH": str(TESTS),
            "CASEWARDEN_CASE": json.dumps({"seed": 0, "case_id": case_id, "params": {}}),
            "CASEWARDEN_EVIDENCE_SOCKET": str(scratch / "s" / "t"),
            "CASEWARDEN_TERMINATION_LOG": str(scratch / "message"),
        },
    )


@pytest.mark.parametrize(("pack", "ended"), [("PACK", "returned"), ("STUBBORN", "forced")])
async def test_a_pod_that_is_taken_away_cancels_the_sample_and_keeps_its_record(scratch, pack, ended):
    case = {"PACK": PACK, "STUBBORN": STUBBORN}[pack].cases(0, {})[0]
    async with recording(case, scratch, seed=0) as bench:
        process = await driver(scratch, pack, case.id)
        async with asyncio.timeout(20):
            while not (scratch / "seen").exists():
                await asyncio.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 15) == 143
        assert bench.recorder is not None
        await asyncio.wait_for(asyncio.shield(bench.recorder), 10)
    assert not (scratch / "message").exists()
    assert bench.sink.sealed is None
    files = bench.sink.files(partial=True)
    record = json.loads(files["record.json"])
    assert (record["told"], record["ended"]) == (True, ended)
    assert record["cause"]["reason"] == "Deleted"
    assert record["output"]["history"][-1] == {"role": "agent", "content": "cancelled"}
    assert json.loads(files["attempt.json"])["reason"] == "Deleted"
