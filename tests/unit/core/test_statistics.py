"""Intervals and tests keep what they promise: shown by simulations whose figures stand in docs/statistics.md."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden.core.statistics import (
    Observed,
    compare_runs,
    detectable_effect,
    flip_rates,
    pass_at_k,
    pass_hat_k,
    pass_rate_interval,
    score_intervals,
    sign_flip_p,
)
from casewarden_tasks import durable_kv

PACK = durable_kv.PACK
WEIGHTS = {name: Decimal(weight) for name, weight in PACK.dimensions.items()}
PAGE = (Path(__file__).resolve().parents[3] / "docs/statistics.md").read_text(encoding="utf-8")
SHAPE = [(case.id, case.dimensions) for case in PACK.cases(17, {})]


def a_run(rng: random.Random, chances: dict[str, float], seeds: int, repeats: int = 1) -> list[Observed]:
    return [
        Observed(seed, family, repeat, {name: rng.random() < chances[family] for name in dimensions})
        for seed in range(seeds)
        for family, dimensions in SHAPE
        for repeat in range(repeats)
    ]


def expected(chances: dict[str, float]) -> float:
    families = {name: [family for family, dimensions in SHAPE if name in dimensions] for name in WEIGHTS}
    return sum(
        float(WEIGHTS[name]) * sum(chances[family] for family in families[name]) / len(families[name])
        for name in WEIGHTS
    )


def coverage(estimand: str, rounds: int, seeds: int) -> float:
    """Share of intervals, of those that there are, that hold the truth."""
    rng, held, made = random.Random(1), 0, 0
    fixed = {family: rng.betavariate(4, 2) for family, _ in SHAPE}
    for _ in range(rounds):
        chances = fixed if estimand == "instances" else {family: rng.betavariate(4, 2) for family, _ in SHAPE}
        truth = expected(fixed) if estimand == "instances" else 4 / 6
        for interval in score_intervals(WEIGHTS, a_run(rng, chances, seeds)):
            if interval.estimand == estimand:
                made += 1
                held += interval.low <= truth <= interval.high
    assert made > rounds * 0.9
    return held / made


def wilson_coverage(rounds: int, families: int) -> float:
    """Share of Wilson's intervals that hold the chance that was drawn, at one observation for each family."""
    rng, held = random.Random(5), 0
    for _ in range(rounds):
        chance = rng.betavariate(4, 2)
        found = pass_rate_interval([Observed(0, f"f{n}", 0, {"a": rng.random() < chance}) for n in range(families)])
        assert found is not None
        held += found[0] <= chance <= found[1]
    return held / rounds


def false_alarms(rounds: int) -> float:
    """Share of pairs of equal candidates that the test calls different at 0.05."""
    rng, found = random.Random(2), 0
    for _ in range(rounds):
        chances = {family: rng.betavariate(4, 2) for family, _ in SHAPE}
        p_value = compare_runs(a_run(rng, chances, 3), a_run(rng, chances, 3)).p_value
        found += p_value is not None and p_value <= 0.05
    return found / rounds


SIMULATED: dict[str, tuple[Callable[[], float], float, float]] = {
    "| `families` | durable-kv, 3 seeds | {} |": (lambda: coverage("families", 1000, seeds=3), 0.90, 0.99),
    "| `families` | durable-kv, 1 seed | {} |": (lambda: coverage("families", 1000, seeds=1), 0.90, 0.99),
    "| `instances` | durable-kv, 8 seeds | {} |": (lambda: coverage("instances", 1000, seeds=8), 0.93, 0.99),
    "| `instances` | durable-kv, 5 seeds | {} |": (lambda: coverage("instances", 1000, seeds=5), 0.93, 0.99),
    "| Wilson | 4 families, once each | {} |": (lambda: wilson_coverage(1000, 4), 0.93, 0.99),
    "| Wilson | 15 families, once each | {} |": (lambda: wilson_coverage(1000, 15), 0.93, 0.99),
    "| Wilson | 40 families, once each | {} |": (lambda: wilson_coverage(1000, 40), 0.93, 0.99),
    "| sign-flip test | durable-kv, 3 seeds, equal candidates | {} |": (lambda: false_alarms(300), 0.0, 0.05),
}
"""Lines of docs/statistics.md with the figure that comes out here, and what it must lie between."""


@pytest.mark.parametrize("line", SIMULATED)
def test_what_the_page_says_of_it_is_what_a_simulation_gives(line: str) -> None:
    simulate, least, most = SIMULATED[line]
    share = simulate()
    assert least <= share <= most
    assert line.format(f"{100 * share:.1f} %") in PAGE.splitlines()


