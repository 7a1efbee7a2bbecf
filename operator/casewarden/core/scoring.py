"""From verdicts to a score: exact, and absent unless every case was assessed.

Sums are fractions of whole numbers and are rounded once, at the end, to a decimal of at most 8 places, half to even. A
rule has a name and a version; another way of scoring is another name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

__all__ = [
    "AGENTBENCH",
    "OWN_RULES",
    "PLACES",
    "RULES",
    "WEIGHTED_DIMENSIONS",
    "CaseResult",
    "DimensionResult",
    "OwnScore",
    "Score",
    "Scorer",
    "agentbench",
    "decimal_text",
    "meets",
    "weighted_dimensions",
    "with_own",
]

PLACES: Final = 8
WEIGHTED_DIMENSIONS: Final = "weighted-dimensions/v1"
AGENTBENCH: Final = "agentbench/v1"


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What a case of the plan came to, so far.

    ``checks`` are bits over the case's dimensions sorted by name (``1``, ``0``, ``-``); ``status`` is a verdict's, or
    None while the case has none.
    """

    dimensions: tuple[str, ...]
    status: str | None = None
    checks: str = ""

    @property
    def is_assessed(self) -> bool:
        """Tell whether every check of the case is true or false."""
        return self.status is not None and self.status != "environment_error"


@dataclass(frozen=True, slots=True)
class DimensionResult:
    """Counts of one dimension: ``total`` cases check it. ``score`` is absent until all of them are assessed."""

    weight: str
    passed: int
    assessed: int
    total: int
    score: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the dimension as the status has it."""
        row = {"weight": self.weight, "passed": self.passed, "assessed": self.assessed, "total": self.total}
        return row if self.score is None else {**row, "score": self.score}


@dataclass(frozen=True, slots=True)
class Score:
    """What a run came to by a rule. ``score`` and ``pass_rate`` are absent unless ``valid``.

    ``files`` are the digests of the files that a pack's own rule made, by name.
    """

    rule: str
    valid: bool
    resolved: bool
    total: int
    assessed: int
    passed: int
    score: str | None
    pass_rate: str | None
    dimensions: Mapping[str, DimensionResult]
    files: Mapping[str, str] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the score document that evidence keeps."""
        document: dict[str, Any] = {
            "rule": self.rule,
            "valid": self.valid,
            "resolved": self.resolved,
            "total": self.total,
            "assessed": self.assessed,
            "passed": self.passed,
            "dimensions": {name: result.to_json() for name, result in sorted(self.dimensions.items())},
        }
        if self.valid:
            document |= {"score": self.score, "pass_rate": self.pass_rate}
        return document if self.files is None else {**document, "files": dict(self.files)}


def decimal_text(value: Fraction | Decimal | str) -> str:
    """Write a number of at least 0 with at most 8 places, half to even, without trailing zeros."""
    exact = Fraction(value)
    scaled, rest = divmod(exact.numerator * 10**PLACES, exact.denominator)
    if rest * 2 > exact.denominator or (rest * 2 == exact.denominator and scaled % 2):
        scaled += 1
    whole, part = divmod(scaled, 10**PLACES)
    return f"{whole}.{part:0{PLACES}d}".rstrip("0").rstrip(".")


def weighted_dimensions(weights: Mapping[str, Decimal], results: Iterable[CaseResult]) -> Score:
    """Score by ``weighted-dimensions/v1``: the mean of the checks of each dimension, times the weights.

    The score is valid when every case is assessed; every case of the plan must be in ``results``, times its repeats,
    those without a verdict too. ``weights`` sum to 1.
    """
    totals = dict.fromkeys(weights, 0)
    assessed = dict.fromkeys(weights, 0)
    passed = dict.fromkeys(weights, 0)
    cases = cases_assessed = cases_passed = 0
    for result in results:
        cases += 1
        cases_assessed += result.is_assessed
        cases_passed += result.status == "passed"
        bits = result.checks if result.is_assessed else "-" * len(result.dimensions)
        for name, bit in zip(sorted(result.dimensions), bits, strict=True):
            totals[name] += 1
            assessed[name] += bit != "-"
            passed[name] += bit == "1"
    valid = cases > 0 and cases_assessed == cases and all(totals.values())
    score = (
        sum((Fraction(weights[name]) * Fraction(passed[name], totals[name]) for name in weights), Fraction(0))
        if valid
        else None
    )
    return Score(
        rule=WEIGHTED_DIMENSIONS,
        valid=valid,
        resolved=valid and cases_passed == cases,
        total=cases,
        assessed=cases_assessed,
        passed=cases_passed,
        score=None if score is None else decimal_text(score),
        pass_rate=decimal_text(Fraction(cases_passed, cases)) if valid else None,
        dimensions={name: _dimension(weights[name], passed[name], assessed[name], totals[name]) for name in weights},
    )


def _dimension(weight: Decimal, passed: int, assessed: int, total: int) -> DimensionResult:
    whole = total > 0 and assessed == total
    score = decimal_text(Fraction(passed, total)) if whole else None
    return DimensionResult(decimal_text(weight), passed, assessed, total, score)


@dataclass(frozen=True, slots=True)
class OwnScore:
    """What a pack's own rule made of a run: its score, a decimal, and the digests of the files that it wrote.

    Where no case was assessed there is no score.
    """

    score: str | None
    files: Mapping[str, str]


def agentbench(weights: Mapping[str, Decimal], results: Iterable[CaseResult]) -> Score:
    """Count by ``agentbench/v1``, whose score is the pack's own to make: there is none before ``with_own``."""
    counted = weighted_dimensions(weights, results)
    return replace(counted, rule=AGENTBENCH, valid=False, resolved=False, score=None, pass_rate=None)


def with_own(score: Score, own: OwnScore | None) -> Score:
    """Return a score of a pack's own rule with what the pack made of it; valid when every case was assessed."""
    if own is None:
        return score
    valid = own.score is not None and score.total > 0 and score.assessed == score.total
    return replace(
        score,
        valid=valid,
        resolved=valid and score.passed == score.total,
        score=own.score if valid else None,
        pass_rate=decimal_text(Fraction(score.passed, score.total)) if valid else None,
        files=dict(own.files),
    )


Scorer = Callable[[Mapping[str, Decimal], Sequence[CaseResult]], Score]
RULES: Final[Mapping[str, Scorer]] = {WEIGHTED_DIMENSIONS: weighted_dimensions, AGENTBENCH: agentbench}
"""The aggregation rules that this version has."""
OWN_RULES: Final = frozenset({AGENTBENCH})
"""Those whose score a pack makes, out of all that its cases came to."""


def meets(score: Score, lowest: str | None, dimensions: Mapping[str, str]) -> list[str]:
    """Return what a valid score falls short of, in words; empty where it reaches every threshold.

    The numbers compared are those that are shown, so that a reader can check.
    """
    short = []
    if lowest is not None and score.score is not None and Decimal(score.score) < Decimal(lowest):
        short.append(f"score {score.score} is below {lowest}")
    for name, bound in sorted(dimensions.items()):
        result = score.dimensions[name]
        if result.score is not None and Decimal(result.score) < Decimal(bound):
            short.append(f"dimension {name} is {result.score}, below {bound}")
    return short
