"""Runs for reports and exports, as many cases as are wanted, with what candidates may write in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from casewarden.core.model import CaseKey
from casewarden.reporting.run import ReportedCase, ReportedRun

HOSTILE = (
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror='window.pwned=2'>",
    "\u2028\u2029]]><!--<svg onload=window.pwned=3>",
    "\"'><iframe src=javascript:window.pwned=4></iframe>&lt;b&gt;\x00\x1b[31m",
)


def case(name: str, status: str = "passed", seed: int = 17, **rest: Any) -> ReportedCase:
    """Return a case of two dimensions."""
    check = {"passed": True, "failed": False, "agent_error": False}.get(status)
    made = {"key": CaseKey(seed, name, 0), "status": status, "checks": {"basic": check, "crash": check},
            "seconds": 1.5, "attempt": 1, "attempts": 1, "ended_at": 1.7e9} | rest  # fmt: skip
    return ReportedCase(**made)


def run(cases: Sequence[ReportedCase], name: str = "one", **rest: Any) -> ReportedRun:
    """Return a run of these cases."""
    assessed, passed = sum(item.is_assessed for item in cases), sum(item.status == "passed" for item in cases)
    valid = assessed == len(cases)
    share = f"{passed / len(cases):.4g}" if cases else "0"
    dimension = {"weight": "0.5", "passed": passed, "assessed": assessed, "total": len(cases)}
    dimension |= {"score": share} if valid else {}
    score = {"rule": "weighted-dimensions/v1", "valid": valid, "dimensions": {"basic": dimension, "crash": dimension}}
    score |= {"score": share, "pass_rate": share} if valid else {}
    made: dict[str, Any] = {
        "name": name, "namespace": "evals", "uid": f"uid-{name}", "task": "small@0.1.0", "candidate": "control x",
        "score": score, "fingerprints": {"cases": "c", "grader": "g", "contract": "k"}, "seeds": (17,),
        "spec": {"repeats": 1, "threshold": {"score": "0.8"}}, "digest": "sha256:" + "0" * 64, "cases": tuple(cases),
        "limits": {"case_seconds": 120.0, "actions": 30, "memory_mib": 256},
    } | rest  # fmt: skip
    return ReportedRun(**made)


def rows(*texts: str) -> list[dict[str, Any]]:
    """Return a transcript in which the candidate says these texts."""
    return [
        {"t": 0.0, "session": 1, "dir": "start", "text": "python3 main.py"},
        *({"t": 0.5, "session": 1, "dir": "out", "text": text} for text in texts),
    ]


def many(count: int, families: int = 20) -> list[ReportedCase]:
    """Return so many cases, a tenth of them failed and every hundredth an agent error."""
    return [
        case(
            f"family-{number % families}",
            "agent_error" if number % 100 == 0 else "failed" if number % 10 == 0 else "passed",
            seed=number // families,
            error="expected 3, got 4" if number % 10 == 0 else None,
        )
        for number in range(count)
    ]
