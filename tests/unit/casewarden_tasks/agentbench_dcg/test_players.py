"""What players see, the two baselines, and the witness."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_tasks.agentbench_dcg.baselines import BASELINES, Deducing, Opponent, Random
from casewarden_tasks.agentbench_dcg.engine import KINDS, Game, Guess, Move
from casewarden_tasks.agentbench_dcg.table import Seen, View, picture, view


def fish(position: int, kind: str | None, hp: int = 400, attack: int = 200, possible: tuple[str, ...] = KINDS) -> Seen:
    return Seen(position, hp, attack if kind else None, kind, (kind,) if kind else possible)


MINE = tuple(fish(position, kind) for position, kind in enumerate(KINDS))
UNKNOWN = tuple(fish(position, None) for position in range(4))


def deducing() -> Deducing:
    return Deducing(random.Random(1))


@given(seed=st.integers(0, 10**9), names=st.tuples(*[st.sampled_from(sorted(BASELINES))] * 2))
def test_baselines_play_by_the_rules_and_equal_dice_give_an_equal_game(seed: int, names: tuple[str, str]) -> None:
    def play() -> Game:
        draw = random.Random(seed)
        game = Game([draw.sample(KINDS, 4) for _ in range(2)])
        players: list[Opponent] = [BASELINES[name](random.Random(seed + n)) for n, name in enumerate(names)]
        while game.winner is None:
            player = game.turn
            game.guess(player, players[player].guess(view(game, player)))
            if game.winner is None:
                game.act(player, players[player].act(view(game, player)))
        return game

    first = play()
    assert first.ended == "defeat"
    assert first.replay == play().replay


@given(seed=st.integers(0, 10**9))
def test_what_a_fish_may_be_never_leaves_out_what_it_is(seed: int) -> None:
    draw = random.Random(seed)
    game = Game([draw.sample(KINDS, 4) for _ in range(2)])
    players = [Deducing(draw), Random(draw)]
    while game.winner is None:
        player = game.turn
        for enemy in view(game, player).enemy:
            assert game.sides[1 - player][enemy.position].kind in enemy.possible
        game.guess(player, players[player].guess(view(game, player)))
        if game.winner is None:
            game.act(player, players[player].act(view(game, player)))


def test_skills_and_passives_give_a_fish_away() -> None:
    game = Game([KINDS, KINDS])
    game.guess(0, Guess(0, "eel"))
    game.act(0, Move(0, "active", (0, 1, 2, 3)))
    game.guess(1, None)
    game.act(1, Move(2, "active", (0, 1, 2, 3)))
    seen = view(game, 0)
    assert [enemy.possible for enemy in seen.enemy] == [
        ("spray", "flame", "sunfish"),  # a wrong guess
        KINDS,
        ("eel",),  # deflects and hits all
        ("eel", "sunfish"),  # deflects
    ]
    assert seen.passives == ((2, "deflect"), (3, "deflect"))


def test_a_named_kind_is_no_other_fish() -> None:
    game = Game([KINDS, KINDS])
    game.guess(0, Guess(0, "spray"))
    assert view(game, 0).enemy[0].possible == ("spray",)
    assert "spray" not in view(game, 0).enemy[1].possible


def test_the_random_baseline_attacks_normally_in_three_actions_of_ten() -> None:
    player = Random(random.Random(3))
    seen = View(MINE, UNKNOWN)
    skills = Counter(player.act(seen).skill for _ in range(2000))
    assert 540 < skills["normal"] < 660


def test_the_random_baseline_says_nothing_where_its_dice_fall_on_a_named_fish() -> None:
    assert Random(random.Random(1)).guess(View(MINE, (fish(0, "spray"),))) is None


def test_the_random_baseline_attacks_with_a_last_fish_that_has_no_ally() -> None:
    player = Random(random.Random(1))
    assert {player.act(View((MINE[1],), UNKNOWN)).skill for _ in range(50)} == {"normal"}


def test_the_deducing_baseline_names_the_fish_that_it_knows_most_of() -> None:
    enemy = (fish(0, None), fish(1, None, possible=("flame",)), fish(2, None, possible=("eel", "sunfish")))
    assert deducing().guess(View(MINE, enemy)) == Guess(1, "flame")
    assert deducing().guess(View(MINE, (fish(0, "spray"),))) is None


def test_the_deducing_baseline_kills_where_it_can() -> None:
    enemy = (UNKNOWN[0], fish(1, None, hp=100), fish(2, None, hp=90))
    assert deducing().act(View(MINE, enemy)) == Move(0, "normal", (1,))


def test_it_counts_in_what_is_known_to_be_deflected() -> None:
    enemy = (UNKNOWN[0], fish(1, None, hp=100, possible=("eel", "sunfish")))
    assert deducing().act(View(MINE, enemy)).skill == "active"


def test_it_hits_all_with_the_stronger_of_spray_and_eel() -> None:
    assert deducing().act(View(MINE, UNKNOWN)) == Move(0, "active", (0, 1, 2, 3))
    raised = (*MINE[:2], fish(2, "eel", attack=240), MINE[3])
    assert deducing().act(View(raised, UNKNOWN)).actor == 2


def test_it_raises_an_attack_once_where_it_cannot_hit_all() -> None:
    mine = (fish(1, "flame"), fish(3, "sunfish", hp=300))
    assert deducing().act(View(mine, UNKNOWN)) == Move(1, "active", (3,))
    raised = (fish(1, "flame", attack=340), fish(3, "sunfish", attack=340, hp=300))
    assert deducing().act(View(raised, UNKNOWN)).skill == "normal"


def test_else_its_strongest_fish_strikes_who_acted_last() -> None:
    mine = (fish(1, "flame", attack=340, hp=70), fish(3, "sunfish", hp=60))
    action = {"move": {"actor": 2}}
    assert deducing().act(View(mine, UNKNOWN, enemy_action=action)) == Move(1, "normal", (2,))
    weak = replace(UNKNOWN[1], hp=390)
    assert deducing().act(View(mine, (UNKNOWN[0], weak), enemy_action=action)) == Move(1, "normal", (1,))


@pytest.mark.parametrize("share", [0, 1, 399, 400])
def test_the_picture_has_a_bar_for_each_fish(share: int) -> None:
    game = Game([KINDS, KINDS])
    game.sides[1][2].hp = share
    game.guess(0, Guess(0, "eel"))
    lines = picture(game.replay[-1], [KINDS, KINDS], ("agent", "baseline1")).splitlines()
    assert lines[0] == "step 3: agent, guess: eel at 0, wrong"
    assert (lines[1], lines[6]) == ("  agent", "  baseline1")
    assert (
        lines[9]
        == {
            0: "    2 eel     |                    | dead",
            1: "    2 eel     |#                   | hp   1  attack 200",
            399: "    2 eel     |####################| hp 399  attack 200",
            400: "    2 eel     |####################| hp 400  attack 200",
        }[share]
    )
