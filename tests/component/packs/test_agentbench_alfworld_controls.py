"""The controls over the pack's own driver, and the planner on every game."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from casewarden_sdk.contract import Control
from casewarden_sdk.testing import Played, play
from casewarden_tasks.agentbench_alfworld import PACK
from casewarden_tasks.agentbench_alfworld.engine import Engine, own_document
from casewarden_tasks.agentbench_alfworld.own import KINDS, own_games

FAULTS = [control for control in PACK.controls if control.kind == "fault"]


@functools.cache
def played(name: str) -> tuple[Played, ...]:
    control = next(control for control in PACK.controls if control.name == name)
    cases = PACK.cases(0, {})
    # The reference must win all; what is wrong with a fault shows in a game of every kind.
    return tuple(play(PACK, case, control, seed=0) for case in (cases if name == "reference" else cases[: len(KINDS)]))


def failed(control: Control) -> set[str]:
    return {name for one in played(control.name) for name, right in one.verdict.checks.items() if not right}


def score(name: str) -> Any:
    rows = [
        {"seed": 0, "repeat": 0, "params": {}, "index": number, "status": one.verdict.status,
         "output": one.record["output"] if one.record else None}
        for number, one in enumerate(played(name))
    ]  # fmt: skip
    return PACK.aggregate(rows)["score"]


def test_the_reference_wins_every_game() -> None:
    assert {one.verdict.status for one in played("reference")} == {"passed"}
    assert score("reference") == "1"


@pytest.mark.parametrize("name", ["null-agent", "crashing-agent"])
def test_doing_nothing_is_an_agent_error_everywhere_with_the_score_0(name: str) -> None:
    assert {one.verdict.status for one in played(name)} == {"agent_error"}
    assert score(name) == "0"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_caught_in_its_target_and_breaks_what_it_declares_and_nothing_else(fault: Control) -> None:
    assert failed(fault) == {fault.target, *fault.collateral}
    assert all(one.verdict.status == "agent_error" for one in played(fault.name)) == fault.protocol_fault


@pytest.mark.parametrize("number", range(len(own_games())))
def test_the_planner_finds_a_way_through_every_game_no_longer_than_ours(number: int) -> None:
    game = own_games()[number]
    engine = Engine(own_document(game.problem, game.task), policy=True)
    way = engine.policy
    assert 0 < len(way) <= len(game.way)
    assert [engine.step(command).won for command in way][-1]
