"""The score: exact, bounded, absent unless every case was assessed, and equal to the peer's."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction

import pytest
from evalarc.records import validate_evaluation
from hypothesis import given
from hypothesis import strategies as st

from casewarden.core.scoring import RULES, CaseResult, Score, decimal_text, meets, weighted_dimensions

KV = {name: Decimal(weight) for name, weight in {
    "basic": "0.25", "validation": "0.15", "transactions": "0.20", "compare_swap": "0.15", "persistence": "0.15",
    "crash_recovery": "0.10",
}.items()}  # fmt: skip
KV_CASES = (
    ["basic"] * 3
    + ["validation"] * 2
    + ["transactions"] * 2
    + ["compare_swap"] * 2
    + ["persistence"] * 3
    + ["crash_recovery"] * 3
)
SUPPORT = {name: Decimal(weight) for name, weight in {
    "routing": "0.30", "notes": "0.25", "closure": "0.20", "scope": "0.15", "protocol": "0.10",
}.items()}  # fmt: skip


def assessed(dimensions: tuple[str, ...], bits: str) -> CaseResult:
    return CaseResult(dimensions, "failed" if "0" in bits else "passed", bits)


def kv(failing: dict[str, int]) -> list[CaseResult]:
    """The 15 cases of a durable-kv seed, so many failing in each dimension."""
    left = dict(failing)
    results = []
    for name in KV_CASES:
        fails = left.get(name, 0) > 0
        left[name] = left.get(name, 0) - 1
        results.append(assessed((name,), "0" if fails else "1"))
    return results


@pytest.mark.parametrize(
    ("failing", "score"),
    [
        ({}, "1"),
        (dict.fromkeys(KV, 3), "0"),
        ({"persistence": 3, "crash_recovery": 2}, "0.78333333"),
        ({"transactions": 1}, "0.9"),
        ({"compare_swap": 2}, "0.85"),
        ({"compare_swap": 1}, "0.925"),
        ({"validation": 1}, "0.925"),
        ({"crash_recovery": 3}, "0.9"),
        ({"basic": 1}, "0.91666667"),
    ],
)
def test_a_score_is_the_weighted_mean_of_the_checks(failing: dict[str, int], score: str) -> None:
    result = weighted_dimensions(KV, kv(failing))
    assert (result.valid, result.score) == (True, score)
    assert result.resolved is (not failing)


def test_a_case_may_check_many_dimensions() -> None:
    names = tuple(sorted(SUPPORT))
    wrong_when_open = assessed(names, "01111")
    result = weighted_dimensions(
        SUPPORT, [wrong_when_open, wrong_when_open, assessed(names, "11111"), assessed(names, "11111")]
    )
    assert result.score == "0.9"
    assert result.pass_rate == "0.5"
    assert result.dimensions["closure"].to_json() == {
        "weight": "0.2", "passed": 2, "assessed": 4, "total": 4, "score": "0.5"
    }  # fmt: skip


@pytest.mark.parametrize("status", [None, "environment_error"])
def test_one_case_that_was_not_assessed_voids_the_score_and_not_the_rest(status: str | None) -> None:
    results = kv({"transactions": 1})
    results[0] = CaseResult(results[0].dimensions, status, "-" if status else "")
    result = weighted_dimensions(KV, results)
    assert (result.valid, result.resolved, result.score, result.pass_rate) == (False, False, None, None)
    assert (result.total, result.assessed, result.passed) == (15, 14, 13)
    assert result.dimensions["basic"].to_json() == {"weight": "0.25", "passed": 2, "assessed": 2, "total": 3}
    assert result.dimensions["transactions"].score == "0.5"
    assert "score" not in result.to_json()


def test_an_agent_error_is_assessed_with_the_checks_that_it_has() -> None:
    results = kv({})
    results[0] = CaseResult(("basic",), "agent_error", "0")
    assert weighted_dimensions(KV, results).score == "0.91666667"


def test_nothing_at_all_is_no_valid_score() -> None:
    assert weighted_dimensions(KV, []).valid is False


def test_bits_that_are_not_those_of_the_case_are_a_mistake_and_no_score() -> None:
    with pytest.raises(ValueError):
        weighted_dimensions(KV, [CaseResult(("basic",), "passed", "11")])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(0), "0"), (Fraction(1), "1"), (Fraction(1, 3), "0.33333333"), (Fraction(2, 3), "0.66666667"),
        (Fraction(1, 2), "0.5"), ("0.10", "0.1"), ("1.0", "1"), (Fraction(10), "10"),
        (Fraction(5, 10**9), "0"), (Fraction(15, 10**9), "0.00000002"), (Fraction(25, 10**9), "0.00000002"),
    ],
)  # fmt: skip
def test_decimals_have_eight_places_half_to_even_and_no_trailing_zeros(value: Fraction | str, text: str) -> None:
    assert decimal_text(value) == text


@given(st.fractions(min_value=0, max_value=1))
def test_decimals_round_as_decimal_does(value: Fraction) -> None:
    with localcontext() as context:
        context.prec = 400
        exact = Decimal(value.numerator) / Decimal(value.denominator)
        rounded = exact.quantize(Decimal("1e-8"), rounding=ROUND_HALF_EVEN)
    assert Decimal(decimal_text(value)) == rounded
    assert not decimal_text(value).endswith(".")


@st.composite
def weights_and_results(draw: st.DrawFn) -> tuple[dict[str, Decimal], list[CaseResult]]:
    parts = draw(st.lists(st.integers(0, 20), min_size=1, max_size=4).filter(any))
    scale = 20 * len(parts)
    rest = scale - sum(parts)
    weights = {f"d{number}": Decimal(part) / scale for number, part in enumerate([*parts, rest])}
    weights[f"d{len(parts)}"] = 1 - sum(list(weights.values())[:-1], Decimal(0))
    names = list(weights)
    results = [assessed((name,), draw(st.sampled_from("01"))) for name in names]
    for _ in range(draw(st.integers(0, 12))):
        chosen = tuple(draw(st.lists(st.sampled_from(names), min_size=1, unique=True)))
        results.append(assessed(chosen, draw(st.text("01", min_size=len(chosen), max_size=len(chosen)))))
    return weights, results


def value(score: Score) -> Decimal:
    assert score.score is not None
    return Decimal(score.score)


@given(weights_and_results())
def test_a_score_is_between_nothing_and_one(data: tuple[dict[str, Decimal], list[CaseResult]]) -> None:
    score = weighted_dimensions(*data)
    assert 0 <= value(score) <= 1
    assert score.resolved is (value(score) == 1 and all(result.status == "passed" for result in data[1]))
    for dimension in score.dimensions.values():
        assert 0 <= dimension.passed <= dimension.assessed <= dimension.total


@given(weights_and_results(), st.randoms(use_true_random=False))
def test_the_order_of_cases_and_of_their_dimensions_does_not_count(
    data: tuple[dict[str, Decimal], list[CaseResult]], random: object
) -> None:
    weights, results = data
    shuffled = list(results)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    turned = [CaseResult(tuple(reversed(result.dimensions)), result.status, result.checks) for result in shuffled]
    assert weighted_dimensions(weights, turned) == weighted_dimensions(weights, results)


@given(weights_and_results(), st.data())
def test_one_more_true_check_never_lowers_the_score(
    data: tuple[dict[str, Decimal], list[CaseResult]], draw: st.DataObject
) -> None:
    weights, results = data
    index = draw.draw(st.integers(0, len(results) - 1))
    better = list(results)
    better[index] = assessed(results[index].dimensions, "1" * len(results[index].checks))
    assert value(weighted_dimensions(weights, better)) >= value(weighted_dimensions(weights, results))


@given(weights_and_results(), st.data())
def test_an_environment_error_anywhere_leaves_no_score(
    data: tuple[dict[str, Decimal], list[CaseResult]], draw: st.DataObject
) -> None:
    weights, results = data
    index = draw.draw(st.integers(0, len(results) - 1))
    lost = CaseResult(results[index].dimensions, "environment_error", "-" * len(results[index].dimensions))
    score = weighted_dimensions(weights, [*results[:index], lost, *results[index + 1 :]])
    assert (score.valid, score.resolved, score.score, score.pass_rate) == (False, False, None, None)


@given(weights_and_results(), st.integers(1, 4))
def test_repeating_every_case_alike_changes_no_score(
    data: tuple[dict[str, Decimal], list[CaseResult]], repeats: int
) -> None:
    weights, results = data
    assert weighted_dimensions(weights, results * repeats).score == weighted_dimensions(weights, results).score


def test_a_threshold_is_compared_with_what_is_shown() -> None:
    score = weighted_dimensions(KV, kv({"basic": 1}))
    assert meets(score, "0.91666667", {"basic": "0.66666667", "validation": "1"}) == []
    assert meets(score, "0.91666668", {"basic": "0.7"}) == [
        "score 0.91666667 is below 0.91666668",
        "dimension basic is 0.66666667, below 0.7",
    ]


def test_the_rules_are_named_with_their_version() -> None:
    assert list(RULES) == ["weighted-dimensions/v1", "agentbench/v1"]


@given(st.lists(st.sampled_from("01-"), min_size=15, max_size=15))
def test_the_peer_comes_to_the_same_numbers(bits: list[str]) -> None:
    """evalarc's validator recomputes every number of a report and refuses one that differs."""
    results = [
        CaseResult((name,), {"0": "failed", "1": "passed", "-": "environment_error"}[bit], bit)
        for name, bit in zip(KV_CASES, bits, strict=True)
    ]
    score = weighted_dimensions(KV, results)
    validate_evaluation(_as_the_peer_reports(results, score))


