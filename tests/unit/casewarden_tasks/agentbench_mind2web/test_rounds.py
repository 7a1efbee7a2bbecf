"""Rounds of one sample: five at a time, and what is chosen comes back."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_tasks.agentbench_mind2web.records import Operation, Sample
from casewarden_tasks.agentbench_mind2web.rounds import Choice, Rounds, action_f1, parsed

NODES = tuple(str(number) for number in range(10))
HTML = "<body>" + "".join(f'<a backend_node_id="{node}">n{node}</a>' for node in NODES) + "</body>"


def sample(count: int = 10) -> Sample:
    return Sample("a_b", "do it", "site", (), Operation("CLICK", ""), ("0",), NODES[:count], HTML)


@pytest.mark.parametrize(
    ("reply", "choice"),
    [
        ("Answer: C\nAction: TYPE\nValue: two words \nmore", Choice("C", Operation("TYPE", "two words"))),
        ("Answer: C.\nAction: CLICK", Choice("C", Operation("CLICK", ""))),
        ("Thought: B or C\nAnswer: B\nValue:\nAction: SELECT", Choice("B", Operation("SELECT", ""))),
        ("I take C.", Choice("A", Operation("", ""))),
        ("Answer: G", Choice("A", Operation("", ""))),
        ("", Choice("A", Operation("", ""))),
    ],
)
def test_a_reply_is_read_by_its_three_lines(reply: str, choice: Choice) -> None:
    assert parsed(reply) == choice


def test_what_is_chosen_comes_back_until_it_is_alone() -> None:
    rounds = Rounds(sample())
    while rounds.goes_on:
        shown = rounds.next().splitlines()
        letter = next((line[0] for line in shown if line.endswith("> n0 </a>") and line[1:3] == ". "), "A")
        rounds.take(parsed(f"Answer: {letter}\nAction: CLICK"))
    assert (rounds.prediction, rounds.asked) == (("0", "CLICK"), 2)


def test_nothing_chosen_is_no_prediction() -> None:
    rounds = Rounds(sample())
    while rounds.goes_on:
        rounds.next()
        rounds.take(parsed("Answer: A"))
    assert (rounds.prediction, rounds.asked) == (("", ""), 2)


def test_a_letter_that_is_not_there_is_none_of_the_above() -> None:
    rounds = Rounds(sample(2))
    rounds.next()
    rounds.take(parsed("Answer: F\nAction: CLICK"))
    assert rounds.prediction == ("", "")


def test_the_order_is_the_samples_own_unless_a_generator_draws_it() -> None:
    assert Rounds(sample()).next() == Rounds(sample()).next()
    assert Rounds(sample(), random.Random(1)).next() != Rounds(sample(), random.Random(2)).next()


@given(st.lists(st.sampled_from("ABCDEF"), min_size=20, max_size=20), st.integers(1, 10))
def test_every_game_ends_and_a_prediction_is_a_candidate(letters: list[str], count: int) -> None:
    rounds, replies = Rounds(sample(count)), iter(letters)
    while rounds.goes_on:
        rounds.next()
        rounds.take(Choice(next(replies), Operation("CLICK", "")))
    assert rounds.asked <= 3
    assert rounds.prediction[0] in (*NODES[:count], "")


@pytest.mark.parametrize(
    ("said", "wanted", "f1"),
    [
        ("CLICK", "CLICK", 1.0),
        ("TYPE a b", "TYPE b a", 1.0),
        ("TYPE a", "TYPE a b", 0.8),
        ("CLICK", "TYPE a", 0.0),
        ("", "CLICK", 0.0),
    ],
)
def test_an_action_is_compared_as_a_set_of_words(said: str, wanted: str, f1: float) -> None:
    assert action_f1(said, wanted) == pytest.approx(f1)
