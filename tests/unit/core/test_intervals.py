"""What a status shows beside the score: each thing where there is enough of it, and in words that people read."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from casewarden.api.status import EvalRunStatus
from casewarden.core.in_words import beside_the_score
from casewarden.core.intervals import shown_statistics
from casewarden.core.statistics import Observed

WEIGHTS = {"a": Decimal(1)}


def cases(families: int, repeats: int = 1, seeds: int = 1) -> list[Observed]:
    return [
        Observed(seed, f"f{n:02}", repeat, {"a": (n + repeat) % 3 > 0})
        for n in range(families)
        for seed in range(seeds)
        for repeat in range(repeats)
    ]


def test_one_look_at_few_families_gives_the_pass_rates_interval_and_nothing_of_tries() -> None:
    shown = shown_statistics(WEIGHTS, cases(4))
    assert shown == {"passRateInterval": {"low": "0.15", "high": "0.85", "method": "Wilson"}}


@pytest.mark.parametrize("observed", [cases(4, seeds=2), cases(4, repeats=2)])
def test_a_second_look_at_a_family_leaves_no_interval_of_the_pass_rate(observed: list[Observed]) -> None:
    assert "passRateInterval" not in shown_statistics(WEIGHTS, observed)


def test_repeats_give_pass_at_k_pass_hat_k_and_flips_up_to_their_number() -> None:
    shown = shown_statistics(WEIGHTS, cases(3, repeats=3))
    assert shown["passAt"] == {"1": "0.6667", "2": "1", "3": "1"}
    assert shown["passAll"] == {"1": "0.6667", "2": "0.3333", "3": "0"}
    assert shown["flipRate"] == "0.6667"
    assert [item["case"] for item in shown["flips"]] == ["f00", "f01", "f02"]


def test_a_family_that_never_wavers_is_no_flip() -> None:
    steady = [Observed(0, "f", repeat, {"a": True}) for repeat in range(2)]
    shown = shown_statistics(WEIGHTS, steady)
    assert (shown["flipRate"], "flips" in shown) == ("0", False)


def test_what_can_be_detected_stands_beside_an_interval_for_families_with_alpha_and_power() -> None:
    assert "detectableEffect" not in shown_statistics(WEIGHTS, cases(7))
    effect = shown_statistics(WEIGHTS, cases(20))["detectableEffect"]
    assert (effect["alpha"], effect["power"]) == ("0.05", "0.8")
    assert 0 < float(effect["effect"]) < 1


def test_its_size_has_a_bound_and_it_is_what_the_schema_says() -> None:
    shown = shown_statistics(WEIGHTS, cases(300, repeats=120))
    assert len(shown["flips"]) == 20
    assert list(shown["passAt"]) == ["1", "2", "3", "4", "5", "8", "10", "100"]
    assert EvalRunStatus.model_validate({"statistics": shown}).statistics is not None


def test_nothing_assessed_says_nothing() -> None:
    assert shown_statistics(WEIGHTS, [None]) == {}


def test_people_read_all_of_it_and_no_line_of_what_is_absent() -> None:
    status: dict[str, Any] = {
        "scoreInterval": {"estimand": "families", "low": "0.1", "high": "0.9", "method": "t", "families": 9},
        "statistics": shown_statistics(WEIGHTS, cases(9, repeats=2)),
        "floor": {"nullAgent": "0", "reference": "1", "audit": "trial"},
        "baseline": {"evalRun": "old", "score": "0.5", "difference": "-0.25", "pValue": "0.5", "method": "sign-flip",
                     "families": 4, "matched": 8, "unmatched": 1, "regressed": ["f"], "improved": []},
        "regrade": {"evalRun": "old", "task": "t@1", "graded": 2, "changed": 1, "score": "1",
                    "changes": [{"seed": 17, "case": "f", "repeat": 0, "before": "passed", "after": "failed"}]},
    }  # fmt: skip
    said = dict(beside_the_score(status))
    assert said["interval"] == "0.1 to 0.9 at 95 % (families, t, 9 families)"
    assert said["pass@k"].startswith("1: ")
    assert said["detectable"].endswith("(alpha 0.05, power 0.8)")
    assert said["floor"] == "null agent 0, reference 1, audit trial"
    assert "families pass -0.25 more often on average; p = 0.5" in said["baseline"]
    assert said["regrade"] == "2 records of old (t@1), 1 changed, score 1 before: 17/f/0 passed to failed"
    assert dict(beside_the_score({"baseline": {"evalRun": "old", "problem": "it is not over"}})) == {
        "baseline": "old: no comparison: it is not over"
    }
    assert list(beside_the_score({})) == []
