"""Verdicts, cases and controls hold their invariants wherever they are made."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_sdk.contract import (
    AGENT_ERROR,
    ENVIRONMENT_ERROR,
    FAILED,
    PASSED,
    STATUSES,
    Case,
    Control,
    Verdict,
    check_bits,
)
from casewarden_sdk.errors import CandidateError, ContractError

CASE = Case("a-case", ("b", "a"), {"id": "a-case", "x": 1})
_CHECKS = st.dictionaries(st.text(min_size=1, max_size=3), st.sampled_from([True, False, None]), max_size=4)


@given(_CHECKS, st.sampled_from(STATUSES), st.sampled_from([None, "Exited"]))
def test_a_verdict_exists_only_with_the_invariants_of_the_contract(checks, status, reason):
    values = list(checks.values())
    unassessed = status == ENVIRONMENT_ERROR
    holds = (
        bool(values)
        and all((value is None) == unassessed for value in values)
        and (status == PASSED) == (not unassessed and all(values))
        and (reason is not None) == (status in (AGENT_ERROR, ENVIRONMENT_ERROR))
    )
    if holds:
        verdict = Verdict("a-case", checks, status, None, reason)
        assert Verdict.from_json(verdict.to_json()) == verdict
        assert verdict.passed == (status == PASSED)
    else:
        with pytest.raises(ContractError):
            Verdict("a-case", checks, status, None, reason)


def test_numbers_are_no_checks():
    with pytest.raises(ContractError, match="true, false and null only"):
        Verdict("a-case", {"a": 1}, PASSED)  # type: ignore[dict-item]


def test_a_verdict_that_was_changed_in_the_file_is_refused():
    document = Verdict.assessed(CASE, {"a": True, "b": False}).to_json()
    assert document["status"] == FAILED
    with pytest.raises(ContractError, match="passed is True"):
        Verdict.from_json({**document, "passed": True})


def test_a_fault_with_every_check_true_is_the_graders_mistake():
    fault = CandidateError("Exited", "died")
    with pytest.raises(ContractError):
        Verdict.assessed(CASE, {"a": True, "b": True}, fault=fault)
    verdict = Verdict.assessed(CASE, {"a": True, "b": False}, fault=fault)
    assert (verdict.status, verdict.reason, verdict.error) == (AGENT_ERROR, "Exited", "died")


def test_errors_fail_every_dimension_or_assess_none():
    assert Verdict.agent_error(CASE, "TimeLimit", "slow").checks == {"a": False, "b": False}
    assert Verdict.environment_error(CASE, "TaskFailed", "oops").checks == {"a": None, "b": None}


def test_metrics_are_finite_decimals_in_text():
    assert Verdict.assessed(CASE, {"a": True, "b": True}, metrics={"f1": "0.5"}).metrics == {"f1": "0.5"}
    with pytest.raises(ContractError, match="finite decimal"):
        Verdict.assessed(CASE, {"a": True, "b": True}, metrics={"f1": "NaN"})


def test_bits_are_sorted_by_dimension():
    assert check_bits({"b": True, "a": False, "c": None}) == "01-"


def test_the_digest_of_a_case_is_of_all_its_content_and_of_types():
    one = Case("a", ("d",), {"id": "a", "x": 1})
    assert one.sha256 != Case("a", ("d",), {"id": "a", "x": 1.0}).sha256
    assert one.sha256 != Case("a", ("d",), {"id": "a", "x": True}).sha256
    assert one.sha256 == Case("a", ("e",), {"x": 1, "id": "a"}).sha256


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", ("d",), {"id": ""}), "case id ''"),
        (("../a", ("d",), {"id": "../a"}), "case id '../a'"),
        (("a\n", ("d",), {"id": "a\n"}), "case id"),
        (("a", (), {"id": "a"}), "one or more different names"),
        (("a", ("d", "d"), {"id": "a"}), "one or more different names"),
        (("a", ("d",), {"id": "b"}), "must be the case's id"),
    ],
)
def test_a_case_that_could_not_be_named_in_a_store_or_graded_is_refused(arguments, message):
    with pytest.raises(ContractError, match=message):
        Case(*arguments)


def test_a_fault_and_only_a_fault_has_a_target():
    with pytest.raises(ContractError, match="target"):
        Control("x", "fault", {"main.py": ""})
    with pytest.raises(ContractError, match="target"):
        Control("x", "null", {"main.py": ""}, target="d")
    with pytest.raises(ContractError, match="none of"):
        Control("x", "other", {"main.py": ""})