def _as_the_peer_reports(results: list[CaseResult], score: Score) -> dict[str, object]:
    dimensions = {
        name: {
            "passed": part.passed, "total": part.total, "assessed": part.assessed, "weight": float(part.weight),
            "score": part.passed / part.assessed if part.assessed else None,
        }
        for name, part in score.dimensions.items()
    }  # fmt: skip
    cases = [
        {
            "seed": 17, "case_id": f"case-{number}", "passed": result.status == "passed", "status": result.status,
            "checks": {result.dimensions[0]: {"0": False, "1": True, "-": None}[result.checks]}, "error": None,
            "duration_seconds": 0.0, "transcript_sha256": "0" * 64,
        }
        for number, result in enumerate(results)
    ]  # fmt: skip
    return {
        "schema_version": "evalarc.evaluation.v2", "created_at": "now", "seeds": [17], "cases": cases,
        "task": {"id": "durable-kv", "version": "0.1.0", "domain": "coding", "split": "public-development"},
        "candidate_sha256": "0" * 64, "grader_sha256": "0" * 64, "cases_sha256": "0" * 64, "evaluation_seconds": 0.0,
        "runtime": {
            "backend": "local", "python": "3", "platform": "x", "image": None, "image_id": None, "command": ["x"],
            "response_timeout_seconds": 1, "session_output_limit_bytes": 1,
        },
        "valid": score.valid, "resolved": score.resolved, "dimensions": dimensions,
        "score": None if score.score is None else float(score.score),
        "status": "environment_error" if not score.valid else "passed" if score.resolved else "failed",
        "agent_cost_usd": None, "agent_tokens": None,
    }  # fmt: skip
