"""Candidates that break a limit, the protocol or themselves, on the real shim: each is theirs, with its reason."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from support.packs import REFERENCE
from support.recorder import Bench, recording

from casewarden_sdk.connection import Refusal
from casewarden_sdk.contract import Case

CASE = Case("a-case", ("a",), {"id": "a-case"})
SLEEPS = "import time; time.sleep(60)"


async def broken(bench: Bench, program: str, seconds: float = 5) -> Refusal:
    """Start a program, ask it one thing, and return what it broke."""
    session = await bench.start(program)
    with pytest.raises(Refusal) as caught:
        await bench.say(session, b"1", seconds)
    assert caught.value.party == "candidate"
    return caught.value


@pytest.mark.parametrize(
    ("program", "reason", "message"),
    [
        ("import sys; sys.exit(0)", "Exited", "exited with code 0 before it answered"),
        ("import sys; sys.exit(127)", "Exited", "code 127"),
        ("raise SystemExit('no idea\\x1b[31m')", "Exited", "code 1 before it answered: no idea [31m"),
        ("import os; os.kill(os.getpid(), 9)", "Exited", "signal 9"),
        ("import os, time; os.close(1); time.sleep(60)", "Exited", "closed its stdout"),
        ("print('half', end='')", "Exited", "code 0"),
        (SLEEPS, "TimeLimit", "did not answer within 0.5 s"),
        ("print('1' * 70000, flush=True)\n" + SLEEPS, "OutputLimit", "more than 65536 bytes"),
        ("import sys\nwhile True: sys.stderr.write('x' * 1000)", "OutputLimit", "more than 65536 bytes"),
        ("import sys\nwhile True: sys.stdout.buffer.write(b'\\xff' * 1000)", "OutputLimit", "more than 65536"),
    ],
)
async def test_what_breaks_while_an_answer_is_waited_for(scratch, program, reason, message):
    async with recording(CASE, scratch) as bench:
        await bench.hello()
        refusal = await broken(bench, program, 0.5 if reason == "TimeLimit" else 5)
        assert refusal.reason == reason
        assert message in refusal.message
        await bench.seal()


async def test_a_program_that_does_not_read_is_late(scratch):
    limits = {"request_bytes": 1 << 20, "response_seconds": 1}
    async with recording(CASE, scratch, limits=limits) as bench:
        await bench.hello()
        session = await bench.start(SLEEPS)
        refusal = await bench.refused("send", b"x" * 500_000, session=session)
        assert (refusal.party, refusal.reason) == ("candidate", "TimeLimit")
        assert (await bench.refused("finish", session=session, how="eof")).reason == "TimeLimit"


async def test_a_program_that_has_exited_takes_no_more(scratch):
    async with recording(CASE, scratch) as bench:
        await bench.hello()
        session = await bench.start("print(1)")
        assert await bench.say(session, b"1") == b"1"
        refusals = [await bench.refused(op, b"2", session=session, seconds=1) for op in ("receive", "send")]
        assert {refusal.reason for refusal in refusals} == {"Exited"}


async def test_a_program_that_cannot_be_started_is_the_candidates(scratch):
    for argv, message in ((["/no/such/program"], "no/such"), (["/etc/passwd"], "passwd")):
        candidate = {"argv": argv, "default_argv": ["x"]}
        async with recording(CASE, scratch, candidate=candidate) as bench:
            await bench.hello()
            refusal = await bench.refused("start")
            assert (refusal.party, refusal.reason) == ("candidate", "CannotStartProgram")
            assert message in refusal.message


async def test_a_manifest_that_is_none_is_the_candidates(scratch):
    async with recording(CASE, scratch) as bench:
        await bench.hello()
        (scratch / "candidate" / "evalarc.toml").write_text("command = 'sh'")
        refusal = await bench.refused("start")
        assert (refusal.party, refusal.reason) == ("candidate", "CannotStartProgram")


async def test_at_the_end_of_its_input_a_program_has_to_exit(scratch):
    async with recording(CASE, scratch, limits={"response_seconds": 1}) as bench:
        await bench.hello()
        session = await bench.start(REFERENCE + SLEEPS)
        await bench.say(session, b"1")
        refusal = await bench.refused("finish", session=session, how="eof")
        assert refusal.reason == "TimeLimit"
        assert "after its input ended" in refusal.message


async def test_what_a_program_says_unasked_is_counted_and_kept(scratch):
    async with recording(CASE, scratch) as bench:
        await bench.hello()
        session = await bench.start(REFERENCE + "print('\\n more ')\nsys.exit(4)")
        await bench.say(session, b"1")
        ended = await bench.finish(session)
        assert (ended["code"], ended["unsolicited"]) == (4, len("more"))
        await bench.seal()
    rows = [json.loads(line) for line in bench.sink.files()["transcript.jsonl"].splitlines()]
    assert [row["text"] for row in rows if row["dir"] == "out"] == ["1", "\n more \n"]


async def test_a_flood_at_the_end_is_the_output_limit(scratch):
    async with recording(CASE, scratch) as bench:
        await bench.hello()
        session = await bench.start(REFERENCE + "while True: print('x' * 1000)")
        await bench.say(session, b"1")
        assert (await bench.refused("finish", session=session, how="eof")).reason == "OutputLimit"


async def test_killing_a_program_asks_nothing_of_it(scratch):
    async with recording(CASE, scratch) as bench:
        await bench.hello()
        session = await bench.start(REFERENCE + SLEEPS)
        await bench.say(session, b"1")
        ended = await bench.finish(session, "kill")
        assert (ended["code"], ended["signal"]) == (None, 9)
        assert await bench.finish(session, "kill") == {**ended, "id": 7}


async def test_case_time_runs_over_all_sessions_from_the_first_start(scratch):
    async with recording(CASE, scratch, limits={"case_seconds": 1.5}) as bench:
        await bench.hello()
        first = await bench.start(REFERENCE)
        await bench.say(first, b"1")
        await bench.finish(first)
        second = await bench.start(SLEEPS)
        started = time.monotonic()
        refusal = await bench.refused("receive", session=second, seconds=20)
        assert time.monotonic() - started < 1.5
        assert (refusal.party, refusal.reason) == ("candidate", "TimeLimit")
        assert "more than its 1.5 s" in refusal.message
        for op in ("send", "receive", "finish", "start"):
            refusal = await bench.refused(op, session=second, seconds=1, how="kill")
            assert refusal.reason == "TimeLimit"


async def test_actions_are_counted_over_all_sessions(scratch):
    async with recording(CASE, scratch, limits={"actions": 2}) as bench:
        await bench.hello()
        for _ in range(2):
            session = await bench.start(REFERENCE)
            await bench.say(session, b"1")
            await bench.finish(session)
        session = await bench.start(REFERENCE)
        refusal = await bench.refused("send", b"3", session=session)
        assert (refusal.party, refusal.reason) == ("candidate", "ActionLimit")


async def test_a_daemon_does_not_survive_the_end_of_its_session(scratch):
    daemon = (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(60)\n"
        "    os._exit(0)\nos.wait()\n" + REFERENCE
    )
    async with recording(CASE, scratch) as bench:
        await bench.hello()
        session = await bench.start(daemon)
        await bench.say(session, b"1")
        before = members(scratch / "candidate")
        assert len(before) == 2
        assert (await bench.finish(session))["code"] == 0
        assert not [pid for pid in before if alive(pid)]
        again = await bench.start(REFERENCE)
        assert await bench.say(again, b"2") == b"2"


async def test_the_state_folder_outlives_a_session_and_holds_what_was_written(scratch):
    async with recording(CASE, scratch) as bench:
        await bench.hello()
        place = scratch / "state" / "x"
        session = await bench.start(f"open({str(place)!r}, 'w').write('kept')\n" + REFERENCE)
        await bench.say(session, b"1")
        await bench.finish(session)
        session = await bench.start(f"print(open({str(place)!r}).read(), flush=True)\ninput()")
        assert (await bench.ask("receive", session=session, seconds=5))[1] == b"kept"


async def test_bytes_that_are_no_utf8_reach_the_driver_and_the_transcript(scratch):
    async with recording(CASE, scratch) as bench:
        await bench.hello()
        session = await bench.start(
            "import sys; sys.stdout.buffer.write(b'\\xff\\x00\\n'); sys.stdout.flush(); input()"
        )
        assert (await bench.ask("receive", session=session, seconds=5))[1] == b"\xff\x00"
        await bench.seal()
    assert b'"base64": "/wA="' in bench.sink.files()["transcript.jsonl"]


async def test_the_candidate_sees_its_own_environment_and_no_network(scratch):
    program = (
        "import json, os, socket\n"
        "try:\n    socket.socket(socket.AF_INET)\n    net = True\nexcept OSError:\n    net = False\n"
        "print(json.dumps([sorted(os.environ), net, os.getcwd()]), flush=True)\ninput()"
    )
    candidate = {"argv": None, "default_argv": ["{python}", "-I", "main.py"], "env": [{"name": "A", "value": "b"}]}
    async with recording(CASE, scratch, candidate=candidate) as bench:
        await bench.hello()
        session = await bench.start(program)
        names, network, folder = json.loads((await bench.ask("receive", session=session, seconds=5))[1])
    assert [name for name in names if name != "LC_CTYPE"] == ["A", "HOME", "LANG", "PATH"]
    assert network is False
    assert folder == str(scratch / "candidate")


async def test_more_processes_than_allowed_end_the_session(scratch):
    bomb = "import os, time\nfor _ in range(400):\n    try:\n        if os.fork() == 0: time.sleep(60)\n"
    bomb += "    except OSError: pass\ntime.sleep(60)"
    async with recording(CASE, scratch, limits={"processes": 16}) as bench:
        await bench.hello()
        refusal = await broken(bench, bomb, 10)
        assert refusal.reason == "ProcessLimit"
        await bench.seal()


def members(folder: Path) -> list[int]:
    """Processes that work in ``folder``."""
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*") if _folder_of(entry) == str(folder)]


def _folder_of(process: Path) -> str:
    try:
        return os.readlink(process / "cwd")
    except OSError:
        return ""


def alive(pid: int) -> bool:
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
