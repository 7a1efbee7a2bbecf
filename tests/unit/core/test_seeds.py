"""Seeds are drawn from given bytes, so that a draw can be made again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden.core.seeds import draw_seeds

ENTROPY = st.binary(min_size=16, max_size=64)


@given(ENTROPY, st.integers(1, 256))
def test_seeds_are_as_many_as_asked_different_and_short(entropy: bytes, count: int) -> None:
    seeds = draw_seeds(count, entropy)
    assert len(seeds) == len(set(seeds)) == count
    assert all(0 <= seed < 2**31 for seed in seeds)


@given(ENTROPY, st.integers(1, 100), st.integers(0, 100))
def test_the_same_bytes_give_the_same_seeds_and_a_longer_draw_begins_alike(
    entropy: bytes, count: int, more: int
) -> None:
    assert draw_seeds(count + more, entropy)[:count] == draw_seeds(count, entropy)


@given(ENTROPY, ENTROPY)
def test_other_bytes_give_other_seeds(left: bytes, right: bytes) -> None:
    assert (draw_seeds(8, left) == draw_seeds(8, right)) is (left == right)


def test_too_few_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match="15 bytes of entropy: give at least 16"):
        draw_seeds(1, b"x" * 15)
