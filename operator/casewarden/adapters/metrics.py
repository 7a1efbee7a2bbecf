"""All metrics in one table, on prometheus-client. To add one: a name in ``ports.metrics.Metric`` and a row here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from casewarden import __version__
from casewarden.api.reasons import AttemptReason, RunReason
from casewarden.ports.metrics import Metric, Sample

__all__ = ["DEFINITIONS", "Definition", "PrometheusMetrics"]

_ATTEMPTS: Final = tuple(str(reason) for reason in AttemptReason)
_SECONDS: Final = (0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800)
_QUICK: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30)


@dataclass(frozen=True, slots=True)
class Definition:
    """One metric: its type, its help text, its labels with every value that each may have, and buckets in seconds.

    ``open`` are labels whose values come from users; only a gauge that is replaced as a whole may have any.
    """

    type: Literal["counter", "gauge", "histogram"]
    help: str
    labels: dict[str, tuple[str, ...]]
    buckets: tuple[float, ...] = ()
    open: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all labels."""
        return (*self.open, *self.labels)


_OUTCOMES: Final = ("passed", "failed", "agent_error", "environment_error", "interruption", "suspended")
_CAUSES: Final = ("environment", "interruption", "suspended")
_VERBS: Final = ("GET", "POST", "PATCH", "DELETE")
# A counter that is there from the start shows its first increase; more series than this are made when they count.
_FROM_THE_START: Final = 64
_RUN: Final = ("namespace", "run", "task", "candidate")
_AUDIT: Final = ("namespace", "audit", "task")

DEFINITIONS: Final[dict[Metric, Definition]] = {
    Metric.RUNS: Definition(
        "gauge", "Runs that are not finished, by what they do.",
        {"phase": ("accepting", "planning", "running", "grading", "suspended", "waiting", "finishing")},
    ),
    Metric.RUNS_FINISHED: Definition(
        "counter", "Runs that are over, by how.", {"result": ("complete", "invalid", *(str(r) for r in RunReason))},
    ),
    Metric.CASES: Definition(
        "gauge", "Cases of the runs that are not finished, by where they are.",
        {"state": ("pending", "running", "done")},
    ),
    Metric.CASE_FINISHED: Definition(
        "counter", "Attempts that were counted.", {"outcome": _OUTCOMES, "reason": ("none", *_ATTEMPTS)},
    ),
    Metric.CASE_DURATION: Definition(
        "histogram", "Seconds from a candidate's start to its verdict.", {}, _SECONDS,
    ),
    Metric.CASE_QUEUE: Definition(
        "histogram", "Seconds from a pod's creation to the start of its task.", {}, _SECONDS,
    ),
    Metric.CASE_RETRIES: Definition(
        "counter", "Attempts that came to no verdict, by what they draw on.", {"cause": _CAUSES},
    ),
    Metric.CREATES_THROTTLED: Definition(
        "counter", "Pods whose creation was put off.", {"cause": ("quota", "rate")},
    ),
    Metric.EVIDENCE_INCOMPLETE: Definition(
        "counter", "Evidence that could not be kept.", {"part": ("attempt", "run")},
    ),
    Metric.RECONCILE_DURATION: Definition(
        "histogram", "Seconds of preparing a run and of finishing it.",
        {"handler": ("prepare", "finish"), "result": ("ok", "error")}, _QUICK,
    ),
    Metric.RECONCILE_ERRORS: Definition(
        "counter", "Failures of the operator itself.", {"type": ("api", "relay", "informer", "internal")},
    ),
    Metric.WATCH_LAST_EVENT: Definition(
        "gauge", "When a watch last heard of the API server, in seconds since the epoch.",
        {"resource": ("pods", "evalruns")},
    ),
    Metric.STATUS_CONFLICTS: Definition("counter", "Status writes that met a newer version of the run.", {}),
    Metric.API_REQUESTS: Definition(
        "counter", "Requests to the API server.",
        {"verb": _VERBS, "code": ("2xx", "3xx", "4xx", "5xx", "none")},
    ),
    Metric.API_DURATION: Definition(
        "histogram", "Seconds that the API server took to answer, without the wait for a place.", {"verb": _VERBS},
        _QUICK,
    ),
    Metric.STEP_DURATION: Definition("histogram", "Seconds of deciding what a run does next.", {}, _QUICK),
    Metric.STATUS_WRITES: Definition("counter", "Status writes that the API server took.", {}),
    Metric.LEDGER_WRITES: Definition(
        "counter", "Writes of attempts into the ledgers.", {"result": ("ok", "moved", "error")},
    ),
    Metric.LEDGER_ROWS: Definition("counter", "Attempts that the ledgers took.", {}),
    Metric.OLDEST_PROGRESS: Definition(
        "gauge", "Seconds since that run made progress which has made none for the longest; suspended runs apart.", {},
    ),
    Metric.PARALLELISM: Definition(
        "gauge", "Attempts that the runs which are not finished may have at once, all together, by what they are.",
        {"kind": ("allowed", "used")},
    ),
    Metric.LEADER: Definition("gauge", "1 while this operator plays runs, 0 while it stands by.", {}),
    Metric.RUN_SCORE: Definition("gauge", "Score of a run that is valid.", {}, open=_RUN),
    Metric.RUN_DIMENSION: Definition(
        "gauge", "Score of a dimension of a run that is valid.", {}, open=(*_RUN, "dimension"),
    ),
    Metric.RUN_ASSESSED: Definition("gauge", "Share of a run's cases that were assessed.", {}, open=_RUN),
    Metric.RUN_BOUND: Definition(
        "gauge", "Bounds of a score's interval.", {"bound": ("low", "high")}, open=_RUN,
    ),
    Metric.RUN_FLOOR: Definition(
        "gauge", "Scores of an audit that a score is held against.", {"control": ("null_agent", "reference")},
        open=_RUN,
    ),
    Metric.RUN_MODEL_CALLS: Definition(
        "gauge", "Calls that a finished run's models answered.", {"asked_by": ("candidate", "task")}, open=_RUN,
    ),
    Metric.RUN_MODEL_TOKENS: Definition(
        "gauge", "Tokens that a finished run's models read and wrote.",
        {"asked_by": ("candidate", "task"), "kind": ("prompt", "completion")}, open=_RUN,
    ),
    Metric.RUN_MODEL_COST: Definition(
        "gauge", "What a finished run's models cost; absent where an endpoint has no price.",
        {"asked_by": ("candidate", "task")}, open=_RUN,
    ),
    Metric.RUNS_NOT_SHOWN: Definition("gauge", "Runs with a score that are too many to be shown.", {}),
    Metric.AUDIT_PASSED: Definition("gauge", "1 where a valid audit passed, 0 where it did not.", {}, open=_AUDIT),
    Metric.AUDIT_MUTATION: Definition("gauge", "Share of the faults that an audit's grader caught.", {}, open=_AUDIT),
    Metric.AUDIT_MARGIN: Definition(
        "gauge", "The fewest families of cases that caught one of an audit's faults.", {}, open=_AUDIT,
    ),
    Metric.SLOTS: Definition(
        "gauge", "Slots of a pool of the catalogue: its limit, and what its runs use, have, want and are kept.",
        {"side": ("agents", "tasks"), "state": ("limit", "used", "assigned", "wanted", "kept")}, open=("pool",),
    ),
    Metric.SLOTS_LONGEST_WAIT: Definition(
        "gauge", "Seconds for which the longest-waiting run has had no slot.", {},
    ),
    Metric.SLOTS_SOLVE: Definition("histogram", "Seconds of giving out the slots once.", {}, _QUICK),
    Metric.LOOP_LAG: Definition("gauge", "Seconds by which the event loop was late at the last look.", {}),
    Metric.BUILD_INFO: Definition("gauge", "The version that runs; always 1.", {"version": (__version__,)}),
}  # fmt: skip


