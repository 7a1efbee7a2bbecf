"""The metrics: the names that were promised, closed labels, and a table that is whole."""

from __future__ import annotations

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from casewarden.adapters.metrics import DEFINITIONS, PrometheusMetrics
from casewarden.api.reasons import AttemptReason
from casewarden.ports.metrics import Metric

NAMES = {
    "casewarden_runs", "casewarden_runs_finished_total", "casewarden_cases", "casewarden_case_finished_total",
    "casewarden_case_duration_seconds", "casewarden_case_queue_seconds", "casewarden_case_retries_total",
    "casewarden_pod_create_throttled_total", "casewarden_evidence_incomplete_total",
    "casewarden_reconcile_duration_seconds", "casewarden_reconcile_errors_total",
    "casewarden_watch_last_event_timestamp_seconds",
    "casewarden_status_write_conflicts_total", "casewarden_api_requests_total", "casewarden_event_loop_lag_seconds",
    "casewarden_build_info", "casewarden_slots", "casewarden_slots_longest_wait_seconds",
    "casewarden_slots_solve_seconds",
}  # fmt: skip


def test_these_are_the_metrics() -> None:
    assert {str(metric) for metric in Metric} == NAMES
    assert set(DEFINITIONS) == set(Metric)


@pytest.mark.parametrize("metric", list(Metric))
def test_each_has_a_help_text_and_no_label_that_grows_with_what_runs(metric: Metric) -> None:
    definition = DEFINITIONS[metric]
    assert definition.help.endswith((".", "1."))
    assert (definition.type == "counter") == metric.endswith("_total")
    assert not {"run", "case", "pod", "url", "name", "namespace", "model", "node"} & set(definition.labels)
    for values in definition.labels.values():
        assert 0 < len(values) < 64
        assert all(re.fullmatch(r"[A-Za-z0-9_.+-]+", value) for value in values)


def test_every_reason_of_an_attempt_can_be_counted() -> None:
    assert set(AttemptReason) <= set(DEFINITIONS[Metric.CASE_FINISHED].labels["reason"])


def test_a_foreign_label_value_is_counted_as_other() -> None:
    metrics = PrometheusMetrics()
    metrics.add(Metric.CASE_RETRIES, cause="pod-4711")
    metrics.add(Metric.CASE_RETRIES, cause="environment")
    (family,) = [
        f for f in text_string_to_metric_families(metrics.text().decode()) if f.name == "casewarden_case_retries"
    ]
    counts = {sample.labels["cause"]: sample.value for sample in family.samples if sample.name.endswith("_total")}
    assert counts == {"other": 1.0, "environment": 1.0}


def test_every_metric_can_be_moved_and_is_then_shown() -> None:
    metrics = PrometheusMetrics()
    for metric, definition in DEFINITIONS.items():
        labels = {name: values[0] for name, values in definition.labels.items()} | dict.fromkeys(definition.open, "x")
        if definition.type == "counter":
            metrics.add(metric, 2, **labels)
        elif definition.type == "gauge":
            metrics.set(metric, 2, **labels)
        else:
            metrics.observe(metric, 2, **labels)
    samples = {s.name: s.value for f in text_string_to_metric_families(metrics.text().decode()) for s in f.samples}
    for metric, definition in DEFINITIONS.items():
        shown = f"{metric}_sum" if definition.type == "histogram" else str(metric)
        assert samples[shown] == 2
