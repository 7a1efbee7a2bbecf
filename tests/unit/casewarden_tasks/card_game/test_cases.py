"""Which games are dealt."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from casewarden_sdk.errors import ContractError
from casewarden_tasks.card_game.cases import _witness_wins, generate
from casewarden_tasks.card_game.engine import KINDS


def test_there_are_five_games_against_each_baseline_from_each_side() -> None:
    cases = generate(17, {})
    assert Counter((case.content["opponent"]["name"], case.content["seat"]) for case in cases) == {
        ("baseline1", 0): 5, ("baseline1", 1): 5, ("baseline2", 0): 5, ("baseline2", 1): 5,
    }  # fmt: skip
    assert [case.id for case in cases][:6] == [*(f"baseline1-first-{n}" for n in range(1, 6)), "baseline1-second-1"]


def test_test_time_is_the_number_of_copies_as_in_agentbench() -> None:
    assert len(generate(17, {"testTime": 3})) == 12


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_game_can_be_won_and_has_its_own_dice(seed: int) -> None:
    cases = generate(seed, {})
    assert all(_witness_wins(case.content) for case in cases)
    assert len({case.content["opponent"]["seed"] for case in cases}) == len(cases)


def test_who_stands_where_is_drawn() -> None:
    line_ups = {tuple(line_up) for case in generate(17, {}) for line_up in case.content["line_ups"]}
    assert len(line_ups) > 10


def test_v0_2_deals_one_order_of_fish_and_any_dice() -> None:
    cases = generate(17, {"compat": "v0.2", "testTime": 20})
    assert {tuple(line_up) for case in cases for line_up in case.content["line_ups"]} == {KINDS}
    assert {case.content["compat"] for case in cases} == {True}
    # The witness alone plays differently: it may use every skill. Some of these games even it cannot win.
    assert not all(_witness_wins({**case.content, "compat": False}) for case in cases)


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"testTime": 0}, "spec.task.params.testTime is 0; give a whole number from 1 to 50"),
        ({"testTime": True}, "spec.task.params.testTime is True; give a whole number from 1 to 50"),
        ({"testTime": "3"}, "spec.task.params.testTime is '3'; give a whole number from 1 to 50"),
        ({"compat": "v0.1"}, "spec.task.params.compat is 'v0.1'; give 'v0.2', or leave it out"),
        ({"rounds": 3}, "spec.task.params.rounds: card-game has the parameters compat and testTime only; remove it"),
    ],
)
def test_bad_parameters_are_refused_with_the_cure(params: dict[str, Any], told: str) -> None:
    with pytest.raises(ContractError) as refused:
        generate(17, params)
    assert str(refused.value) == told
