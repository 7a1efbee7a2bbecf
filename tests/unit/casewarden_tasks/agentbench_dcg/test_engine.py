"""The rules of Aquawar, by turns worked out by hand and by properties of any game."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_tasks.agentbench_dcg.engine import ALLY_SKILL, KINDS, Game, Guess, IllegalMove, Move

SPRAY, FLAME, EEL, SUNFISH = range(4)
ALL = (0, 1, 2, 3)


def new_game(steps: int = 128) -> Game:
    return Game([KINDS, KINDS], steps)


def hp(game: Game, player: int) -> list[int]:
    return [fish.hp for fish in game.sides[player]]


def attacks(game: Game, player: int) -> list[int]:
    return [fish.attack for fish in game.sides[player]]


def acted(game: Game, *move: object) -> Game:
    """Let the player whose turn it is guess nothing and move."""
    game.guess(game.turn, None)
    game.act(game.turn, Move(*move))  # type: ignore[arg-type]
    return game


def test_a_normal_attack_takes_half_of_the_attack() -> None:
    assert hp(acted(new_game(), FLAME, "normal", (SPRAY,)), 1) == [300, 400, 400, 400]


def test_a_deflecting_fish_takes_seven_tenths_and_its_three_allies_one_each() -> None:
    assert hp(acted(new_game(), FLAME, "normal", (EEL,)), 1) == [390, 390, 330, 390]


def test_spray_hits_every_enemy_for_70_in_order_of_position() -> None:
    # 70 for spray and flame, then the eel's 70 as 49 and 7 each, then the sunfish's
    assert hp(acted(new_game(), SPRAY, "active", ALL), 1) == [400 - 70 - 14, 400 - 70 - 14, 400 - 49 - 7, 400 - 49 - 7]


def test_an_eel_hits_every_enemy_for_35_percent_of_its_attack() -> None:
    game = new_game()
    game.sides[0][EEL].attack = 240
    assert hp(acted(game, EEL, "active", ALL), 1) == [400 - 84 - 16, 400 - 84 - 16, 400 - 58 - 8, 400 - 58 - 8]


@pytest.mark.parametrize("actor", [FLAME, SUNFISH])
def test_infight_takes_75_from_an_ally_and_raises_the_own_attack_by_140_for_good(actor: int) -> None:
    game = acted(new_game(), actor, "active", (SPRAY,))
    assert hp(game, 0) == [325, 400, 400, 400]
    assert attacks(game, 0)[actor] == 340


def test_infight_is_neither_deflected_nor_countered() -> None:
    game = new_game()
    game.sides[0][EEL].hp = 100
    acted(game, FLAME, "active", (EEL,))
    assert hp(game, 0) == [400, 400, 25, 400]


def test_each_spray_and_flame_takes_30_from_who_leaves_an_ally_below_120() -> None:
    game = new_game()
    game.sides[1][SUNFISH].hp = 180
    acted(game, SPRAY, "normal", (SUNFISH,))
    assert (hp(game, 1)[SUNFISH], hp(game, 0)[SPRAY]) == (110, 340)


def test_120_is_not_below_120() -> None:
    game = new_game()
    game.sides[1][SPRAY].hp = 220
    assert hp(acted(game, SPRAY, "normal", (SPRAY,)), 0) == [400] * 4


def test_a_fish_does_not_counter_for_itself() -> None:
    game = new_game()
    game.sides[1][SPRAY].hp = 150
    assert hp(acted(game, SPRAY, "normal", (SPRAY,)), 0) == [370, 400, 400, 400]


def test_a_fish_that_is_beaten_in_the_middle_of_an_action_still_counters_and_takes_shares() -> None:
    game = new_game()
    for fish in game.sides[1]:
        fish.hp = 60
    acted(game, SPRAY, "active", ALL)
    # hits on spray: flame counters; on flame: spray, though it has no hp left; on eel and sunfish: both
    assert hp(game, 0)[SPRAY] == 400 - 30 - 30 - 60 - 60
    (row,) = [row for row in game.replay if row["phase"] == "action"]
    shares = [event for event in row["events"] if event.get("why") == "share"]
    assert Counter(event["position"] for event in shares) == {SPRAY: 2, FLAME: 2, EEL: 1, SUNFISH: 1}


@pytest.mark.parametrize(("lost", "attack", "anger"), [(199, 200, 199), (200, 240, 0), (399, 240, 199)])
def test_an_eel_gains_40_attack_for_every_200_hp_that_it_has_lost(lost: int, attack: int, anger: int) -> None:
    game = new_game()
    game._hurt(0, EEL, lost, "test")
    assert (game.sides[0][EEL].attack, game.sides[0][EEL].anger) == (attack, anger)


def test_a_right_guess_takes_50_from_every_living_fish_and_shows_the_one() -> None:
    game = new_game()
    assert game.guess(0, Guess(EEL, "eel")) is True
    assert hp(game, 1) == [350] * 4
    assert [fish.revealed for fish in game.sides[1]] == [False, False, True, False]


def test_a_wrong_guess_changes_nothing() -> None:
    game = new_game()
    assert game.guess(0, Guess(EEL, "spray")) is False
    assert hp(game, 1) == [400] * 4


def test_a_guess_can_win() -> None:
    game = new_game()
    for fish in game.sides[1]:
        fish.hp = 50
    game.guess(0, Guess(0, "spray"))
    assert (game.winner, game.ended) == (0, "defeat")


def test_who_acted_wins_when_nobody_is_left() -> None:
    game = new_game()
    for side in game.sides:
        for fish in side:
            fish.hp, fish.dead = 0, True
    game.sides[0][SPRAY].hp, game.sides[0][SPRAY].dead = 30, False
    for position in (SPRAY, FLAME):
        game.sides[1][position].hp, game.sides[1][position].dead = 10, False
    acted(game, SPRAY, "active", (0, 1))
    assert (hp(game, 0), hp(game, 1)) == ([0] * 4, [0] * 4)
    assert game.winner == 0


@pytest.mark.parametrize(
    ("move", "told"),
    [
        (Move(4, "normal", (0,)), "actor 4"),
        (Move(0, "normal", (4,)), "target 4"),
        (Move(0, "normal", (0, 1)), "name one"),
        (Move(0, "active", (0, 1, 2)), "every living enemy"),
        (Move(2, "active", (0,)), "every living enemy"),
        (Move(1, "active", (1,)), "for an ally"),
        (Move(3, "active", (0, 1)), "name one"),
        (Move(0, "swim", (0,)), "normal or active"),
    ],
)
def test_an_illegal_move_is_refused_and_changes_nothing(move: Move, told: str) -> None:
    game = new_game()
    game.guess(0, None)
    rows = len(game.replay)
    with pytest.raises(IllegalMove, match=told):
        game.act(0, move)
    assert (len(game.replay), hp(game, 0), hp(game, 1)) == (rows, [400] * 4, [400] * 4)


def test_the_dead_neither_act_nor_are_hit_nor_guessed() -> None:
    game = new_game()
    for side in game.sides:
        side[SPRAY].hp, side[SPRAY].dead = 0, True
    with pytest.raises(IllegalMove):
        game.guess(0, Guess(SPRAY, "spray"))
    game.guess(0, None)
    for move in (Move(SPRAY, "normal", (1,)), Move(FLAME, "normal", (SPRAY,)), Move(FLAME, "active", (SPRAY,))):
        with pytest.raises(IllegalMove):
            game.act(0, move)


def test_a_named_fish_cannot_be_guessed_again() -> None:
    game = new_game()
    game.guess(0, Guess(EEL, "eel"))
    game.act(0, Move(FLAME, "normal", (0,)))
    acted(game, FLAME, "normal", (0,))
    with pytest.raises(IllegalMove, match="known already"):
        game.guess(0, Guess(EEL, "eel"))


def test_phases_come_in_their_order() -> None:
    game = new_game()
    with pytest.raises(IllegalMove, match="player 0's turn to guess"):
        game.act(0, Move(0, "normal", (0,)))
    with pytest.raises(IllegalMove, match="player 0's turn to guess"):
        game.guess(1, None)


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        ([400, 0, 0, 0], [100, 100, 0, 0], 1),  # more living fish
        ([200, 100, 0, 0], [150, 149, 0, 0], 0),  # more hp in sum
        ([200, 100, 0, 0], [150, 150, 0, 0], 0),  # the single fish with most hp
        ([200, 100, 0, 0], [200, 100, 0, 0], 1),  # else who moved second
    ],
)
def test_after_the_last_step_the_game_goes_to_who_has_more_left(
    first: list[int], second: list[int], winner: int
) -> None:
    game = new_game(steps=2)
    for side, left in zip(game.sides, (first, second), strict=True):
        for fish, points in zip(side, left, strict=True):
            fish.hp, fish.dead = points, points == 0
    game.guess(0, None)
    assert (game.winner, game.ended) == (winner, "steps")


def test_a_forfeit_is_the_other_sides_win() -> None:
    game = new_game()
    game.forfeit(0, "no legal action")
    assert (game.winner, game.ended) == (1, "no legal action")


def play_at_random(seed: int, steps: int) -> Game:
    """Play legal moves, drawn with a liking for those that last."""
    draw = random.Random(seed)
    line_ups = [draw.sample(KINDS, 4) for _ in range(2)]
    game = Game(line_ups, steps)
    while game.winner is None:
        player = game.turn
        unnamed = [place for place in game.living(1 - player) if not game.sides[1 - player][place].revealed]
        if unnamed and draw.random() < 0.7:
            game.guess(player, Guess(draw.choice(unnamed), draw.choice(KINDS)))
        else:
            game.guess(player, None)
        if game.winner is None:
            game.act(player, draw.choice(legal_moves(game, player)))
    return game


def legal_moves(game: Game, player: int) -> list[Move]:
    mine, enemies = game.living(player), game.living(1 - player)
    found = [Move(actor, "normal", (target,)) for actor in mine for target in enemies]
    for actor in mine:
        if game.sides[player][actor].kind in ALLY_SKILL:
            found += [Move(actor, "active", (ally,)) for ally in mine if ally != actor]
        else:
            found.append(Move(actor, "active", tuple(enemies)))
    return found


games = st.builds(play_at_random, st.integers(0, 10**9), st.integers(2, 128))


@given(games)
def test_hit_points_never_rise_and_attack_never_falls(game: Game) -> None:
    for before, after in zip(game.replay, game.replay[1:], strict=False):
        for side_before, side_after in zip(before["fish"], after["fish"], strict=True):
            for (hp_before, attack_before), (hp_after, attack_after) in zip(side_before, side_after, strict=True):
                assert 0 <= hp_after <= hp_before
                assert attack_after >= attack_before


@given(games)
def test_a_fish_dies_once_and_does_nothing_afterwards(game: Game) -> None:
    dead: set[tuple[int, int]] = set()
    for row in game.replay:
        if row["phase"] == "action":
            assert (row["player"], row["move"]["actor"]) not in dead
        hurt = {(event["player"], event["position"]) for event in row["events"] if event["event"] != "death"}
        assert not hurt & dead
        dying = [(event["player"], event["position"]) for event in row["events"] if event["event"] == "death"]
        assert len(dying) == len(set(dying))
        assert not set(dying) & dead
        dead.update(dying)
    assert dead == {(player, place) for player in (0, 1) for place in range(4) if game.sides[player][place].hp == 0}


@given(games)
def test_what_is_lost_is_told_of_and_sums_up(game: Game) -> None:
    lost: Counter[tuple[int, int]] = Counter()
    for row in game.replay:
        for event in row["events"]:
            if event["event"] == "damage":
                lost[event["player"], event["position"]] += event["lost"]
        for player in (0, 1):
            for place in range(4):
                assert row["fish"][player][place][0] == 400 - lost[player, place]


@given(damage=st.integers(0, 1000), mates=st.sets(st.sampled_from([SPRAY, FLAME, SUNFISH])))
def test_the_shares_of_a_deflected_hit_sum_up_to_the_hit_less_what_is_cut_off(damage: int, mates: set[int]) -> None:
    game = new_game()
    for place in range(4):
        game.sides[1][place].hp = 2000
        game.sides[1][place].dead = place != EEL and place not in mates
    game._hit(0, FLAME, EEL, damage)
    lost = [2000 - points for points in hp(game, 1)]
    assert {lost[mate] for mate in mates} <= {damage * 3 // 10 // max(len(mates), 1)}
    assert lost[EEL] == (damage * 7 // 10 if mates else damage)
    assert damage - len(mates) - 1 <= sum(lost) <= damage


@given(st.integers(0, 10**9), st.integers(2, 128))
def test_the_step_limit_ends_every_game(seed: int, steps: int) -> None:
    game = play_at_random(seed, steps)
    assert game.winner in (0, 1)
    assert len(game.replay) == game.step <= steps + 1
    assert (game.ended == "steps") == all(game.living(player) for player in (0, 1))


@given(st.integers(0, 10**9))
def test_the_same_calls_give_the_same_replay_and_it_is_plain_json(seed: int) -> None:
    first, second = play_at_random(seed, 128).replay, play_at_random(seed, 128).replay
    assert first == second == json.loads(json.dumps(first))
