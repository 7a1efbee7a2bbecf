"""What a status has beside a score, in words: one place for the command line and the report. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["beside_the_score"]


def beside_the_score(status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what each thing is called and what is said of it; what there is too little of to say has no line."""
    interval, statistics = status.get("scoreInterval") or {}, status.get("statistics") or {}
    if interval:
        of = f"{interval['estimand']}, {interval['method']}, {interval['families']} families"
        yield "interval", f"{interval['low']} to {interval['high']} at 95 % ({of})"
    yield from _statistics(statistics)
    floor = status.get("floor") or {}
    if floor:
        names = {"nullAgent": "null agent", "reference": "reference", "audit": "audit"}
        yield "floor", ", ".join(f"{names[key]} {value}" for key, value in floor.items() if key in names)
    if baseline := status.get("baseline"):
        yield "baseline", _baseline(baseline)
    if regrade := status.get("regrade"):
        yield "regrade", _regrade(regrade)


def _statistics(statistics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if wilson := statistics.get("passRateInterval"):
        yield "pass rate", f"{wilson['low']} to {wilson['high']} at 95 % ({wilson['method']})"
    for key, name in (("passAt", "pass@k"), ("passAll", "pass^k")):
        if shares := statistics.get(key):
            yield name, ", ".join(f"{k}: {shares[k]}" for k in sorted(shares, key=int))
    if "flipRate" in statistics:
        flips = ", ".join(f"{item['case']} {item['rate']}" for item in statistics.get("flips") or ())
        yield "flip rate", statistics["flipRate"] + (f" (most: {flips})" if flips else "")
    if effect := statistics.get("detectableEffect"):
        told = f"alpha {effect['alpha']}, power {effect['power']}"
        yield "detectable", f"a difference of {effect['effect']} to another such score ({told})"


def _baseline(baseline: Mapping[str, Any]) -> str:
    if baseline.get("problem"):
        return f"{baseline['evalRun']}: no comparison: {baseline['problem']}"
    said = [f"{baseline['evalRun']} scores {baseline.get('score')}"]
    said.append(f"families pass {baseline['difference']} more often on average")
    if "pValue" in baseline:
        said.append(f"p = {baseline['pValue']} ({baseline['method']})")
    said.append(f"{baseline['matched']} pairs of {baseline['families']} families, {baseline['unmatched']} unmatched")
    said += [f"{key}: {', '.join(baseline[key])}" for key in ("regressed", "improved") if baseline.get(key)]
    return "; ".join(said)


def _regrade(regrade: Mapping[str, Any]) -> str:
    said = f"{regrade['graded']} records of {regrade['evalRun']} ({regrade['task']}), {regrade['changed']} changed"
    said += f", score {regrade['score']} before" if "score" in regrade else ", no score before"
    changes = "; ".join(
        f"{item['seed']}/{item['case']}/{item['repeat']} {item['before']} to {item['after']}"
        for item in regrade.get("changes") or ()
    )
    return f"{said}: {changes}" if changes else said
