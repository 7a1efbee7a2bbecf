"""What the operator counts. Labels have closed sets of values; no name of a case, pod or URL is one.

The scores of runs and audits are the one exception: they carry its name, are capped, and go when it goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Protocol

__all__ = ["Metric", "Metrics", "NoMetrics", "RecordedMetrics", "Sample"]

Sample = tuple[Mapping[str, str], float]
"""Labels and value of one series."""


class Metric(StrEnum):
    """Every metric by its name; ``adapters.metrics`` has the types, labels and help texts."""

    RUNS = "casewarden_runs"
    RUNS_FINISHED = "casewarden_runs_finished_total"
    CASES = "casewarden_cases"
    CASE_FINISHED = "casewarden_case_finished_total"
    CASE_DURATION = "casewarden_case_duration_seconds"
    CASE_QUEUE = "casewarden_case_queue_seconds"
    CASE_RETRIES = "casewarden_case_retries_total"
    CREATES_THROTTLED = "casewarden_pod_create_throttled_total"
    EVIDENCE_INCOMPLETE = "casewarden_evidence_incomplete_total"
    RECONCILE_DURATION = "casewarden_reconcile_duration_seconds"
    RECONCILE_ERRORS = "casewarden_reconcile_errors_total"
    WATCH_LAST_EVENT = "casewarden_watch_last_event_timestamp_seconds"
    STATUS_CONFLICTS = "casewarden_status_write_conflicts_total"
    STATUS_WRITES = "casewarden_status_writes_total"
    LEDGER_WRITES = "casewarden_ledger_writes_total"
    LEDGER_ROWS = "casewarden_ledger_rows_total"
    API_REQUESTS = "casewarden_api_requests_total"
    API_DURATION = "casewarden_api_request_duration_seconds"
    STEP_DURATION = "casewarden_step_duration_seconds"
    OLDEST_PROGRESS = "casewarden_oldest_progress_seconds"
    PARALLELISM = "casewarden_parallelism"
    LEADER = "casewarden_leader"
    SLOTS = "casewarden_slots"
    SLOTS_LONGEST_WAIT = "casewarden_slots_longest_wait_seconds"
    SLOTS_SOLVE = "casewarden_slots_solve_seconds"
    LOOP_LAG = "casewarden_event_loop_lag_seconds"
    BUILD_INFO = "casewarden_build_info"
    RUN_SCORE = "casewarden_run_score"
    RUN_DIMENSION = "casewarden_run_dimension_score"
    RUN_ASSESSED = "casewarden_run_assessed_ratio"
    RUN_BOUND = "casewarden_run_score_bound"
    RUN_FLOOR = "casewarden_run_score_floor"
    RUN_MODEL_CALLS = "casewarden_run_model_calls"
    RUN_MODEL_TOKENS = "casewarden_run_model_tokens"
    RUN_MODEL_COST = "casewarden_run_model_cost"
    RUNS_NOT_SHOWN = "casewarden_run_scores_not_shown"
    AUDIT_PASSED = "casewarden_audit_passed"
    AUDIT_MUTATION = "casewarden_audit_mutation_score"
    AUDIT_MARGIN = "casewarden_audit_weakest_margin"


class Metrics(Protocol):
    """Where figures go. An unknown label value is counted as ``other``; none of these ever raises."""

    def add(self, metric: Metric, amount: float = 1.0, **labels: str) -> None:
        """Add to a counter."""

    def set(self, metric: Metric, value: float, **labels: str) -> None:
        """Set a gauge."""

    def observe(self, metric: Metric, value: float, **labels: str) -> None:
        """Add one observation to a histogram."""

    def replace(self, metric: Metric, samples: Iterable[Sample]) -> None:
        """Make these the only series of a gauge; the caller bounds their number."""


class NoMetrics:
    """Counts nothing."""

    def add(self, metric: Metric, amount: float = 1.0, **labels: str) -> None:
        """Do nothing."""

    def set(self, metric: Metric, value: float, **labels: str) -> None:
        """Do nothing."""

    def observe(self, metric: Metric, value: float, **labels: str) -> None:
        """Do nothing."""

    def replace(self, metric: Metric, samples: Iterable[Sample]) -> None:
        """Do nothing."""


class RecordedMetrics:
    """A fake that ships: keeps every figure by metric and labels, for tests to read."""

    def __init__(self) -> None:
        self.totals: Counter[tuple[str, ...]] = Counter()
        self.gauges: dict[tuple[str, ...], float] = {}
        self.observations: dict[tuple[str, ...], list[float]] = {}

    def add(self, metric: Metric, amount: float = 1.0, **labels: str) -> None:
        """Add to a counter."""
        self.totals[_key(metric, labels)] += amount  # type: ignore[assignment]

    def set(self, metric: Metric, value: float, **labels: str) -> None:
        """Set a gauge."""
        self.gauges[_key(metric, labels)] = value

    def observe(self, metric: Metric, value: float, **labels: str) -> None:
        """Keep one observation."""
        self.observations.setdefault(_key(metric, labels), []).append(value)

    def replace(self, metric: Metric, samples: Iterable[Sample]) -> None:
        """Keep these and forget what the gauge had."""
        for key in [key for key in self.gauges if key[0] == str(metric)]:
            del self.gauges[key]
        for labels, value in samples:
            self.set(metric, value, **labels)


def _key(metric: Metric, labels: Mapping[str, str]) -> tuple[str, ...]:
    return (str(metric), *(f"{name}={value}" for name, value in sorted(labels.items())))
