"""The audits that dashboards see: those that are there, as their status says, and never too many."""

from __future__ import annotations

from typing import Any

from casewarden.controller.audit_scores import AuditScores
from casewarden.ports.metrics import RecordedMetrics


def audit(name: str, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"uid": f"uid-{name}", "name": name, "namespace": "evals"},
        "spec": {"task": {"name": "durable-kv"}},
        "status": {"completionTime": "2026-11-30T12:00:00Z", **status},
    }


def shown(scores: AuditScores) -> dict[tuple[str, ...], float]:
    metrics = RecordedMetrics()
    scores.measure(metrics)
    return metrics.gauges


OF = ("audit=a", "namespace=evals", "task=durable-kv")


def test_a_finished_audit_is_shown_by_its_outcome_its_score_and_its_margin() -> None:
    scores = AuditScores()
    scores.saw(audit("a", passed=False, valid=True, mutationScore="0.875", weakestMargin=0))
    assert shown(scores) == {
        ("casewarden_audit_passed", *OF): 0.0,
        ("casewarden_audit_mutation_score", *OF): 0.875,
        ("casewarden_audit_weakest_margin", *OF): 0.0,
    }


def test_an_audit_that_is_not_valid_or_goes_on_is_not_shown() -> None:
    scores = AuditScores()
    scores.saw(audit("a", valid=False))
    scores.saw(audit("b", passed=True, completionTime=None))
    assert shown(scores) == {}


def test_the_series_go_with_the_audit() -> None:
    scores = AuditScores()
    scores.saw(audit("a", passed=True))
    scores.gone("uid-a")
    assert shown(scores) == {}


def test_the_newest_audits_are_shown() -> None:
    scores = AuditScores(limit=2)
    for number in range(5):
        scores.saw(audit(f"a{number}", passed=True, completionTime=f"2026-11-30T12:00:0{number}Z"))
    assert {label for key in shown(scores) for label in key if label.startswith("audit=")} == {"audit=a3", "audit=a4"}
