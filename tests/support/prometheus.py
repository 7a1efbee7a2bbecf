"""A real Prometheus that scrapes what a test gives it, and the expressions of dashboards and rules."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml
from support.kubectl import Kubectl
from support.ports import free_port

from devkit import panels, prometheus

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "charts" / "casewarden" / "files" / "rules.yaml"


class Prometheus:
    """One running Prometheus."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def ask(self, path: str, **query: str) -> Any:
        """Return the data of one call of its API."""
        url = f"{self._url}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[Any]:
        """Evaluate an expression now."""
        return self.ask("query", query=expression)["result"]  # type: ignore[no-any-return]

    def firing(self) -> set[str]:
        """Return the names of the alerts that fire or are about to."""
        return {alert["labels"]["alertname"] for alert in self.ask("alerts")["alerts"]}

    def without_data(self, expressions: Iterable[str]) -> set[str]:
        """Return the expressions that have no data now."""
        return {expression for expression in expressions if not self.query(expression)}


@contextmanager
def scraping(folder: Path, targets: Mapping[str, int], port: int) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes local ports once a second, by job; its rules are the chart's."""
    jobs = [
        {"job_name": job, "honor_labels": True, "static_configs": [{"targets": [f"127.0.0.1:{there}"]}]}
        for job, there in targets.items()
    ]
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": jobs,
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    words = [
        str(prometheus.ensure() / "prometheus"),
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "log").open("w") as log, subprocess.Popen(words, stdout=log, stderr=log) as process:
        try:
            running = Prometheus(port)
            _until_up(running, len(targets), folder / "log")
            yield running
        finally:
            process.terminate()
            process.wait(20)


def _until_up(running: Prometheus, targets: int, log: Path) -> None:
    until = time.monotonic() + 40
    while time.monotonic() < until:
        try:
            if len(running.query("up == 1")) == targets:
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"not every target is up: {log.read_text()[-3000:]}")


def panel_expressions(window: str = "15s") -> list[str]:
    """Return the expressions of all panels as Grafana sends them, over all runs."""
    found = [text.replace("$__rate_interval", window) for text in panels.expressions()]
    return [re.sub(r"\$(namespace|task|candidate)", ".*", text) for text in found]


def alerts() -> list[dict[str, Any]]:
    """Return the chart's alerts."""
    return yaml.safe_load(RULES.read_text())["groups"][0]["rules"]  # type: ignore[no-any-return]


def inputs(expression: str) -> set[str]:
    """Return the names of the metrics that an expression reads."""
    return set(re.findall(r"casewarden_\w+", expression))


def promtool(*words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run promtool."""
    return subprocess.run(
        [str(prometheus.ensure() / "promtool"), *words],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


PARTS = {
    "audits": ("casewarden_audit_", "casewarden_run_score_floor"),
    "models": ("casewarden_run_model", "casewarden_relay_model", "casewarden_slots{"),
    "intervals": ("casewarden_run_score_bound",),
}
"""What only some runs have: the beginnings of its metrics."""


def told_by(part: str | None) -> list[str]:
    """Return the expressions of panels and the metrics of alerts that a part has data for; without one, every run."""
    asked = [*panel_expressions("2m"), *sorted({name for alert in alerts() for name in inputs(alert["expr"])})]
    of_parts = [name for names in PARTS.values() for name in names]
    wanted = PARTS[part] if part else of_parts
    return [text for text in asked if any(name in text for name in wanted) == (part is not None)]


@contextmanager
def watching(kubectl: Kubectl, folder: Path, *parts: str) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes the installed release, or some of its parts: ``operator``, ``relay``."""
    with ExitStack() as stack:
        ports = {part: stack.enter_context(_forwarded(kubectl, part)) for part in parts or ("operator", "relay")}
        yield stack.enter_context(scraping(folder, ports, free_port()))


@contextmanager
def _forwarded(kubectl: Kubectl, part: str) -> Iterator[int]:
    port = free_port()
    words = ["kubectl", "--kubeconfig", kubectl.kubeconfig, "-n", "casewarden-system", "port-forward",
             f"service/casewarden-{part}", f"{port}:8080"]  # fmt: skip
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            kubectl.until(lambda: _answers(port), 30, lambda: f"no port-forward to casewarden-{part}")
            yield port
        finally:
            process.terminate()


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
