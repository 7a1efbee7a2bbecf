"""What a task's own rule answers: a score that the status can hold, or none at all."""

from __future__ import annotations

from decimal import Decimal

import pytest

from casewarden.core.agentbench import own_score, read_aggregate
from casewarden.core.scoring import CaseResult, agentbench, with_own


@pytest.mark.parametrize("score", ["0", "1", "0.66666667"])
def test_a_score_from_0_to_1_is_taken(score: str) -> None:
    assert read_aggregate({"score": score, "overall": {}}, any_assessed=True) == (score, {})


@pytest.mark.parametrize("score", ["1.5", "2", "-0.5", "NaN", "abc", "", "0.123456789", "1e-3", "0.5\n"])
def test_a_score_that_no_status_can_hold_is_refused(score: str) -> None:
    with pytest.raises(ValueError, match="from 0 to 1"):
        read_aggregate({"score": score, "overall": {}}, any_assessed=True)


def test_no_score_for_assessed_cases_is_refused_and_never_read_as_0() -> None:
    with pytest.raises(ValueError, match="no score for cases that were assessed"):
        read_aggregate({"score": None, "overall": {}}, any_assessed=True)


def test_no_score_stands_as_none_where_no_case_was_assessed() -> None:
    score, _ = read_aggregate({"score": None, "overall": {}}, any_assessed=False)
    own = own_score(score, {})
    counted = agentbench({"a": Decimal(1)}, [CaseResult(("a",), "environment_error", "-")])
    assert (with_own(counted, own).valid, with_own(counted, own).score) == (False, None)


@pytest.mark.parametrize("status", ["passed", "failed", "agent_error"])
def test_a_run_without_a_score_of_its_own_is_never_valid(status: str) -> None:
    counted = agentbench({"a": Decimal(1)}, [CaseResult(("a",), status, "1" if status == "passed" else "0")])
    assert not with_own(counted, own_score(None, {})).valid
