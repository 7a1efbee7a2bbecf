"""What the relay counts, and by which labels."""

from __future__ import annotations

from casewarden.relay.metrics import RelayMetrics

LABELS: dict[str, tuple[str, ...]] = {
    "casewarden_relay_requests": ("call", "code"),
    "casewarden_relay_request_seconds": ("call",),
    "casewarden_relay_stored_bytes": ("what",),
    "casewarden_relay_claims": ("outcome",),
    "casewarden_relay_seals": ("outcome",),
    "casewarden_relay_store_unavailable": (),
    "casewarden_relay_uploads": (),
    # Endpoints are the admin's: as many as the catalogue has.
    "casewarden_relay_model_calls": ("endpoint", "outcome"),
    "casewarden_relay_model_tokens": ("endpoint", "kind"),
    "casewarden_relay_model_cost": ("endpoint",),
    "casewarden_relay_model_budget_used_ratio": ("endpoint",),
    "casewarden_relay_model_slots_used": ("endpoint",),
    "casewarden_relay_model_waiting": ("endpoint",),
    "casewarden_relay_swept_runs": (),
    "casewarden_relay_build_info": ("version",),
}


def test_these_are_the_metrics_and_their_labels() -> None:
    metrics = RelayMetrics()
    metrics.requests.labels("claim", "200").inc()
    metrics.seconds.labels("claim").observe(1)
    metrics.claims.labels("won").inc()
    metrics.model_calls.labels("team-gpt", "answered").inc()
    metrics.model_tokens.labels("team-gpt", "prompt").inc()
    metrics.model_cost.labels("team-gpt").inc(0.5)
    metrics.model_budget.labels("team-gpt").set(0.5)
    metrics.model_inside.labels("team-gpt").set(1)
    metrics.model_waiting.labels("team-gpt").set(1)
    found = {
        family.name: {
            tuple(label for label in sample.labels if label != "le")
            for sample in family.samples
            if not sample.name.endswith("_created")
        }
        for family in metrics.registry.collect()
    }
    assert found == {name: {labels} for name, labels in LABELS.items()}
