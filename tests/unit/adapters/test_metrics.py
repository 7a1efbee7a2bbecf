"""The metrics: the names that were promised, closed labels, and a table that is whole."""

from __future__ import annotations

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from casewarden.adapters.metrics import DEFINITIONS, PrometheusMetrics
from casewarden.api.reasons import AttemptReason
from casewarden.ports.metrics import Metric

OF_ONE_RUN = {
    "casewarden_run_score": (),
    "casewarden_run_dimension_score": ("dimension",),
    "casewarden_run_assessed_ratio": (),
    "casewarden_run_score_bound": ("bound",),
    "casewarden_run_score_floor": ("control",),
    "casewarden_run_model_calls": ("asked_by",),
    "casewarden_run_model_tokens": ("asked_by", "kind"),
    "casewarden_run_model_cost": ("asked_by",),
}
OF_ONE_AUDIT = {"casewarden_audit_passed", "casewarden_audit_mutation_score", "casewarden_audit_weakest_margin"}
NAMES = {
    "casewarden_runs", "casewarden_runs_finished_total", "casewarden_cases", "casewarden_case_finished_total",
    "casewarden_case_duration_seconds", "casewarden_case_queue_seconds", "casewarden_case_retries_total",
    "casewarden_pod_create_throttled_total", "casewarden_evidence_incomplete_total",
    "casewarden_reconcile_duration_seconds", "casewarden_reconcile_errors_total",
    "casewarden_watch_last_event_timestamp_seconds",
    "casewarden_status_write_conflicts_total", "casewarden_api_requests_total", "casewarden_event_loop_lag_seconds",
    "casewarden_build_info", "casewarden_status_writes_total", "casewarden_ledger_writes_total",
    "casewarden_ledger_rows_total", "casewarden_api_request_duration_seconds", "casewarden_step_duration_seconds",
    "casewarden_oldest_progress_seconds", "casewarden_parallelism", "casewarden_leader",
    "casewarden_run_scores_not_shown", *OF_ONE_RUN,
    "casewarden_slots", "casewarden_slots_longest_wait_seconds",
    "casewarden_slots_solve_seconds", *OF_ONE_AUDIT,
}  # fmt: skip


def test_these_are_the_metrics() -> None:
    assert {str(metric) for metric in Metric} == NAMES
    assert set(DEFINITIONS) == set(Metric)


@pytest.mark.parametrize("metric", list(Metric))
def test_each_has_a_help_text_and_no_label_that_grows_with_what_runs(metric: Metric) -> None:
    definition = DEFINITIONS[metric]
    assert definition.help.endswith((".", "1."))
    assert (definition.type == "counter") == metric.endswith("_total")
    assert not {"case", "pod", "url", "name", "model", "node"} & set(definition.names)
    if metric in OF_ONE_RUN:
        assert definition.names == ("namespace", "run", "task", "candidate", *OF_ONE_RUN[metric])
        assert definition.type == "gauge"
    elif metric in OF_ONE_AUDIT:
        assert (definition.names, definition.type) == (("namespace", "audit", "task"), "gauge")
    else:
        # The pools are the administrator's, in the catalogue.
        assert definition.open == (("pool",) if metric is Metric.SLOTS else ())
        assert not {"run", "namespace"} & set(definition.names)
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
    assert counts == {"other": 1.0, "environment": 1.0, "interruption": 0.0, "suspended": 0.0}


def test_a_gauge_that_is_replaced_forgets_what_it_had() -> None:
    metrics = PrometheusMetrics()
    of = {"namespace": "evals", "task": "t", "candidate": "c"}
    metrics.replace(Metric.RUN_SCORE, [({**of, "run": "old"}, 0.5), ({**of, "run": "stays"}, 0.25)])
    metrics.replace(Metric.RUN_SCORE, [({**of, "run": "stays"}, 0.75)])
    text = metrics.text().decode()
    assert 'run="old"' not in text
    assert 'casewarden_run_score{candidate="c",namespace="evals",run="stays",task="t"} 0.75' in text


def test_counters_are_there_before_they_count() -> None:
    text = PrometheusMetrics().text().decode()
    assert 'casewarden_runs_finished_total{result="invalid"} 0.0' in text
    assert 'casewarden_reconcile_errors_total{type="relay"} 0.0' in text


def test_every_metric_can_be_moved_and_is_then_shown() -> None:
    metrics = PrometheusMetrics()
    for metric, definition in DEFINITIONS.items():
        labels = dict.fromkeys(definition.open, "x") | {n: values[0] for n, values in definition.labels.items()}
        if definition.type == "counter":
            metrics.add(metric, 2, **labels)
        elif definition.type == "gauge":
            metrics.set(metric, 2, **labels)
        else:
            metrics.observe(metric, 2, **labels)
    samples: dict[str, float] = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        for sample in family.samples:
            samples[sample.name] = max(sample.value, samples.get(sample.name, 0))
    for metric, definition in DEFINITIONS.items():
        shown = f"{metric}_sum" if definition.type == "histogram" else str(metric)
        assert samples[shown] == 2
