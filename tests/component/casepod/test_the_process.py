"""The evidence container's process: it stays until it is stopped, and notices that it has been started again."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

from support.attempt import attempt_document
from support.packs import cases

from casewarden_sdk.connection import Connection, Refusal

CASE = cases(17)[0]
PROGRAM = """
import json, sys
from casewarden.casepod.__main__ import serve
from casewarden.casepod.settings import Places, Settings
document, places = json.loads(sys.argv[1])
serve(Settings.from_json(document, Places(**places)))
"""


async def recorder(scratch: Path) -> asyncio.subprocess.Process:
    (scratch / "s").mkdir(exist_ok=True)
    places = {
        "task_socket": str(scratch / "s" / "t"),
        "candidate_socket": str(scratch / "s" / "c"),
        "spool": str(scratch),
        "token": str(scratch / "token"),
    }
    document = attempt_document(CASE, relay_url="http://127.0.0.1:9")
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, json.dumps([document, places]))
    async with asyncio.timeout(20):
        while not (scratch / "s" / "t").exists() or not (scratch / "s" / "c").exists():
            await asyncio.sleep(0.01)
    return process


async def test_it_exits_0_when_it_is_stopped_before_anything_happened(scratch):
    process = await recorder(scratch)
    process.terminate()
    assert await asyncio.wait_for(process.wait(), 10) == 0


async def test_one_that_nobody_had_met_can_be_replaced(scratch):
    for _ in range(2):
        process = await recorder(scratch)
        process.kill()
        await process.wait()
        for name in ("t", "c"):
            (scratch / "s" / name).unlink()
    assert not (scratch / "used").exists()


async def test_it_stays_after_its_driver_and_the_next_process_refuses_another(scratch):
    process = await recorder(scratch)
    driver = Connection(*(await asyncio.open_unix_connection(scratch / "s" / "t")))
    await driver.close()
    await asyncio.sleep(1.5)
    assert process.returncode is None
    process.kill()
    await process.wait()
    process = await recorder(scratch)
    driver = Connection(*(await asyncio.open_unix_connection(scratch / "s" / "t")))
    hello = {"op": "hello", "v": 1, "case_id": CASE.id, "seed": 17, "case_sha256": CASE.sha256}
    try:
        await driver.ask(hello, seconds=10)
        reason = None
    except Refusal as refusal:
        reason = refusal.reason
    assert reason == "EvidenceFailed"
    await driver.close()
    process.terminate()
    assert await asyncio.wait_for(process.wait(), 10) == 0


async def test_without_its_attempt_it_says_what_is_missing(scratch):
    variables = {name: value for name, value in os.environ.items() if not name.startswith("CASEWARDEN")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-m", "casewarden.casepod"), env=variables, stderr=asyncio.subprocess.PIPE
    )
    _, said = await asyncio.wait_for(process.communicate(), 20)
    assert process.returncode == 1
    assert b"CASEWARDEN_ATTEMPT is not set" in said
