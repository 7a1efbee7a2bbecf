"""The command line against a real cluster: what a user looks at while a run plays and after it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from support.candidates import FINISHES_AT_ONCE
from support.kubectl import Kubectl, evalrun, workspace

Command = Callable[..., subprocess.CompletedProcess[str]]
BIN = Path(__file__).resolve().parents[2] / ".venv" / "bin"


@pytest.fixture(scope="module")
def finished(
    kubectl: Kubectl, module_namespace: str, casewarden: Command, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The namespace of a finished run, `idle`, applied and watched by the command line itself."""
    file = tmp_path_factory.mktemp("manifest") / "idle.yaml"
    documents = [
        workspace(module_namespace, "idle", {"main.py": FINISHES_AT_ONCE}),
        evalrun(module_namespace, "idle", task={"name": "support-routing"}, seeds={"values": [17]},
                candidate={"program": {"workspace": {"configMap": "idle"}}}, keepPods="OnFailure"),
    ]  # fmt: skip
    file.write_text(yaml.safe_dump_all(documents))
    applied = casewarden("apply", "-f", str(file), "-n", module_namespace)
    assert applied.returncode == 0, applied.stderr
    watched = casewarden("watch", "idle", "-n", module_namespace)
    assert watched.returncode == 1, watched.stdout + watched.stderr
    assert "4/4 done" in watched.stderr
    return module_namespace


def test_the_columns_of_kubectl_get_say_how_it_stands(kubectl: Kubectl, finished: str) -> None:
    header, row = kubectl("get", "er", "-n", finished).splitlines()
    assert header.split() == ["NAME", "PROGRESS", "SCORE", "VALID", "PASSED", "AGE"]
    assert row.split()[:5] == ["idle", "4/4", "0.35", "true", "False"]
    wide = kubectl("get", "evals", "-n", finished, "-o", "wide").splitlines()[0].split()
    assert set(wide) >= {"TASK", "ASSESSED", "ERRORS", "DURATION"}


def test_kubectl_explain_reads_as_documentation(kubectl: Kubectl) -> None:
    text = kubectl("explain", "evalrun.spec.candidate")
    assert "what is evaluated" in text.lower()
    assert "FIELDS:" in text


def test_a_failed_case_is_listed_and_shown_turn_by_turn(casewarden: Command, finished: str) -> None:
    listed = casewarden("cases", "idle", "-n", finished, "--failed", "--output", "json")
    rows = json.loads(listed.stdout)
    assert len(rows) == 4
    assert {row["status"] for row in rows} == {"failed"}
    shown = casewarden("show", "idle", rows[0]["case"], "-n", finished)
    assert shown.returncode == 0, shown.stderr
    assert '"finish": true' in shown.stdout
    assert "remaining_actions" in shown.stdout


def test_it_is_reported_and_exported(casewarden: Command, finished: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    done = casewarden("report", "idle", "-n", finished, "-o", str(page))
    assert done.returncode == 0, done.stderr
    assert "4 transcripts are in this report." in page.read_text()
    for form, begins in (("junit", b"<?xml"), ("csv", b"namespace,run"), ("inspect", b"PK")):
        file = tmp_path / form
        done = casewarden("export", "idle", "-n", finished, "-f", form, "-o", str(file))
        assert done.returncode == 0, done.stderr
        assert file.read_bytes().startswith(begins)


def test_what_would_run_is_told_without_running_it(casewarden: Command) -> None:
    planned = casewarden("plan", "--task", "support-routing", "--output", "json")
    assert planned.returncode == 0, planned.stderr
    assert "route-open-ticket" in planned.stdout


def test_it_is_a_plugin_of_kubectl(kubeconfig: str, kubectl: Kubectl, finished: str) -> None:
    done = subprocess.run(
        ["kubectl", "casewarden", "get", "-n", finished],
        env={**os.environ, "KUBECONFIG": kubeconfig, "PATH": f"{BIN}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "idle" in done.stdout
    assert "0.35" in done.stdout


def test_a_run_that_is_not_there_is_one_clear_line(casewarden: Command, finished: str) -> None:
    done = casewarden("cases", "nobody", "-n", finished)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "nobody" in done.stderr
