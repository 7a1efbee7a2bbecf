"""From a run's verdicts to what statistics is done with, and what of it a status shows. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from casewarden.core.model import CaseKey
from casewarden.core.statistics import (
    Observed,
    detectable_effect,
    flip_rates,
    pass_at_k,
    pass_hat_k,
    pass_rate_interval,
    score_intervals,
)

__all__ = ["observe_case", "shown_interval", "shown_statistics", "warm_up"]

_KS = (1, 2, 3, 4, 5, 8, 10, 100)
_FLIPS = 20
_ALPHA, _POWER = 0.05, 0.8


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


def shown_statistics(weights: Mapping[str, Decimal], cases: Iterable[Observed | None]) -> dict[str, Any]:
    """Return ``status.statistics``: what there is too little of to say is absent, so that it may be empty."""
    observed = [case for case in cases if case is not None]
    shown: dict[str, Any] = {}
    wilson = pass_rate_interval(observed)
    if wilson is not None:
        low, high = math.floor(wilson[0] * 10000) / 10000, math.ceil(wilson[1] * 10000) / 10000
        shown["passRateInterval"] = {"low": _text(low), "high": _text(high), "method": "Wilson"}
    # One try says nothing of several, and of itself no more than the pass rate does.
    if pass_at_k(observed, 2) is not None:
        for name, share in (("passAt", pass_at_k), ("passAll", pass_hat_k)):
            shares = {str(k): share(observed, k) for k in _KS}
            shown[name] = {k: _text(value) for k, value in shares.items() if value is not None}
    rates = flip_rates(observed)
    if rates:
        shown["flipRate"] = _text(sum(rates.values()) / len(rates))
        worst = sorted((item for item in rates.items() if item[1] > 0), key=lambda item: (-item[1], item[0]))
        if worst:
            shown["flips"] = [{"case": family, "rate": _text(rate)} for family, rate in worst[:_FLIPS]]
    interval = next((item for item in score_intervals(weights, observed) if item.estimand == "families"), None)
    if interval is not None:
        effect = detectable_effect(interval, alpha=_ALPHA, power=_POWER)
        shown["detectableEffect"] = {"effect": _text(min(1.0, effect)), "alpha": _text(_ALPHA), "power": _text(_POWER)}
    return shown


def _text(value: float) -> str:
    text = format(Decimal(f"{value:.4f}").normalize(), "f")
    return "0" if text == "-0" else text


def warm_up() -> None:
    """Import what is computed with: it takes seconds the first time, so not on an event loop."""
    import scipy.special
    import scipy.stats  # noqa: F401
