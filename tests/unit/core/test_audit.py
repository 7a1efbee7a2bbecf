"""What an audit comes to, by the runs of its controls."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden.core.audit import ControlRun, Judgement, Observation, judge_audit


def case(status: str, *failed: str, family: str = "one", seed: int = 17, repeat: int = 0) -> Observation:
    return Observation(seed, family, repeat, status, frozenset(failed))


REFERENCE = ControlRun("reference", "reference", True, True, "1", (case("passed"),))
NULL = ControlRun("null-agent", "null", True, False, "0.35", (case("failed", "a", "b"),))
CRASH = ControlRun("crashing-agent", "crash", True, False, "0.25", (case("agent_error", "a", "b"),))
FORGER = ControlRun("forger", "forger", True, False, "0.25", (case("agent_error", "a", "b"),))
FAULT = ControlRun("fault", "fault", True, False, "0.5", (case("failed", "a"),), target="a")


def judge(*runs: ControlRun, strict: bool = False) -> Judgement:
    """Judge with these in the place of those of their names."""
    base = {run.name: run for run in (REFERENCE, NULL, CRASH, FORGER, FAULT)}
    return judge_audit([*(base | {run.name: run for run in runs}).values()], strict=strict)


def test_a_right_reference_and_a_fault_caught_in_its_place_pass() -> None:
    found = judge()
    assert (found.valid, found.passed, found.killed, found.faults, found.mutation_score) == (True, True, 1, 1, "1")
    assert (found.reference_score, found.reference_flakes, found.weakest_margin) == ("1", 0, 1)
    assert found.floors == {"null-agent": "0.35", "crashing-agent": "0.25", "forger": "0.25"}


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (replace(FAULT, cases=(case("passed"),)), "fault: is not caught in a"),
        (replace(FAULT, cases=(case("failed", "b"),)), "fault: is not caught in a"),
        (replace(FAULT, cases=(case("agent_error", "a", "b"),)), "it broke in 1 cases instead of running"),
        (replace(REFERENCE, resolved=False, cases=(case("failed", "a"),)), "the reference does not resolve one"),
        (replace(NULL, cases=(case("passed"),)), "null-agent: resolves one without any skill"),
        (replace(CRASH, cases=(case("passed"),)), "crashing-agent: resolves one"),
        (replace(FORGER, cases=(case("passed"),)), "forger: resolves one"),
        (replace(FORGER, score="0.36"), "forger: scores 0.36, more than the null agent"),
    ],
)
def test_what_is_not_as_it_must_be_fails_the_audit_by_name(run: ControlRun, said: str) -> None:
    found = judge(run)
    assert (found.valid, found.passed) == (True, False)
    assert any(said in problem for problem in found.problems), found.problems


def test_a_fault_of_the_protocol_may_be_caught_as_an_agent_error() -> None:
    run = replace(FAULT, cases=(case("agent_error", "a"),), protocol_fault=True)
    assert judge(run).passed is True


@pytest.mark.parametrize("name", ["reference", "null-agent", "crashing-agent", "forger", "fault"])
def test_any_invalid_run_makes_the_audit_invalid_and_leaves_no_mutation_score(name: str) -> None:
    (run,) = (run for run in (REFERENCE, NULL, CRASH, FORGER, FAULT) if run.name == name)
    found = judge(replace(run, valid=False, score=None, cases=()))
    assert (found.valid, found.passed, found.mutation_score, found.killed) == (False, None, None, None)
    assert name in found.problems[0]


@pytest.mark.parametrize("missing", [REFERENCE, NULL, CRASH, FORGER, FAULT])
def test_an_audit_without_one_of_them_cannot_pass(missing: ControlRun) -> None:
    found = judge_audit([run for run in (REFERENCE, NULL, CRASH, FORGER, FAULT) if run is not missing])
    assert found.passed is False


def test_an_audit_of_nothing_is_not_valid() -> None:
    assert judge_audit([]).valid is False


def test_the_margin_counts_families_and_not_seeds_or_repeats() -> None:
    cases = (
        case("failed", "a"),
        case("failed", "a", seed=41),
        case("failed", "a", repeat=1),
        case("failed", "a", family="two"),
    )
    (row,) = (row for row in judge(replace(FAULT, cases=cases)).controls if row.kind == "fault")
    assert (row.margin, row.detected_by) == (2, ("one", "two"))


def test_undeclared_collateral_is_told_and_fails_the_audit_only_where_it_is_strict() -> None:
    run = replace(FAULT, cases=(case("failed", "a", "b", "c"),), collateral=frozenset({"b"}))
    (row,) = (row for row in judge(run).controls if row.kind == "fault")
    assert row.collateral == ("c",)
    assert judge(run).passed is True
    strict = judge(run, strict=True)
    assert strict.passed is False
    assert "fails c too" in strict.problems[0]


def test_a_reference_that_wavers_is_counted_by_case() -> None:
    cases = (
        case("passed"),
        case("failed", "a", repeat=1),
        case("passed", family="two"),
        case("passed", family="two", repeat=1),
    )
    assert judge(replace(REFERENCE, resolved=False, cases=cases)).reference_flakes == 1


_cases = st.lists(
    st.builds(
        Observation,
        st.integers(0, 2),
        st.sampled_from(["one", "two"]),
        st.integers(0, 1),
        st.sampled_from(["passed", "failed", "agent_error"]),
        st.frozensets(st.sampled_from(["a", "b"])),
    ),
    max_size=6,
)


@given(_cases, st.booleans())
def test_a_fault_is_killed_exactly_where_its_margin_is_not_zero(cases: list[Observation], protocol: bool) -> None:
    found = judge(replace(FAULT, cases=tuple(cases), protocol_fault=protocol))
    (row,) = (row for row in found.controls if row.kind == "fault")
    assert row.killed == (row.margin != 0)
    assert found.passed == row.killed
