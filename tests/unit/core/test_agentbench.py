"""What a task's own rule answers: a score that the status can hold, or none at all."""

from __future__ import annotations

import pytest

from casewarden.core.agentbench import read_aggregate


@pytest.mark.parametrize("score", ["0", "1", "0.66666667"])
def test_a_score_from_0_to_1_is_taken(score: str) -> None:
    assert read_aggregate({"score": score, "overall": {}}) == (score, {})


@pytest.mark.parametrize("score", ["1.5", "2", "-0.5", "NaN", "abc", "", "0.123456789", "1e-3", "0.5\n"])
def test_a_score_that_no_status_can_hold_is_refused(score: str) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        read_aggregate({"score": score, "overall": {}})
