"""One way from a record to a verdict, and no record that a candidate could shape into another one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.packs import EchoPack, cases

from casewarden_sdk.contract import Verdict
from casewarden_sdk.errors import CandidateError
from casewarden_sdk.judging import candidate_error_record, judge

CASE = cases(17)[0]


class Trusting(EchoPack):
    """Keeps whatever the candidate said as its record."""

    def grade(self, case, record):
        return Verdict.assessed(case, {"echo": False}, f"graded {record!r}"[:200])


def test_a_candidate_that_broke_before_there_was_anything_to_grade_fails_every_dimension():
    verdict = judge(EchoPack(), CASE, candidate_error_record(CandidateError("TimeLimit", "slow")))
    assert (verdict.status, verdict.reason, verdict.error) == ("agent_error", "TimeLimit", "slow")
    assert verdict.checks == {"echo": False}


_INNER = st.recursive(st.none() | st.text(max_size=3), lambda inner: st.dictionaries(
    st.sampled_from(["reason", "message", "x"]), inner, max_size=3))  # fmt: skip


@given(_INNER)
def test_no_record_of_a_candidates_making_leaves_a_case_unassessed(inner):
    verdict = judge(Trusting(), CASE, {"candidate_error": inner})
    assert verdict.status in ("failed", "agent_error")


@pytest.mark.parametrize("record", [None, [], "x", {"candidate_error": None}, {"candidate_error": {}, "more": 1}])
def test_other_records_are_the_packs_to_grade(record):
    assert "graded" in (judge(Trusting(), CASE, record).error or "")
