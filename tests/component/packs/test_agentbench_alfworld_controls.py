"""The controls over the pack's own driver, and the planner on every game."""

from __future__ import annotations

import pytest
from support.agentbench_controls import Controls

from casewarden_sdk.contract import Control
from casewarden_tasks.agentbench_alfworld import PACK
from casewarden_tasks.agentbench_alfworld.engine import Engine, own_document
from casewarden_tasks.agentbench_alfworld.own import KINDS, own_games

# The reference must win all; what is wrong with a fault shows in a game of every kind.
CONTROLS = Controls(PACK, few=len(KINDS))


def test_the_reference_wins_every_game() -> None:
    assert CONTROLS.statuses("reference") == {"passed"}
    assert CONTROLS.score("reference") == "1"


@pytest.mark.parametrize("name", ["null-agent", "crashing-agent"])
def test_doing_nothing_is_an_agent_error_everywhere_with_the_score_0(name: str) -> None:
    assert CONTROLS.statuses(name) == {"agent_error"}
    assert CONTROLS.score(name) == "0"


@pytest.mark.parametrize("fault", CONTROLS.faults, ids=lambda fault: fault.name)
def test_a_fault_is_caught_in_its_target_and_breaks_what_it_declares_and_nothing_else(fault: Control) -> None:
    assert CONTROLS.failed(fault.name) == {fault.target, *fault.collateral}
    assert all(one.verdict.status == "agent_error" for one in CONTROLS.played(fault.name)) == fault.protocol_fault


@pytest.mark.parametrize("number", range(len(own_games())))
def test_the_planner_finds_a_way_through_every_game_no_longer_than_ours(number: int) -> None:
    game = own_games()[number]
    engine = Engine(own_document(game.problem, game.task), policy=True)
    way = engine.policy
    assert 0 < len(way) <= len(game.way)
    assert [engine.step(command).won for command in way][-1]
