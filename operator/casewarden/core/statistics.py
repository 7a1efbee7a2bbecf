"""How sure a score is, and whether two scores differ. Pure; scipy is imported where it is used, never before.

Two questions have two answers, and an interval says which one it is about (its *estimand*):

- ``families``: these families of cases stand for others that might have been written. Families vary, so their number
  decides; seeds and repeats of one family are one family. Cluster-robust, stratified by what a family checks, with
  Student's t of as many degrees of freedom as there are families less strata (G - 1 where all families check the same:
  with more strata G - 1 was seen to promise too much); absent below 8 families, or with fewer than 4 degrees.
- ``instances``: the families are all that is asked about, and seeds stand for other seeds. A seed's cases are one unit,
  since they are made from one number; absent below 5 seeds.

Where nothing varied there is no interval: that nothing was seen to vary is not the same as certainty.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from statistics import fmean, variance
from typing import Any, Final, Literal

__all__ = [
    "Comparison", "Interval", "Observed", "compare_runs", "detectable_effect", "flip_rates", "pass_at_k", "pass_hat_k",
    "pass_rate_interval", "score_intervals", "sign_flip_p",
]  # fmt: skip

LEAST_FAMILIES: Final = 8
LEAST_SEEDS: Final = 5
LEAST_DEGREES: Final = 4
CONFIDENCE: Final = 0.95
_RESAMPLES: Final = 9999
_EXACT_FAMILIES: Final = 13
Estimand = Literal["families", "instances"]


@dataclass(frozen=True, slots=True)
class Observed:
    """An assessed case: ``checks`` by dimension."""

    seed: int
    family: str
    repeat: int
    checks: Mapping[str, bool]

    @property
    def passed(self) -> bool:
        """Tell whether every check is true."""
        return all(self.checks.values())


@dataclass(frozen=True, slots=True)
class Interval:
    """Bounds of a score with 95 % confidence; ``method`` names how, ``families`` how many families they rest on."""

    estimand: Estimand
    low: float
    high: float
    method: str
    families: int

    def to_json(self) -> dict[str, Any]:
        """Return it as the status has it: bounds rounded outwards to four places, so that they promise no more."""
        low, high = math.floor(self.low * 10000) / 10000, math.ceil(self.high * 10000) / 10000
        return {
            "estimand": self.estimand,
            "low": _text(low),
            "high": _text(high),
            "method": self.method,
            "families": self.families,
        }


def _text(value: float) -> str:
    return format(Decimal(f"{value:.4f}").normalize(), "f")


def _t(probability: float, degrees: int) -> float:
    from scipy import special

    return float(special.stdtrit(degrees, probability))


def score_intervals(weights: Mapping[str, Decimal], observed: Sequence[Observed]) -> list[Interval]:
    """Return the intervals that there are, ``families`` first."""
    found = (_families(weights, observed), _instances(weights, observed))
    return [interval for interval in found if interval is not None]


def _around(estimand: Estimand, score: float, spread: float, degrees: int, method: str, families: int) -> Interval:
    half = _t(0.5 + CONFIDENCE / 2, degrees) * math.sqrt(spread)
    return Interval(estimand, max(0.0, score - half), min(1.0, score + half), method, families)


def _families(weights: Mapping[str, Decimal], observed: Sequence[Observed]) -> Interval | None:
    """Linearise the score in the families; families that check the same dimensions are a stratum."""
    names = sorted({item.family for item in observed})
    if len(names) < LEAST_FAMILIES:
        return None
    total: dict[str, int] = defaultdict(int)
    right: dict[str, int] = defaultdict(int)
    of_family: dict[str, dict[str, list[int]]] = {name: defaultdict(lambda: [0, 0]) for name in names}
    for item in observed:
        for dimension, check in item.checks.items():
            total[dimension] += 1
            right[dimension] += check
            counts = of_family[item.family][dimension]
            counts[0] += check
            counts[1] += 1
    share = {dimension: float(weights[dimension]) / total[dimension] for dimension in total}
    weight = {name: sum(share[d] * counts[1] for d, counts in of_family[name].items()) for name in names}
    means = {name: sum(share[d] * counts[0] for d, counts in of_family[name].items()) / weight[name] for name in names}
    strata: dict[frozenset[str], list[str]] = defaultdict(list)
    for name in names:
        strata[frozenset(of_family[name])].append(name)
    spread = 0.0
    pooled = variance(means.values())
    for members in strata.values():
        if len(members) == 1:
            # One family alone says nothing of how such families vary: all of them lend it their variance.
            spread += weight[members[0]] ** 2 * pooled
            continue
        residuals = [
            sum(share[d] * (counts[0] - counts[1] * right[d] / total[d]) for d, counts in of_family[name].items())
            for name in members
        ]
        middle = fmean(residuals)
        spread += len(members) / (len(members) - 1) * sum((value - middle) ** 2 for value in residuals)
    if spread <= 1e-18 or len(names) - len(strata) < LEAST_DEGREES:
        return None
    score = sum(float(weights[d]) * right[d] / total[d] for d in total)
    return _around("families", score, spread, len(names) - len(strata), "cluster-robust t, by dimension", len(names))


def _instances(weights: Mapping[str, Decimal], observed: Sequence[Observed]) -> Interval | None:
    by_seed: dict[int, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for item in observed:
        for dimension, check in item.checks.items():
            by_seed[item.seed][dimension].append(check)
    if len(by_seed) < LEAST_SEEDS:
        return None
    scores = [sum(float(weights[d]) * fmean(checks) for d, checks in seed.items()) for seed in by_seed.values()]
    spread = variance(scores) / len(scores)
    if spread <= 1e-18:
        return None
    families = len({item.family for item in observed})
    return _around("instances", fmean(scores), spread, len(scores) - 1, "t over seeds", families)


def pass_rate_interval(observed: Sequence[Observed]) -> tuple[float, float] | None:
    """Return Wilson's interval of the pass rate; None unless each family was observed exactly once."""
    if not observed or len({item.family for item in observed}) != len(observed):
        return None
    from scipy import stats

    result = stats.binomtest(sum(item.passed for item in observed), len(observed))
    interval = result.proportion_ci(confidence_level=CONFIDENCE, method="wilson")
    return float(interval.low), float(interval.high)