class PrometheusMetrics:
    """See ``ports.metrics.Metrics``; ``text`` is what ``/metrics`` answers."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._made: dict[Metric, Counter | Gauge | Histogram] = {}
        for metric, definition in DEFINITIONS.items():
            labels = definition.names
            name = metric.removesuffix("_total")
            if definition.type == "counter":
                self._made[metric] = Counter(name, definition.help, labels, registry=self.registry)
            elif definition.type == "gauge":
                self._made[metric] = Gauge(name, definition.help, labels, registry=self.registry)
            else:
                buckets = definition.buckets
                self._made[metric] = Histogram(name, definition.help, labels, registry=self.registry, buckets=buckets)
            if definition.type == "counter":
                self._start(metric, definition)
        self.set(Metric.BUILD_INFO, 1, version=__version__)

    def add(self, metric: Metric, amount: float = 1.0, **labels: str) -> None:
        """See ``Metrics``."""
        made = self._child(metric, labels)
        if isinstance(made, Counter):
            made.inc(amount)

    def set(self, metric: Metric, value: float, **labels: str) -> None:
        """See ``Metrics``."""
        made = self._child(metric, labels)
        if isinstance(made, Gauge):
            made.set(value)

    def observe(self, metric: Metric, value: float, **labels: str) -> None:
        """See ``Metrics``."""
        made = self._child(metric, labels)
        if isinstance(made, Histogram):
            made.observe(value)

    def replace(self, metric: Metric, samples: Iterable[Sample]) -> None:
        """See ``Metrics``."""
        made = self._made[metric]
        if not isinstance(made, Gauge):
            return
        made.clear()
        for labels, value in samples:
            self.set(metric, value, **labels)

    def text(self) -> bytes:
        """Return everything in the Prometheus text format."""
        return generate_latest(self.registry)

    def _start(self, metric: Metric, definition: Definition) -> None:
        combinations = list(product(*definition.labels.values()))
        if len(combinations) <= _FROM_THE_START:
            for values in combinations:
                self.add(metric, 0, **dict(zip(definition.labels, values, strict=True)))

    def _child(self, metric: Metric, labels: dict[str, str]) -> Counter | Gauge | Histogram:
        definition = DEFINITIONS[metric]
        if not definition.names:
            return self._made[metric]
        values = [labels.get(name, "other") for name in definition.open]
        for name, allowed in definition.labels.items():
            value = labels.get(name, "other")
            values.append(value if value in allowed else "other")
        return self._made[metric].labels(*values)
