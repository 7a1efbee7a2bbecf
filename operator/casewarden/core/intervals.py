"""From a run's verdicts to what statistics is done with, and the one interval that its status shows. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from casewarden.core.model import CaseKey
from casewarden.core.statistics import Observed, score_intervals

__all__ = ["observe_case", "shown_interval", "warm_up"]


def observe_case(key: CaseKey, dimensions: Iterable[str], checks: str) -> Observed | None:
    """Return an assessed case by its bits, over its dimensions sorted; None for one that was not assessed."""
    if not checks or "-" in checks:
        return None
    named = {name: bit == "1" for name, bit in zip(sorted(dimensions), checks, strict=True)}
    return Observed(key.seed, key.case_id, key.repeat, named)


def shown_interval(weights: Mapping[str, Decimal], cases: Iterable[Observed | None]) -> dict[str, Any] | None:
    """Return ``scoreInterval``: the one for families where there is one, else the one for instances, else None."""
    observed = [case for case in cases if case is not None]
    intervals = score_intervals(weights, observed)
    return intervals[0].to_json() if intervals else None


def warm_up() -> None:
    """Import what the intervals are computed with: it takes seconds the first time, so not on an event loop."""
    import scipy.special  # noqa: F401