def _repeats(observed: Iterable[Observed]) -> dict[tuple[int, str], list[bool]]:
    found: dict[tuple[int, str], list[bool]] = defaultdict(list)
    for item in observed:
        found[item.seed, item.family].append(item.passed)
    return found


def pass_at_k(observed: Sequence[Observed], k: int) -> float | None:
    """Return how likely one of ``k`` tries passes; None where some case was assessed fewer than ``k`` times."""
    return _of_k(observed, k, lambda n, c: 1 - Fraction(math.comb(n - c, k), math.comb(n, k)))


def pass_hat_k(observed: Sequence[Observed], k: int) -> float | None:
    """Return how likely all of ``k`` tries pass; None where some case was assessed fewer than ``k`` times."""
    return _of_k(observed, k, lambda n, c: Fraction(math.comb(c, k), math.comb(n, k)))


def _of_k(observed: Sequence[Observed], k: int, share: Any) -> float | None:
    cases = _repeats(observed)
    if not cases or k < 1 or any(len(tries) < k for tries in cases.values()):
        return None
    return float(sum((share(len(tries), sum(tries)) for tries in cases.values()), Fraction(0)) / len(cases))


def flip_rates(observed: Sequence[Observed]) -> dict[str, float]:
    """Return for each family how likely two tries of the same case differ; families without repeats are left out."""
    rates: dict[str, list[float]] = defaultdict(list)
    for (_, family), tries in _repeats(observed).items():
        n, c = len(tries), sum(tries)
        if n > 1:
            rates[family].append(2 * c * (n - c) / (n * (n - 1)))
    return {family: fmean(values) for family, values in sorted(rates.items())}


def detectable_effect(interval: Interval, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """Return the smallest difference of two such scores that a test at ``alpha`` finds with ``power``."""
    degrees = interval.families - 1
    error = (interval.high - interval.low) / 2 / _t(0.5 + CONFIDENCE / 2, degrees)
    return (_t(1 - alpha / 2, degrees) + _t(power, degrees)) * error * math.sqrt(2)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run against its baseline. ``difference`` is the mean over families of the difference of their pass rates."""

    families: int
    matched: int
    unmatched: int
    difference: float
    p_value: float | None
    regressed: tuple[str, ...]
    improved: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it for people and programs."""
        return {
            "families": self.families,
            "matched": self.matched,
            "unmatched": self.unmatched,
            "difference": round(self.difference, 8),
            "p_value": None if self.p_value is None else round(self.p_value, 6),
            "method": "sign-flip test on family means",
            "regressed": list(self.regressed),
            "improved": list(self.improved),
        }


def compare_runs(run: Sequence[Observed], baseline: Sequence[Observed]) -> Comparison:
    """Compare two runs of the same cases, paired by family and seed; what only one of them has counts as unmatched."""
    one, other = _repeats(run), _repeats(baseline)
    both = one.keys() & other.keys()
    differences: dict[str, list[float]] = defaultdict(list)
    for key in sorted(both):
        differences[key[1]].append(fmean(one[key]) - fmean(other[key]))
    means = {family: fmean(values) for family, values in differences.items()}
    return Comparison(
        families=len(means),
        matched=len(both),
        unmatched=len(one.keys() ^ other.keys()),
        difference=fmean(means.values()) if means else 0.0,
        p_value=sign_flip_p(list(means.values())),
        regressed=tuple(family for family, value in means.items() if value < 0),
        improved=tuple(family for family, value in means.items() if value > 0),
    )


def sign_flip_p(differences: Sequence[float]) -> float | None:
    """Return the two-sided p-value that family means of differences are symmetric about 0; None for no family.

    Exact up to 13 families, beyond that by 9999 draws from a fixed seed, so that it can be recomputed.
    """
    if not differences:
        return None
    if not any(differences) or len(differences) == 1:
        return 1.0
    import numpy
    from scipy import stats

    exact = len(differences) <= _EXACT_FAMILIES
    result = stats.permutation_test(
        (numpy.asarray(differences, dtype=float),),
        lambda values, axis: numpy.mean(values, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=numpy.inf if exact else _RESAMPLES,
        rng=numpy.random.default_rng(0),
    )
    return float(result.pvalue)
