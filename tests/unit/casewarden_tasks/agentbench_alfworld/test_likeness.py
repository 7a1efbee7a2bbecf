"""The likest command: what is said is what it is most like, by words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_tasks.agentbench_alfworld.likeness import bleu, nearest

COMMANDS = ("go to cabinet 1", "go to cabinet 2", "open cabinet 1", "take apple 1 from shelf 1", "look")
WORDS = st.lists(st.sampled_from(["go", "to", "shelf", "1", "2", "apple"]), min_size=1, max_size=8)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("open cabinet 1", "open cabinet 1"),
        ("go to the cabinet 2", "go to cabinet 2"),
        ("take the apple 1 from the shelf 1", "take apple 1 from shelf 1"),
        ("sing a song", "sing a song"),
        ("", ""),
    ],
)
def test_the_likest_command_is_taken_and_what_is_like_none_stays(said: str, meant: str) -> None:
    assert nearest(said, COMMANDS) == meant


def test_its_value_is_that_of_the_formula() -> None:
    # Precisions 1, 2/3, 1/2 and, of none of one, 1 / (2 * 5 / ln 4); no penalty, as both are of one length.
    assert bleu(["a", "b", "c", "x"], ["a", "b", "c", "d"]) == pytest.approx(
        (3 / 4 * 2 / 3 * 1 / 2 * (1.3862943611 / 10)) ** 0.25
    )
    assert bleu(["go", "to", "shelf", "1"], ["go", "to", "shelf", "1"]) == pytest.approx(1.0)
    assert bleu(["go", "to", "shelf", "1"], ["nothing", "of", "it"]) == 0.0


@given(WORDS, WORDS)
def test_it_is_between_0_and_1(reference: list[str], said: list[str]) -> None:
    assert 0.0 <= bleu(reference, said) <= 1.0 + 1e-9
