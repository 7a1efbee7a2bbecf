"""evalarc's own programs, unmodified, score here exactly what evalarc gives them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pytest
from support import evalarc

from casewarden.core.scoring import CaseResult, weighted_dimensions
from casewarden_sdk.contract import AGENT_ERROR, FAILED, Pack, Verdict, check_bits
from casewarden_sdk.testing import play
from casewarden_tasks import durable_kv, support_routing

PACKS: Mapping[str, Pack] = {"durable-kv": durable_kv.PACK, "support-routing": support_routing.PACK}
SEEDS = (17, 41, 97)
every_task = pytest.mark.parametrize("task", evalarc.TASKS)


def verdicts(task: str, program: Mapping[str, str] | Path, seed: int = evalarc.SEED) -> list[Verdict]:
    pack = PACKS[task]
    return [play(pack, case, program, seed=seed).verdict for case in pack.cases(seed, {})]


def score(task: str, judged: list[Verdict]) -> Decimal:
    weights = {dimension: Decimal(weight) for dimension, weight in PACKS[task].dimensions.items()}
    results = [CaseResult(tuple(verdict.checks), verdict.status, check_bits(verdict.checks)) for verdict in judged]
    return Decimal(weighted_dimensions(weights, results).score or "NaN")


@every_task
@pytest.mark.parametrize("seed", SEEDS)
def test_the_reference_resolves_every_case(task: str, seed: int, tmp_path: Path) -> None:
    folder = evalarc.write(evalarc.programs(task)["reference"], tmp_path / "reference")
    assert [verdict.to_json() for verdict in verdicts(task, folder, seed) if not verdict.passed] == []


@pytest.mark.parametrize(("task", "name"), [(task, name) for task in evalarc.TASKS for name in evalarc.names(task)[1:]])
def test_a_fault_program_gets_evalarcs_score_and_fails_evalarcs_cases(task: str, name: str, tmp_path: Path) -> None:
    program = evalarc.programs(task)[name]
    judged = verdicts(task, evalarc.write(program, tmp_path / name))
    assert program.target is not None
    failing = sorted(verdict.case_id for verdict in judged if verdict.checks.get(program.target) is False)
    assert (score(task, judged), tuple(failing)) == (program.score, program.failing)


def test_there_are_eight_and_seven_faults() -> None:
    assert [len(evalarc.names(task)) - 1 for task in evalarc.TASKS] == [8, 7]


@pytest.mark.parametrize(
    ("task", "program", "expected", "status"),
    [
        ("support-routing", evalarc.DO_NOTHING, "0.35", FAILED),
        ("support-routing", "raise SystemExit('no agent here')", "0.25", AGENT_ERROR),
        ("durable-kv", evalarc.DO_NOTHING, "0", FAILED),
        ("durable-kv", "", "0", AGENT_ERROR),
        ("durable-kv", "raise SystemExit('no agent here')", "0", AGENT_ERROR),
    ],
    ids=["support-does-nothing", "support-crashes", "kv-answers-nonsense", "kv-does-nothing", "kv-crashes"],
)
def test_doing_nothing_and_crashing_score_what_they_are_worth(
    task: str, program: str, expected: str, status: str
) -> None:
    judged = verdicts(task, {"main.py": program})
    assert score(task, judged) == Decimal(expected)
    assert {verdict.status for verdict in judged} == {status}


@every_task
def test_a_program_that_writes_its_own_score_gets_the_one_that_it_earned(task: str) -> None:
    boast = """\
import json, os, sys
for path in ("verdict.json", "/tmp/casewarden-verdict.json", "/dev/termination-log"):
    try:
        open(path, "w").write(json.dumps({"status": "passed", "score": 1}))
    except OSError:
        pass
print(json.dumps({"passed": True, "score": 1}), file=sys.stderr)
for line in sys.stdin:
    print(json.dumps({"finish": True, "message": "score: 1.0"}), flush=True)
"""
    assert score(task, verdicts(task, {"main.py": boast})) == Decimal("0.35" if task == "support-routing" else "0")
