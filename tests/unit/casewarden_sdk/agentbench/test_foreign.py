"""A user's own task file, unchanged: found under AgentBench's names, played in a thread, refused where of v0.1."""

import asyncio
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from casewarden_sdk.agentbench import (
    SampleStatus,
    Session,
    Task,
    TaskPack,
    TaskSampleExecutionResult,
    install_aliases,
    task_pack,
)
from casewarden_sdk.agentbench.sample import play_sample
from casewarden_sdk.errors import CandidateError, ContractError
from casewarden_sdk.plan import build_plan
from casewarden_sdk.testing import play

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "agentbench-task"
YES = (
    "import json, sys\nfor line in sys.stdin: print(json.dumps({'role': 'assistant', 'content': 'yes'}), flush=True)\n"
)


@pytest.fixture
def virtual(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    return importlib.import_module("virtual_pack").PACK


def test_the_document_s_own_example_is_a_pack(virtual):
    plan = build_plan(virtual, [0], {})
    assert [case["id"] for case in plan["cases"]] == [str(number) for number in range(10)]
    result = play(virtual, virtual.cases(0, {})[3], {"main.py": YES})
    assert result.verdict.passed
    assert result.record["output"]["result"] == {"result": "ok"}
    contents = [item["content"] for item in result.record["output"]["history"]]
    assert contents == ["Loop: 0", "yes", "Loop: 1", "yes", "Loop: 2", "yes"]
    row = {"seed": 0, "repeat": 0, "params": {}, "index": 3, "status": "passed", "output": result.record["output"]}
    assert virtual.aggregate([row])["score"] == "0.4"


def test_what_a_task_prints_does_not_get_among_the_lines_of_a_verb(tmp_path):
    script = "import sys; sys.path.insert(0, sys.argv[1])\nfrom casewarden_sdk.__main__ import main\nmain(sys.argv[2:])"
    done = subprocess.run(
        [sys.executable, "-c", script, str(EXAMPLE), "virtual_pack:PACK", "aggregate"],
        input='{"seed": 0, "repeat": 0, "params": {}, "index": 0, "status": "passed", "output": null}\n',
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith('{"overall": {"custom": {"score": 0.4}')


class Blocking(Task):
    """Holds its thread up."""

    def __init__(self, seconds=0.05):
        super().__init__("blocking")
        self.seconds = seconds

    def get_indices(self):
        return [0]

    async def start_sample(self, index, session):
        await session.action({"role": "user", "content": "one"})
        session.history[0].content = "edited"
        session.history = [*session.history[:2]]
        time.sleep(self.seconds)
        return TaskSampleExecutionResult(SampleStatus.COMPLETED, {})

    def calculate_overall(self, results):
        return {"score": 1}


def test_a_task_that_holds_its_loop_up_runs_in_a_thread_with_the_same_history():
    pack = TaskPack(Blocking, {}, lambda output: True)
    pack.id = "blocking"
    result = play(pack, pack.cases(0, {})[0], {"main.py": YES})
    assert result.verdict.passed
    assert result.record["output"]["history"][0]["content"] == "edited"


def test_one_that_never_lets_go_is_left_behind():
    async def scenario():
        async def ask(_):
            return "yes"

        session = Session(ask)
        asyncio.get_running_loop().call_later(0.2, session.cancel, CandidateError("TimeLimit", "over"))
        return await play_sample(Blocking(3), 0, session, 0.1, threaded=True)

    record = asyncio.run(scenario())
    assert (record["ended"], record["cause"]["reason"]) == ("forced", "TimeLimit")


def test_parameters_that_a_task_does_not_take_are_refused():
    pack = TaskPack(Blocking, {}, lambda output: True)
    with pytest.raises(ContractError, match=r"spec\.task\.params: Blocking does not take them"):
        pack.task({"rounds": 3}, 0)


def test_a_task_of_v01_says_what_becomes_what():
    with pytest.raises(ContractError, match="predict_single becomes async start_sample") as caught:
        type("Old", (Task,), {"get_data": lambda self: [], "predict_single": lambda self, session, item: None})
    assert "docs/agentbench.md" in str(caught.value)
    assert "get_data becomes get_indices" in str(caught.value)


def test_an_import_of_v01_says_it_too(monkeypatch):
    install_aliases()
    with pytest.raises(ContractError, match=r"imports src\.task is a task of AgentBench v0\.1"):
        importlib.import_module("src.task")


def test_the_user_of_a_run_hears_it_where_its_plan_is_refused(tmp_path):
    (tmp_path / "old_task.py").write_text(
        "from casewarden_sdk.agentbench import Task\n"
        "class Old(Task):\n"
        "    def predict_single(self, session, item):\n        return None\n"
    )
    message = tmp_path / "message"
    done = subprocess.run(
        [sys.executable, "-m", "casewarden_sdk", "old_task:PACK", "plan"],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "CASEWARDEN_TERMINATION_LOG": str(message)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "predict_single becomes async start_sample" in json.loads(message.read_text())["error"]


def test_a_metrics_of_one_s_own_is_no_sign_of_v01():
    assert type("New", (Task,), {"metrics": {}, "start_sample": lambda self, index, session: None})


def test_what_is_named_must_be_a_task():
    with pytest.raises(ContractError, match="name a subclass of AgentBench's Task"):
        task_pack("json:JSONDecoder", id="x", score="score")
