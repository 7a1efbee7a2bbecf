"""Which games are dealt."""

from __future__ import annotations

from typing import Any

import pytest

from casewarden_sdk.errors import ContractError
from casewarden_tasks.agentbench_dcg import PACK
from casewarden_tasks.agentbench_dcg.engine import KINDS
from casewarden_tasks.agentbench_dcg.games import witness_wins


def contents(seed: int, **params: Any) -> list[Any]:
    return [case.content for case in PACK.cases(seed, params)]


def test_there_are_five_games_against_each_baseline_from_each_side_in_agentbench_s_order() -> None:
    games = contents(17)
    assert [(game["index"], game["opponent"]["name"], game["seat"]) for game in games] == [
        (index, name, seat)
        for index, (name, seat) in enumerate(
            (name, seat) for name in ("baseline1", "baseline2") for seat in (0, 1) for _ in range(5)
        )
    ]
    assert games[19]["title"] == "baseline2, second, 5"


@pytest.mark.parametrize(
    ("params", "games"), [({"test_time": 1}, 4), ({"split": "dev"}, 12), ({"split": "std", "test_time": 2}, 8)]
)
def test_test_time_is_the_number_of_copies_and_a_split_is_one(params: dict[str, Any], games: int) -> None:
    assert len(contents(17, **params)) == games


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_every_game_can_be_won_and_has_its_own_dice(seed: int) -> None:
    games = contents(seed)
    assert all(witness_wins(game) for game in games)
    assert len({game["opponent"]["seed"] for game in games}) == len(games)


def test_a_seed_has_its_own_games_and_always_the_same() -> None:
    assert contents(1, test_time=1) == contents(1, test_time=1)
    assert contents(1, test_time=1)[0]["line_ups"] != contents(2, test_time=1)[0]["line_ups"]


def test_who_stands_where_is_drawn() -> None:
    line_ups = {tuple(line_up) for game in contents(17) for line_up in game["line_ups"]}
    assert len(line_ups) > 10


def test_v0_2_deals_one_order_of_fish_and_any_dice() -> None:
    games = contents(17, compat="v0.2", test_time=20)
    assert {tuple(line_up) for game in games for line_up in game["line_ups"]} == {KINDS}
    assert {game["compat"] for game in games} == {True}
    # Even a player that may use every skill cannot win some of these.
    assert not all(witness_wins({**game, "compat": False}) for game in games)


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"test_time": 0}, "spec.task.params.test_time is 0; give a whole number from 1 to 50"),
        ({"test_time": True}, "spec.task.params.test_time is True; give a whole number from 1 to 50"),
        ({"test_time": "3"}, "spec.task.params.test_time is '3'; give a whole number from 1 to 50"),
        ({"split": "train"}, "spec.task.params.split is 'train'; give one of dev, std"),
        ({"compat": "v0.1"}, "spec.task.params.compat is 'v0.1'; give 'v0.2', or leave it out"),
    ],
)
def test_bad_parameters_are_refused_with_the_cure(params: dict[str, Any], told: str) -> None:
    with pytest.raises(ContractError) as refused:
        PACK.cases(17, params)
    assert str(refused.value) == told
