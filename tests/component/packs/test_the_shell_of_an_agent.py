"""The shell that an agent of agentbench-os is given, over the real shim: what it keeps, and whose fault its end is."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.shim import shim

from casewarden_sdk.environment import Environment
from casewarden_sdk.errors import CandidateError
from casewarden_tasks.agentbench_os import shell as shells
from casewarden_tasks.agentbench_os.shell import Shell


@contextlib.asynccontextmanager
async def shell(scratch: Path) -> AsyncIterator[Shell]:
    path = str(scratch / "shim.sock")
    process = await asyncio.create_subprocess_exec(
        str(shim()), "--local", "--dial", path, stdin=subprocess.DEVNULL, start_new_session=True
    )
    sandbox = await Environment.connect("sandbox", path, 20, loss_grace=0.0)
    try:
        started = await Shell.start(sandbox)
        sandbox.acts()
        yield started
        await started.close()
    finally:
        await sandbox.close()
        assert await asyncio.wait_for(process.wait(), 10) == 0


async def said(started: Shell, *commands: str) -> list[bytes]:
    return [await started.run(command) for command in commands]


async def test_folders_variables_functions_and_the_last_exit_code_are_kept(tmp_path):
    async with shell(tmp_path) as started:
        assert await said(started, "cd /usr", "pwd", "a=3; f() { echo $a$1; }", "f 4", "false", "echo $?", "") == [
            b"", b"/usr\n", b"", b"34\n", b"", b"1\n", b"",
        ]  # fmt: skip


async def test_output_comes_as_it_was_written_both_streams_in_order_and_bytes_that_are_no_text_too(tmp_path):
    async with shell(tmp_path) as started:
        both, bytes_ = await said(started, "printf a; printf b >&2; printf c", "printf '\\xff\\n'")
        assert (both, bytes_) == (b"abc", b"\xff\n")
        assert b"no-such-thing" in await started.run("no-such-thing")
        assert await started.run("yes | head -1") == b"y\n"


async def test_what_is_no_whole_command_is_told_by_the_shell_and_many_lines_are_carried_out_in_order(tmp_path):
    async with shell(tmp_path) as started:
        assert b"syntax error" in await started.run("if then")
        assert await started.run("for n in 1 2\ndo\n  echo $n\ndone\necho end") == b"1\n2\nend\n"
        assert await started.run("cat <<END\nin\nEND") == b"in\n"
        assert len(await started.run("seq 100000")) == 1 << 16, "more than can ever be shown is not kept"


async def test_a_shell_in_the_shell_takes_the_commands_until_it_exits(tmp_path):
    async with shell(tmp_path) as started:
        assert await said(started, "cd /usr; in=no", "/bin/bash", "cd /; in=yes; pwd", "exit", "pwd; echo $in") == [
            b"", b"", b"/\n", b"", b"/usr\nno\n",
        ]  # fmt: skip


async def test_a_background_program_goes_on_and_its_output_comes_later(tmp_path):
    async with shell(tmp_path) as started:
        file = tmp_path / "go"
        first = await started.run(f"(until test -e {file}; do sleep 0.02; done; echo late) & echo now")
        second = await started.run(f"touch {file}; wait; echo end")
        assert first.endswith(b"now\n")
        assert b"late\n" in second


async def test_a_command_that_is_silent_is_left_to_itself_and_what_it_says_comes_with_the_next(tmp_path):
    async with shell(tmp_path) as started:
        file = tmp_path / "go"
        first = await started.run(f"echo a; until test -e {file}; do sleep 0.02; done; echo b", silence=0.3)
        file.touch()
        second = await started.run("echo c", silence=20)
        assert b"b" not in first
        assert first + second == b"a\nb\nc\n", "with no trace of how the end of a command is told"


async def test_a_command_that_never_is_silent_is_cut_off(tmp_path, monkeypatch):
    async with shell(tmp_path) as started:
        monkeypatch.setattr(shells, "PATIENCE", 1.0)
        await started.run("while true; do echo tick; sleep 0.05; done")
        assert b"tick\n" in await started.run("")


@pytest.mark.parametrize("command", ["exit 3", "kill -9 $$", "exec true"])
async def test_an_ended_shell_is_the_agents_doing(tmp_path, command):
    async with shell(tmp_path) as started:
        with pytest.raises(CandidateError, match="SandboxKilled: the shell has ended"):
            await started.run(command)


async def test_a_flood_is_the_agents_doing_and_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(shells, "_OUTPUT", 100_000)
    async with shell(tmp_path) as started:
        with pytest.raises(CandidateError, match="OutputLimit"):
            await started.run("yes")


async def test_a_program_that_reads_what_was_meant_for_the_shell_is_all_that_is_heard(tmp_path):
    async with shell(tmp_path) as started:
        told = [await started.run(text, silence=1) for text in ("cat", "no-such-thing")]
        assert b"command not found" not in b"".join(told)
