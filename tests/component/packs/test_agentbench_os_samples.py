"""A sample of agentbench-os from its preparation to its verdict, over two real shims that stand in for its containers.

The shims run on this machine, without a container around them, so these samples do no harm: all that they touch is in
the test's own folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.shim import shim

from casewarden_sdk.agentbench import Session
from casewarden_sdk.agentbench.sample import play_sample
from casewarden_sdk.contract import Case, Verdict
from casewarden_sdk.environment import Environment
from casewarden_tasks.agentbench_os import PACK, sandbox
from casewarden_tasks.agentbench_os.samples import samples_of
from casewarden_tasks.agentbench_os.task import OSInteraction

COMPARED = {"language": "python", "file": "check/integer-match.py"}


class Containers:
    """What a task needs of its runtime: the environment containers."""

    def __init__(self, found: dict[str, Environment]) -> None:
        self.found = found

    async def environment(self, name: str) -> Environment:
        return self.found[name]


@contextlib.asynccontextmanager
async def containers(scratch: Path) -> AsyncIterator[Containers]:
    async with contextlib.AsyncExitStack() as stack:
        found = {}
        for name in ("sandbox", "twin"):
            path = str(scratch / f"{name}.sock")
            process = await asyncio.create_subprocess_exec(
                str(shim()), "--local", "--dial", path, stdin=subprocess.DEVNULL, start_new_session=True
            )
            stack.push_async_callback(process.wait)
            found[name] = await Environment.connect(name, path, 20, loss_grace=0.0)
            stack.push_async_callback(found[name].close)
        yield Containers(found)


@pytest.fixture(autouse=True)
def watched(tmp_path, monkeypatch):
    """A folder of programs that stands in for the sandbox's own, with one in it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ls").write_text("#!/bin/sh\n")
    monkeypatch.setattr(sandbox, "WATCHED", (str(programs),))
    return programs


async def played(scratch: Path, row: dict[str, Any], replies: Sequence[str]) -> tuple[Verdict, dict[str, Any]]:
    """Play a sample against an agent that says these replies, and judge it."""
    (sample,) = samples_of("data/x.json", json.dumps(row), "x-", {}.get)
    case = Case(sample["id"], ("success",), {"id": sample["id"], "index": sample["id"], "sample": sample})
    left = iter(replies)

    async def ask(shown: Any) -> str:
        return next(left)

    async with containers(scratch) as runtime:
        session = Session(ask, case, runtime)  # type: ignore[arg-type]
        record = await play_sample(OSInteraction("os", [sample]), sample["id"], session, 10)
    return PACK.grade(case, record), record


def bash(command: str) -> str:
    return f"Think: so.\n\nAct: bash\n\n```bash\n{command}\n```"


def question(scratch: Path) -> dict[str, Any]:
    folder = scratch / "things"
    return {
        "description": "How many?",
        # The two containers share this machine's files, so each makes its own.
        "create": {"init": f"mkdir -p {folder} && touch {folder}/a {folder}/b"},
        "start": f"cd {folder}",
        "evaluation": {"check": [None, COMPARED], "example": f"ls {folder} | wc -l"},
    }


async def test_a_right_answer_passes_and_what_the_shell_wrote_was_shown(tmp_path):
    verdict, record = await played(tmp_path, question(tmp_path), [bash("ls | wc -l"), "Act: answer(2)"])
    assert verdict.passed, verdict
    assert record["output"]["result"] == {"result": True, "file": "data/x.json", "index_in_file": 0}
    history = [item["content"] for item in record["output"]["history"]]
    assert history[6].endswith("\n\nHow many?")
    assert history[8] == "The output of the OS:\n\n2\n"
    assert [step["where"] for step in record["facts"]["steps"]] == ["twin", "grader"]


@pytest.mark.parametrize(
    ("replies", "status", "reason", "told"),
    [
        (["Act: answer(3)"], "failed", None, "the answer is '3'; the reference is '2' (integer-match)"),
        (["Act: answer(It is 2.)"], "failed", None, "the answer is 'It is 2.'"),
        (["Act: finish"], "failed", None, "the answer is 'None'"),
        (["I give up"], "agent_error", "Protocol", "agent invalid action"),
        ([bash("exit")], "agent_error", "SandboxKilled", "the shell has ended: exit code 0"),
        ([bash("kill -9 $$")], "agent_error", "SandboxKilled", "the shell has ended: signal 9"),
        ([bash("true")] * 8, "failed", None, "task limit reached"),
    ],
)
async def test_what_is_wrong_is_told_and_who_did_it(tmp_path, replies, status, reason, told):
    verdict, _ = await played(tmp_path, question(tmp_path), replies)
    assert (verdict.status, verdict.reason) == (status, reason)
    assert told in (verdict.error or "")


async def test_bytes_that_are_no_text_end_nothing(tmp_path):
    verdict, record = await played(tmp_path, question(tmp_path), [bash("printf '\\xff\\xfe'"), "Act: answer(2)"])
    assert verdict.passed
    assert record["output"]["history"][8]["content"] == "The output of the OS:\n\n\ufffd\ufffd"


async def test_a_deed_is_checked_in_the_sandbox_and_a_replaced_program_is_seen(tmp_path, watched):
    row = {"description": "Make it.", "evaluation": {"check": f"test -e {tmp_path}/made && echo $1"}}
    undone, _ = await played(tmp_path, row, ["Act: finish"])
    assert (undone.status, undone.error) == ("failed", "check 0 ended with 1: ''")

    done, record = await played(tmp_path, row, [bash(f"touch {tmp_path}/made"), "Act: finish"])
    assert done.passed
    assert record["facts"]["steps"] == [{"where": "sandbox", "code": 0, "output": "None\n"}]
    assert done.metrics == {"replaced_programs": "0"}

    replaced, record = await played(tmp_path, row, [bash(f"echo 'echo 7' > {watched}/ls"), "Act: finish"])
    assert (replaced.status, record["facts"]["changed"]) == ("failed", [str(watched / "ls")])
    assert "programs of the sandbox were replaced" in (replaced.error or "")
    assert replaced.metrics == {"replaced_programs": "1"}


async def test_an_init_script_that_fails_is_the_environments(tmp_path):
    row = {**question(tmp_path), "create": {"init": ["true", "echo no room >&2; exit 4"]}}
    verdict, _ = await played(tmp_path, row, [])
    assert (verdict.status, verdict.reason) == ("environment_error", "EnvironmentFailed")
    assert "init script 1 of " in (verdict.error or "")
    assert "ended with 4: no room" in (verdict.error or "")


async def test_scripts_are_given_the_answer_and_what_was_said_before(tmp_path):
    scripts = [{"code": "print('py ' + __import__('sys').argv[1])", "language": "python"}, 'echo "sh $1 $2"']
    row = {"description": "Say.", "evaluation": {"check": scripts}}
    verdict, record = await played(tmp_path, row, ["Act: answer(42)"])
    assert verdict.passed
    assert [step["output"] for step in record["facts"]["steps"]] == ["py 42\n", "sh 42 py 42\n\n"]
