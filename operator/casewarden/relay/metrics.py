"""What the relay counts. Label sets are fixed: names of calls and words, never a run, a case or a URL."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from casewarden import __version__

__all__ = ["RelayMetrics"]


class RelayMetrics:
    """The relay's metrics in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "casewarden_relay_requests_total", "Calls answered", ["call", "code"], registry=self.registry
        )
        self.seconds = Histogram(
            "casewarden_relay_request_seconds",
            "Time from a call's headers to its answer",
            ["call"],
            buckets=(0.005, 0.02, 0.1, 0.5, 2, 10, 60),
            registry=self.registry,
        )
        self.stored_bytes = Counter(
            "casewarden_relay_stored_bytes_total", "Bytes kept", ["what"], registry=self.registry
        )
        self.claims = Counter("casewarden_relay_claims_total", "Claims by outcome", ["outcome"], registry=self.registry)
        self.seals = Counter("casewarden_relay_seals_total", "Seals by outcome", ["outcome"], registry=self.registry)
        self.store_errors = Counter(
            "casewarden_relay_store_unavailable_total",
            "Calls refused because the store is full or away",
            registry=self.registry,
        )
        self.model_calls = Counter(
            "casewarden_relay_model_calls_total",
            "Model calls by what became of them; every further try counts as retried",
            ["endpoint", "outcome"],
            registry=self.registry,
        )
        self.model_tokens = Counter(
            "casewarden_relay_model_tokens_total",
            "Tokens of answered calls",
            ["endpoint", "kind"],
            registry=self.registry,
        )
        self.model_cost = Counter(
            "casewarden_relay_model_cost_total",
            "What answered calls cost by their endpoint's price, in its currency",
            ["endpoint"],
            registry=self.registry,
        )
        self.model_budget = Gauge(
            "casewarden_relay_model_budget_used_ratio",
            "Share of its budget that a run has used, of the run with the largest that called in the last 15 minutes",
            ["endpoint"],
            registry=self.registry,
        )
        self.model_inside = Gauge(
            "casewarden_relay_model_slots_used", "Calls that an endpoint has now", ["endpoint"], registry=self.registry
        )
        self.model_waiting = Gauge(
            "casewarden_relay_model_waiting", "Calls that wait for an endpoint", ["endpoint"], registry=self.registry
        )
        for outcome in ("first", "late", "repeated"):
            self.seals.labels(outcome)
        for what in ("bundle", "file", "workspace"):
            self.stored_bytes.labels(what)
        build = Gauge(
            "casewarden_relay_build_info", "The version that runs; always 1.", ["version"], registry=self.registry
        )
        build.labels(__version__).set(1)
        self.uploads = Gauge("casewarden_relay_uploads", "Uploads under way", registry=self.registry)
        self.swept_runs = Counter(
            "casewarden_relay_swept_runs_total",
            "Runs whose evidence was removed after its time",
            registry=self.registry,
        )