def test_a_difference_that_is_there_is_found() -> None:
    rng = random.Random(3)
    good, bad = dict.fromkeys((name for name, _ in SHAPE), 0.9), dict.fromkeys((name for name, _ in SHAPE), 0.3)
    result = compare_runs(a_run(rng, bad, 5), a_run(rng, good, 5))
    assert result.p_value is not None
    assert result.p_value < 0.01
    assert result.difference < -0.3
    assert len(result.regressed) > len(result.improved)


def test_what_only_one_run_has_is_counted_and_not_compared() -> None:
    rng = random.Random(4)
    chances = dict.fromkeys((name for name, _ in SHAPE), 0.5)
    result = compare_runs(a_run(rng, chances, 3), a_run(rng, chances, 2))
    assert (result.matched, result.unmatched, result.families) == (2 * len(SHAPE), len(SHAPE), len(SHAPE))


def test_there_is_no_interval_for_families_below_eight_of_them() -> None:
    few = [Observed(seed, f"f{n}", 0, {"a": (seed + n) % 3 > 0}) for seed in range(9) for n in range(7)]
    assert [interval.estimand for interval in score_intervals({"a": Decimal(1)}, few)] != ["families"]
    assert all(interval.estimand == "instances" for interval in score_intervals({"a": Decimal(1)}, few))


def test_where_nothing_varies_there_is_no_interval() -> None:
    same = [Observed(seed, f"f{n}", 0, {"a": True}) for seed in range(9) for n in range(9)]
    assert score_intervals({"a": Decimal(1)}, same) == []


def test_seeds_and_repeats_of_a_family_do_not_narrow_the_interval_for_families() -> None:
    once = [Observed(0, f"f{n}", 0, {"a": n % 3 > 0}) for n in range(12)]
    often = [Observed(seed, f"f{n}", 0, {"a": n % 3 > 0}) for n in range(12) for seed in range(50)]
    (one,), (other, *_) = score_intervals({"a": Decimal(1)}, once), score_intervals({"a": Decimal(1)}, often)
    assert (one.low, one.high) == pytest.approx((other.low, other.high))


def test_bounds_are_rounded_outwards_and_written_as_decimals() -> None:
    (interval, *_) = score_intervals({"a": Decimal(1)}, [Observed(0, f"f{n}", 0, {"a": n > 2}) for n in range(9)])
    shown = interval.to_json()
    assert float(shown["low"]) <= interval.low
    assert float(shown["high"]) >= interval.high
    assert shown["estimand"] == "families"


def test_wilsons_interval_is_there_at_one_observation_for_each_family_only() -> None:
    once = [Observed(0, f"f{n}", 0, {"a": n > 2}) for n in range(10)]
    found = pass_rate_interval(once)
    assert found == pytest.approx((0.3968, 0.8922), abs=1e-3)
    assert pass_rate_interval([*once, Observed(1, "f0", 0, {"a": True})]) is None


def test_pass_at_k_and_pass_hat_k_are_absent_below_k_tries() -> None:
    tries = [Observed(0, "f", repeat, {"a": repeat < 2}) for repeat in range(4)]
    assert pass_at_k(tries, 1) == pass_hat_k(tries, 1) == 0.5
    assert pass_at_k(tries, 2) == pytest.approx(5 / 6)
    assert pass_hat_k(tries, 2) == pytest.approx(1 / 6)
    assert pass_at_k(tries, 5) is None
    assert pass_hat_k([*tries, Observed(0, "g", 0, {"a": True})], 2) is None


def test_the_flip_rate_tells_families_that_waver() -> None:
    tries = [Observed(0, name, repeat, {"a": name == "sure" or repeat % 2 == 0}) for name in ("sure", "wavers")
             for repeat in range(2)]  # fmt: skip
    assert flip_rates(tries) == {"sure": 0.0, "wavers": 1.0}


def test_the_detectable_effect_shrinks_with_alpha_and_grows_with_power() -> None:
    (interval, *_) = score_intervals({"a": Decimal(1)}, [Observed(0, f"f{n}", 0, {"a": n % 2 > 0}) for n in range(20)])
    assert detectable_effect(interval, alpha=0.1) < detectable_effect(interval) < detectable_effect(interval, power=0.9)


@given(st.lists(st.floats(-1, 1, allow_nan=False), min_size=1, max_size=6))
def test_the_p_value_does_not_depend_on_the_sign(differences: list[float]) -> None:
    one, other = sign_flip_p(differences), sign_flip_p([-value for value in differences])
    assert one == pytest.approx(other)
    assert one is not None
    assert 0 < one <= 1


def test_the_core_is_imported_without_scipy() -> None:
    code = "import sys, casewarden.core.statistics, casewarden.wiring; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
