"""The controls over the pack's own driver, and the figures of AgentBench."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from casewarden_sdk.agentbench import SampleStatus, TaskOutput
from casewarden_sdk.contract import Control
from casewarden_sdk.testing import Played, play
from casewarden_tasks.agentbench_dcg import PACK
from casewarden_tasks.agentbench_dcg.task import CardGame

CASES = PACK.cases(17, {})
PAGE = Path(__file__).resolve().parents[3] / "docs" / "packs" / "agentbench-dcg.md"
FAULTS = [control for control in PACK.controls if control.kind == "fault"]


@functools.cache
def played(name: str) -> tuple[Played, ...]:
    control = next(control for control in PACK.controls if control.name == name)
    return tuple(play(PACK, case, control, seed=17) for case in CASES)


def failed(control: Control) -> set[str]:
    return {name for one in played(control.name) for name, right in one.verdict.checks.items() if not right}


def statuses(name: str) -> set[tuple[str, str | None, str]]:
    return {(one.verdict.status, one.verdict.reason, one.record["output"]["status"]) for one in played(name)}


def aggregated(name: str) -> Any:
    rows = [
        {"seed": 17, "repeat": 0, "params": {}, "index": case.content["index"],
         "status": one.verdict.status, "output": one.record["output"]}
        for case, one in zip(CASES, played(name), strict=True)
    ]  # fmt: skip
    return PACK.aggregate(rows)


def test_the_reference_resolves_every_case_with_the_score_1() -> None:
    assert statuses("reference") == {("passed", None, "completed")}
    assert aggregated("reference")["score"] == "1"
    assert aggregated("reference")["overall"]["custom"] == {
        "win_round": 20, "total_round": 20, "win_rate": 1.0, "damage_rate": 1.0, "score": 1.0,
    }  # fmt: skip


def test_the_null_agent_wins_nothing_and_does_no_damage_of_its_own() -> None:
    assert statuses("null-agent") == {("agent_error", "Protocol", "agent validation failed")}
    assert not any(right for one in played("null-agent") for right in one.verdict.checks.values())
    assert float(aggregated("null-agent")["score"]) < 0.01  # a baseline may hurt its own fish


def test_the_crashing_agent_is_an_agent_error_everywhere() -> None:
    assert {one.verdict.status for one in played("crashing-agent")} == {"agent_error"}
    assert float(aggregated("crashing-agent")["score"]) < 0.01


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_caught_in_its_target_and_breaks_what_it_declares_and_nothing_else(fault: Control) -> None:
    assert failed(fault) == {fault.target, *fault.collateral}
    broken = any(one.verdict.status == "agent_error" for one in played(fault.name))
    assert broken == fault.protocol_fault


def test_the_page_for_users_lists_every_control_with_its_detecting_cases_and_its_score() -> None:
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in PAGE.read_text().splitlines()]
    told = {row[0]: (row[3], row[4]) for row in rows if row[0] in {control.name for control in PACK.controls}}
    seen = {}
    for control in PACK.controls:
        caught = sum(one.verdict.checks.get(control.target or "") is False for one in played(control.name))
        detected = {"reference": "–", "fault": str(caught)}.get(control.kind, "all")
        seen[control.name] = (detected, aggregated(control.name)["score"])
    assert told == seen


def test_the_last_table_is_kept_as_a_picture() -> None:
    (name, picture), *_ = played("reference")[0].notes
    assert name == "table"
    assert "baseline1" in picture
    assert picture.count("dead") >= 4


def result(win: int, damage: int) -> TaskOutput:
    return TaskOutput(0, SampleStatus.COMPLETED, {"meta": {"win_round": win, "damage": damage}}, [])


NO_GAME = TaskOutput(1, SampleStatus.UNKNOWN, None, [])


@pytest.mark.parametrize(
    ("compat", "results", "told"),
    [
        (False, [result(1, 1600), result(0, 800)], (1, 2, 0.5, 0.75, 0.575)),
        (False, [result(1, 1600), NO_GAME], (1, 2, 0.5, 0.5, 0.5)),
        (True, [result(1, 1600), NO_GAME], (1, 1, 1.0, 0.5, 0.85)),
        (False, [NO_GAME], (0, 1, 0.0, 0.0, 0.0)),
        (True, [NO_GAME], (0, 0, 0.0, 0.0, 0.0)),
    ],
)
def test_a_sample_without_a_game_is_lost_and_v0_2_leaves_it_out_of_the_win_rate(
    compat: bool, results: list[TaskOutput], told: tuple[float, ...]
) -> None:
    assert tuple(CardGame(0, 1, compat).calculate_overall(results).values()) == pytest.approx(told)
