"""The 20 dev puzzles of AgentBench, played by a reference made of their own answer keys, with a scripted judge.

Written down before they were first run: every puzzle can be solved. No question of the reference is shorter than the
part that it asks for, and none is like the story (at most 0.81, where 0.85 is refused). Under v0.2's rule of the end
each game ends when half of its parts are found, so progress is that of half the parts, rounded up.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import pytest
from support.agentbench_data import DATA
from support.fake_models import puzzle_judge

from casewarden_sdk.contract import Case
from casewarden_sdk.testing import play
from casewarden_tasks.agentbench_ltp import PACK
from casewarden_tasks.agentbench_ltp.planted import reference
from casewarden_tasks.agentbench_ltp.puzzles import Puzzle

PARAMS = {"dataset": "agentbench", "split": "dev"}


@pytest.fixture(autouse=True)
def _data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CASEWARDEN_DATASETS", json.dumps({"agentbench": {"path": str(DATA)}}))


def progress(cases: Sequence[Case]) -> list[float]:
    puzzles = [Puzzle.from_json(case.content["puzzle"]) for case in cases]
    program = {"main.py": reference(puzzles)}
    return [
        float(
            play(PACK, case, program, models={"judge": lambda body: puzzle_judge(body["messages"])}).verdict.metrics[
                "progress"
            ]
        )
        for case in cases
    ]


def test_the_reference_solves_all_twenty() -> None:
    cases = PACK.cases(0, PARAMS)
    assert len(cases) == 20
    assert progress(cases) == [1.0] * 20


def test_v0_2_ends_each_game_at_half_of_its_parts() -> None:
    cases = PACK.cases(0, {**PARAMS, "compat": "v0.2"})
    parts = [len(case.content["puzzle"]["answer_keys"]) for case in cases]
    assert progress(cases) == pytest.approx([math.ceil(number / 2) / number for number in parts])
