"""A driver and an environment container, over the real shim: commands, files, limits, and whose fault an end is."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.recorder import FakeShim
from support.shim import shim

from casewarden_sdk.environment import Environment
from casewarden_sdk.errors import CandidateError, EnvironmentFailure


@contextlib.asynccontextmanager
async def environment(scratch: Path) -> AsyncIterator[Environment]:
    path = str(scratch / "shim.sock")
    process = await asyncio.create_subprocess_exec(
        str(shim()), "--local", "--dial", path, stdin=subprocess.DEVNULL, start_new_session=True
    )
    connected = await Environment.connect("shell", path, 20)
    try:
        yield connected
    finally:
        await connected.close()
        assert await asyncio.wait_for(process.wait(), 10) == 0


def python(program: str) -> list[str]:
    return [sys.executable, "-I", "-c", program]


async def test_a_command_runs_to_its_end_with_its_input_and_both_outputs(scratch):
    async with environment(scratch) as shell:
        program = "import sys; print(sys.stdin.read().upper()); print('e', file=sys.stderr); sys.exit(3)"
        done = await shell.exec(python(program), stdin=b"abc" * 50_000)
        assert (done.code, done.signal, done.timed_out, done.output_limit) == (3, None, False, False)
        assert (done.stdout, done.stderr) == (b"ABC" * 50_000 + b"\n", b"e\n")
        again = await shell.exec(["/bin/cat"], stdin=b"x")
        assert (again.code, again.stdout) == (0, b"x")


async def test_a_command_that_takes_too_long_or_says_too_much_is_killed(scratch):
    async with environment(scratch) as shell:
        slow = await shell.exec(python("print(1, flush=True); import time; time.sleep(60)"), seconds=1)
        assert (slow.timed_out, slow.signal, slow.stdout) == (True, 9, b"1\n")
        loud = await shell.exec(python("while True: print('x' * 999)"), max_bytes=10_000)
        assert (loud.output_limit, loud.timed_out) == (True, False)


async def test_a_program_goes_on_running_while_it_is_talked_to(scratch):
    program = (
        "import sys; print('ready', file=sys.stderr, flush=True)\n"
        "for line in sys.stdin.buffer: sys.stdout.buffer.write(line.upper()); sys.stdout.buffer.flush()"
    )
    async with environment(scratch) as shell, await shell.open(python(program)) as running:
        assert await running.until_said(b"ready\n", 20)
        for word in (b"one\n", b"two\n"):
            assert await running.send(word)
            assert await running.receive(20) == word.upper()
        with pytest.raises(asyncio.TimeoutError):
            await running.receive(0.01)
        assert running.exit is None
        await running.close()
        assert running.exit is not None
        assert (running.exit.signal, await running.receive(5), await running.send(b"x")) == (9, b"", False)


async def test_a_running_program_that_ends_says_how_and_one_that_says_too_much_is_killed(scratch):
    async with environment(scratch) as shell:
        ended = await shell.open(python("import sys; print('a'); sys.exit('never ready')"))
        assert await ended.until_said(b"I am ready", 20) is False
        assert ((await ended.wait(20)).code, ended.errors(), await ended.receive(20)) == (1, b"never ready\n", b"a\n")
        loud = await shell.open(python("while True: print('x' * 999)"), max_bytes=10_000)
        assert (await loud.wait(20)).output_limit


async def test_files_go_in_and_out(scratch):
    async with environment(scratch) as shell:
        path = str(scratch / "file")
        await shell.put(path, b"\x00\xff", 0o600)
        assert (scratch / "file").stat().st_mode & 0o777 == 0o600
        assert await shell.get(path) == b"\x00\xff"
        with pytest.raises(EnvironmentFailure, match="EnvironmentFailed"):
            await shell.get(path, max_bytes=1)
        with pytest.raises(EnvironmentFailure):
            await shell.get(str(scratch / "nope"))


async def test_the_shim_tells_what_files_there_are_and_follows_no_link(scratch):
    folder = scratch / "folder"
    folder.mkdir()
    (folder / "file").write_text("12345")
    (folder / "link").symlink_to("/etc")
    async with environment(scratch) as shell:
        found = {Path(item.path).name: item for item in await shell.stat([str(folder), str(scratch / "nothing")])}
        assert set(found) == {"folder", "file", "link"}
        assert (found["file"].size, found["link"].link) == (5, "/etc")
        assert found["file"].changed == (folder / "file").stat().st_ctime_ns
        assert found["file"].mode == (folder / "file").stat().st_mode


async def test_from_the_moment_that_the_agent_is_said_to_act_what_fails_is_its_doing(scratch):
    async with environment(scratch) as shell:
        with pytest.raises(EnvironmentFailure):
            await shell.exec(["/no/such"])
        shell.acts()
        with pytest.raises(CandidateError, match="SandboxKilled"):
            await shell.exec(["/no/such"])


async def test_a_sweep_ends_what_a_command_left_behind(scratch):
    async with environment(scratch) as shell:
        program = "import os, time\nif os.fork() == 0:\n  os.setsid(); os.closerange(0, 3); time.sleep(60)"
        await shell.exec(python(program))
        swept = await shell.sweep()
        assert (swept.killed, swept.left) == (1, 0)


async def test_a_command_that_cannot_be_started_is_the_environments_unless_it_is_the_agents(scratch):
    async with environment(scratch) as shell:
        with pytest.raises(EnvironmentFailure, match="no/such"):
            await shell.exec(["/no/such"])
        with pytest.raises(CandidateError, match="SandboxKilled"):
            await shell.exec(["/no/such"], agent=True)


@pytest.mark.parametrize(("asked", "limits"), [({}, 256), ({"processes": 7}, 7), ({"processes": None}, None)])
async def test_a_command_of_the_agents_cannot_take_the_processes_of_the_pod(scratch, asked, limits):
    connecting = asyncio.ensure_future(Environment.connect("shell", str(scratch / "shim.sock"), 10, loss_grace=0.0))
    fake = await FakeShim.dial(scratch / "shim.sock")
    running = asyncio.ensure_future((await connecting).exec(["./fork-bomb"], agent=True, **asked))
    header = await fake.answer("start", session=1, pid=2)
    assert header["limits"].get("processes") == limits
    fake.close()
    with pytest.raises(CandidateError):
        await running


@contextlib.asynccontextmanager
async def dying(
    scratch: Path, *, acted: bool = False, loss_grace: float = 0.0
) -> AsyncIterator[asyncio.Future[object]]:
    """Make an environment whose shim goes away in a command; with ``acted`` the agent had one before it."""
    path = scratch / "shim.sock"
    connecting = asyncio.ensure_future(Environment.connect("shell", str(path), 10, loss_grace))
    fake = await FakeShim.dial(path)
    shell = await connecting
    if acted:
        refused = asyncio.ensure_future(shell.exec(["/no/such"], agent=True))
        error = {"party": "candidate", "reason": "CannotStartProgram", "message": "no such file"}
        await fake.answer("start", ok=False, error=error)
        with pytest.raises(CandidateError):
            await refused
    running = asyncio.ensure_future(shell.exec(["rm", "-rf", "/"], agent=not acted))
    await fake.answer("start", session=1, pid=2)
    fake.close()
    yield running


async def test_after_an_action_of_the_agents_the_container_is_the_agents_to_keep_whole(scratch):
    async with dying(scratch, acted=True) as running:
        with pytest.raises(CandidateError, match="'shell' is gone"):
            await running


async def test_the_end_of_the_whole_pod_is_not_taken_for_the_agents(scratch):
    """A drain stops every container: the driver, which seals nothing then, must not have told of a killed sandbox."""
    async with dying(scratch, loss_grace=30.0) as running:
        done, _ = await asyncio.wait({running}, timeout=0.5)
        assert not done
        running.cancel()


@pytest.mark.parametrize(("agent", "error"), [(True, CandidateError), (False, EnvironmentFailure)])
async def test_a_container_that_dies_in_an_action_of_the_agents_is_the_agents(scratch, agent, error):
    path = scratch / "shim.sock"
    connecting = asyncio.ensure_future(Environment.connect("shell", str(path), 10, loss_grace=0.0))
    fake = await FakeShim.dial(path)
    shell = await connecting
    running = asyncio.ensure_future(shell.exec(["rm", "-rf", "/"], agent=agent))
    await fake.answer("start", session=1, pid=2)
    fake.close()
    with pytest.raises(error, match="'shell' is gone"):
        await running


async def test_a_container_that_died_before_the_agents_first_action_is_the_environments(scratch):
    """That action is the first to find out."""
    connecting = asyncio.ensure_future(Environment.connect("shell", str(scratch / "shim.sock"), 10, loss_grace=0.0))
    fake = await FakeShim.dial(scratch / "shim.sock")
    shell = await connecting
    fake.close()
    await asyncio.wait_for(shell._supervisor.lost.wait(), 10)
    with pytest.raises(EnvironmentFailure, match="'shell' is gone"):
        await shell.exec(["rm", "-rf", "/"], agent=True)


@pytest.mark.parametrize(("agent", "error"), [(True, CandidateError), (False, EnvironmentFailure)])
async def test_a_container_that_is_lost_with_a_running_program_is_the_agents_once_it_acted(scratch, agent, error):
    connecting = asyncio.ensure_future(Environment.connect("shell", str(scratch / "shim.sock"), 10, loss_grace=0.0))
    fake = await FakeShim.dial(scratch / "shim.sock")
    opening = asyncio.ensure_future((await connecting).open(["server"], agent=agent))
    await fake.answer("start", session=1, pid=2)
    server = await opening
    fake.close()
    with pytest.raises(error, match="'shell' is gone"):
        await server.receive(10)
    await server.close()


async def test_a_container_that_never_comes_is_the_environments(scratch):
    with pytest.raises(EnvironmentFailure, match=r"did not connect within 0\.2 s"):
        await Environment.connect("shell", str(scratch / "shim.sock"), 0.2)
