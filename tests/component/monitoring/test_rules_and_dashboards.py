"""Rules and dashboards against the real promtool and a real Prometheus: what they ask for is what is there."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
import yaml
from prometheus_client import generate_latest, start_http_server
from support.ports import free_port
from support.prometheus import RULES, Prometheus, alerts, inputs, panel_expressions, promtool, scraping

from casewarden.adapters.metrics import DEFINITIONS, PrometheusMetrics
from casewarden.ports.metrics import Metric
from casewarden.relay.metrics import RelayMetrics
from devkit import panels

# The programs may have to be fetched first.
pytestmark = pytest.mark.timeout(600)

QUIET = {
    "casewarden_leader": "1+0x300",
    "casewarden_relay_build_info": "1+0x300",
    "casewarden_oldest_progress_seconds": "30+0x300",
    'casewarden_watch_last_event_timestamp_seconds{resource="pods"}': "0+60x300",
    'casewarden_case_retries_total{cause="environment"}': "0+0x300",
    'casewarden_case_finished_total{outcome="passed", reason="none"}': "0+10x300",
    'casewarden_runs_finished_total{result="complete"}': "0+1x300",
    'casewarden_runs_finished_total{result="invalid"}': "0+0x300",
    'casewarden_runs_finished_total{result="ImagePull"}': "0+0x300",
    "casewarden_relay_store_unavailable_total": "0+0x300",
    'casewarden_reconcile_errors_total{type="relay"}': "0+0x300",
    'casewarden_evidence_incomplete_total{part="attempt"}': "0+0x300",
    'casewarden_pod_create_throttled_total{cause="quota"}': "0+0x300",
    'casewarden_api_requests_total{code="2xx"}': "0+100x300",
    'casewarden_api_requests_total{code="5xx"}': "0+0x300",
    "casewarden_event_loop_lag_seconds": "0+0x300",
    'casewarden_relay_model_calls_total{endpoint="e", outcome="budget"}': "0+0x300",
    'casewarden_relay_model_calls_total{endpoint="e", outcome="retried"}': "0+0x300",
    'casewarden_relay_model_calls_total{endpoint="e", outcome="answered"}': "0+50x300",
    "casewarden_run_scores_not_shown": "0+0x300",
    'casewarden_relay_model_budget_used_ratio{endpoint="e"}': "0.5+0x300",
}
TROUBLE = {
    "CasewardenRunStuck": ("casewarden_oldest_progress_seconds", "0+60x300"),
    "CasewardenEnvironmentErrorsRising": ('casewarden_case_retries_total{cause="environment"}', "0+5x300"),
    "CasewardenRunInvalid": ('casewarden_runs_finished_total{result="invalid"}', "0x170 1x130"),
    "CasewardenRunFailed": ('casewarden_runs_finished_total{result="ImagePull"}', "0x170 1x130"),
    "CasewardenWatchStale": ('casewarden_watch_last_event_timestamp_seconds{resource="pods"}', "0+0x300"),
    "CasewardenNoLeader": ("casewarden_leader", "0+0x300"),
    "CasewardenSeveralLeaders": ("casewarden_leader", "2+0x300"),
    "CasewardenRelayDown": ("casewarden_relay_build_info", "_x300"),
    "CasewardenStoreFailing": ("casewarden_relay_store_unavailable_total", "0+1x300"),
    "CasewardenEvidenceLost": ('casewarden_evidence_incomplete_total{part="attempt"}', "0x170 1x130"),
    "CasewardenThrottled": ('casewarden_pod_create_throttled_total{cause="quota"}', "0+1x300"),
    "CasewardenApiErrors": ('casewarden_api_requests_total{code="5xx"}', "0+50x300"),
    "CasewardenLoopSlow": ("casewarden_event_loop_lag_seconds", "5+0x300"),
    "CasewardenModelBudgetSpent": ('casewarden_relay_model_calls_total{endpoint="e", outcome="budget"}', "0+1x300"),
    "CasewardenModelThrottled": ('casewarden_relay_model_calls_total{endpoint="e", outcome="retried"}', "0+40x300"),
    "CasewardenModelBudgetNear": ('casewarden_relay_model_budget_used_ratio{endpoint="e"}', "0.95+0x300"),
    "CasewardenScoresNotShown": ("casewarden_run_scores_not_shown", "3+0x300"),
}


def series(changes: dict[str, str]) -> list[dict[str, str]]:
    return [{"series": name, "values": values} for name, values in (QUIET | changes).items()]


def judged(folder: Path, changes: dict[str, str], firing: str | None) -> str:
    """Let promtool play three hours, one sample a minute; return what it has to say, empty where all is as expected."""
    names = [alert["alert"] for alert in alerts()]
    # A count above zero is what is asked: which labels and texts an alert has is not repeated here.
    cases = [
        {"expr": f'count(ALERTS{{alertname="{name}", alertstate="firing"}}) > 0 or vector(0)', "eval_time": "3h",
         "exp_samples": [{"labels": "{}", "value": 1 if name == firing else 0}]}
        for name in names
    ]  # fmt: skip
    test = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series(changes), "promql_expr_test": cases}],
    }
    file = folder / "test.yaml"
    file.write_text(yaml.safe_dump(test))
    done = promtool("test", "rules", str(file))
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_promtool_accepts_the_rules() -> None:
    done = promtool("check", "rules", str(RULES))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(alerts())} rules found" in done.stdout


def test_nothing_fires_while_all_is_well(tmp_path: Path) -> None:
    assert judged(tmp_path, {}, None) == ""


def test_every_alert_has_its_trouble() -> None:
    assert set(TROUBLE) == {alert["alert"] for alert in alerts()}


@pytest.mark.parametrize("name", TROUBLE)
def test_an_alert_fires_in_its_trouble_and_in_no_other(name: str, tmp_path: Path) -> None:
    metric, values = TROUBLE[name]
    assert judged(tmp_path, {metric: values}, name) == ""


def test_an_operator_that_is_gone_is_no_leader(tmp_path: Path) -> None:
    assert judged(tmp_path, {"casewarden_leader": "_x300"}, "CasewardenNoLeader") == ""


def moved() -> tuple[PrometheusMetrics, RelayMetrics]:
    """Every metric of operator and relay, with every label that has a closed set of values."""
    metrics, relay = PrometheusMetrics(), RelayMetrics()
    move(metrics, relay)
    return metrics, relay


def move(metrics: PrometheusMetrics, relay: RelayMetrics) -> None:
    for metric, definition in DEFINITIONS.items():
        combinations = [dict(zip(definition.labels, row, strict=True)) for row in product(*definition.labels.values())]
        named = dict.fromkeys(definition.open, "x")
        if definition.open:
            metrics.replace(metric, [({**named, **labels}, 0.5) for labels in combinations])
            continue
        for labels in combinations[:20]:
            if definition.type == "counter":
                metrics.add(metric, 1, **labels)
            elif definition.type == "histogram":
                metrics.observe(metric, 0.5, **labels)
            else:
                metrics.set(metric, time.time() if metric is Metric.WATCH_LAST_EVENT else 1, **labels)
    relay.requests.labels("claim", "200").inc()
    relay.seconds.labels("claim").observe(0.1)
    relay.claims.labels("won").inc()
    relay.seals.labels("first").inc()
    relay.stored_bytes.labels("bundle").inc(1000)
    relay.store_errors.inc()
    relay.model_calls.labels("team-gpt", "budget").inc()
    relay.model_tokens.labels("team-gpt", "prompt").inc(100)
    relay.model_cost.labels("team-gpt").inc(0.25)
    relay.model_budget.labels("team-gpt").set(0.5)
    relay.model_inside.labels("team-gpt").set(1)
    relay.model_waiting.labels("team-gpt").set(1)


def test_promtool_finds_no_fault_with_the_pages_that_are_scraped() -> None:
    metrics, relay = moved()
    for text in (metrics.text().decode(), generate_latest(relay.registry).decode()):
        done = promtool("check", "metrics", stdin=text)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_expression_reads_metrics_that_there_are() -> None:
    metrics, relay = moved()
    lines = (metrics.text() + generate_latest(relay.registry)).decode().splitlines()
    there = {line.partition("{")[0].partition(" ")[0] for line in lines if not line.startswith("#")}
    for expression in [*panels.expressions(), *(alert["expr"] for alert in alerts())]:
        assert inputs(expression) <= there, expression


@pytest.fixture(scope="module")
def watching(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    metrics, relay = moved()
    ports, ending = [free_port() for _ in range(3)], threading.Event()

    def keep_moving() -> None:
        while not ending.wait(0.3):
            move(metrics, relay)

    servers = [start_http_server(port, "127.0.0.1", registry)[0]
               for port, registry in zip(ports, (metrics.registry, relay.registry), strict=False)]  # fmt: skip
    mover = threading.Thread(target=keep_moving)
    mover.start()
    try:
        folder = tmp_path_factory.mktemp("prometheus")
        with scraping(folder, {"operator": ports[0], "relay": ports[1]}, ports[2]) as running:
            time.sleep(4)
            yield running
    finally:
        ending.set()
        mover.join()
        for server in servers:
            server.shutdown()


def test_every_panel_has_data(watching: Prometheus) -> None:
    assert watching.without_data(panel_expressions()) == set()


def test_the_rules_are_loaded_and_evaluated_without_an_error(watching: Prometheus) -> None:
    (group,) = watching.ask("rules")["groups"]
    assert {rule["name"] for rule in group["rules"]} == {alert["alert"] for alert in alerts()}
    assert {rule["health"] for rule in group["rules"]} == {"ok"}


def test_the_trouble_that_was_moved_is_on_its_way_to_the_pager(watching: Prometheus) -> None:
    seen = watching.firing()
    assert {"CasewardenStoreFailing", "CasewardenThrottled", "CasewardenRunInvalid", "CasewardenEvidenceLost"} <= seen
    assert not {"CasewardenNoLeader", "CasewardenRelayDown", "CasewardenRunStuck", "CasewardenWatchStale"} & seen
