"""evalarc's own programs, unmodified, get here exactly what evalarc gives them: in local runs, end to end.

Driver, recorder and shim are those of a case pod; the cluster's own tests run the same programs in real pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from support import evalarc
from support.candidates import CRASHES

from casewarden.api.evalrun import EvalRun
from casewarden.local.run import LocalResult, Options, run_evalrun
from casewarden.selftest.table import load
from casewarden_sdk.canonical import sha256_json
from casewarden_sdk.workspace import digest_workspace, workspace_of

SEEDS = [17, 41, 97]
every_task = pytest.mark.parametrize("task", evalarc.TASKS)
Run = Callable[..., LocalResult]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run_locally(
        task: str, files: Mapping[str, str], seeds: list[int] | None = None, parallelism: int = 4
    ) -> LocalResult:
        manifest: dict[str, Any] = {
            "apiVersion": "casewarden.dev/v1alpha1",
            "kind": "EvalRun",
            "metadata": {"name": "peer"},
            "spec": {
                "task": {"name": task},
                "seeds": {"values": seeds or [evalarc.SEED]},
                "candidate": {"program": {"workspace": {"configMap": "peer"}}},
                "parallelism": parallelism,
            },
        }
        workspace = workspace_of((name, text.encode()) for name, text in files.items())
        return asyncio.run(run_evalrun(EvalRun.model_validate(manifest), Options(out=tmp_path, workspace=workspace)))

    return run_locally


def failing(result: LocalResult, dimension: str) -> tuple[str, ...]:
    """Return the ids of the cases whose check of ``dimension`` is false."""
    assert result.plan is not None
    dimensions = {case.id: sorted(case.dimensions) for case in result.plan.cases}
    found = {
        row.key.case.case_id
        for row in result.rows
        if dict(zip(dimensions[row.key.case.case_id], row.checks, strict=True)).get(dimension) == "0"
    }
    return tuple(sorted(found))


@every_task
def test_the_reference_resolves_every_case_of_three_seeds(task: str, run: Run) -> None:
    status = run(task, evalarc.programs(task)["reference"].files, SEEDS).status
    assert (status["score"], status["resolved"], status["valid"]) == ("1", True, True)
    assert status["attempts"]["environmentRetries"] == 0


@pytest.mark.parametrize(("task", "name"), [(task, name) for task in evalarc.TASKS for name in evalarc.names(task)[1:]])
def test_a_fault_program_gets_evalarcs_score_and_fails_evalarcs_cases(task: str, name: str, run: Run) -> None:
    program = evalarc.programs(task)[name]
    result = run(task, program.files)
    assert program.target is not None
    got = (Decimal(result.status["score"]), failing(result, program.target))
    assert got == (program.score, program.failing)


def test_there_are_eight_and_seven_faults() -> None:
    assert [len(evalarc.names(task)) - 1 for task in evalarc.TASKS] == [8, 7]


@every_task
def test_a_folder_and_the_cases_have_the_digests_that_evalarc_gives_them(task: str, run: Run, tmp_path: Path) -> None:
    program = evalarc.programs(task)["reference"]
    folder = evalarc.write(program, tmp_path / "candidate")
    files = workspace_of((path.name, path.read_bytes()) for path in folder.iterdir())
    assert digest_workspace(files) == program.digest
    status = run(task, program.files, [evalarc.SEED]).status
    assert status["fingerprints"]["cases"] == sha256_json(evalarc.cases(task, [evalarc.SEED]))


@pytest.mark.parametrize(
    ("task", "program", "score", "counts"),
    [
        ("support-routing", evalarc.DO_NOTHING, "0.35", {"failed": 4, "agentErrors": 0}),
        ("support-routing", CRASHES, "0.25", {"failed": 0, "agentErrors": 4}),
        ("durable-kv", evalarc.DO_NOTHING, "0", {"failed": 15, "agentErrors": 0}),
        ("durable-kv", "", "0", {"failed": 0, "agentErrors": 15}),
        ("durable-kv", CRASHES, "0", {"failed": 0, "agentErrors": 15}),
    ],
    ids=["support-does-nothing", "support-crashes", "kv-answers-nonsense", "kv-does-nothing", "kv-crashes"],
)
def test_doing_nothing_and_crashing_score_what_they_are_worth(
    task: str, program: str, score: str, counts: dict[str, int], run: Run
) -> None:
    status = run(task, {"main.py": program}).status
    assert (status["score"], {name: status["cases"][name] for name in counts}) == (score, counts)


def test_a_daemon_that_keeps_the_data_in_memory_scores_what_memory_only_scores(run: Run) -> None:
    # On one machine the cases share abstract sockets, so they go one by one.
    keeper = next(program for program in load() if program.name == "keeps-a-daemon")
    daemon = run("durable-kv", {"main.py": keeper.source}, parallelism=1)
    memory_only = evalarc.programs("durable-kv")["memory-only"]
    assert (Decimal(daemon.status["score"]), failing(daemon, "persistence")) == (memory_only.score, memory_only.failing)


@every_task
def test_a_program_that_writes_its_own_score_gets_the_one_that_it_earned(task: str, run: Run) -> None:
    boast = """\
import json, sys
for path in ("verdict.json", "../message", "../verdict.json", "sealed.json"):
    try:
        open(path, "w").write(json.dumps({"status": "passed", "checks": "11111", "score": 1}))
    except OSError:
        pass
print(json.dumps({"passed": True, "score": 1}), file=sys.stderr)
for line in sys.stdin:
    print(json.dumps({"finish": True, "message": "score: 1.0"}), flush=True)
"""
    assert run(task, {"main.py": boast}).status["score"] == ("0.35" if task == "support-routing" else "0")
