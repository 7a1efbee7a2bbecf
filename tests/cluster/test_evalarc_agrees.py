"""evalarc's own programs, unmodified, come on a real cluster to exactly what evalarc makes of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import evalarc
from support.kubectl import Kubectl, condition, evalrun, workspace
from support.prometheus import told_by, watching

Command = Callable[..., subprocess.CompletedProcess[str]]
FAULTS = [(task, name) for task in evalarc.TASKS for name in evalarc.names(task)[1:]]
SAME_EVERYWHERE = ("task", "contract", "cases", "grader", "candidate")


def run_name(task: str, name: str) -> str:
    return f"{task.split('-')[0]}-{name}"


def manifests(namespace: str, task: str, name: str, seeds: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return the ConfigMap and the EvalRun of one of evalarc's programs."""
    run = run_name(task, name)
    return [
        workspace(namespace, run, evalarc.programs(task)[name].files),
        evalrun(
            namespace,
            run,
            task={"name": task},
            seeds={"values": list(seeds)},
            candidate={"program": {"workspace": {"configMap": run}}},
            parallelism=8,
        ),
    ]


@pytest.fixture(scope="module")
def statuses(kubectl: Kubectl, module_namespace: str) -> Mapping[tuple[str, str], dict[str, Any]]:
    """The finished runs of every program, the references at three seeds, all applied at once."""
    programs = [
        (task, name, (17, 41, 97) if name == "reference" else (17,))
        for task in evalarc.TASKS
        for name in evalarc.names(task)
    ]
    kubectl.apply(*(document for program in programs for document in manifests(module_namespace, *program)))
    return {(task, name): kubectl.finished(module_namespace, run_name(task, name), 1200) for task, name, _ in programs}


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("task", "cases"), [("durable-kv", 45), ("support-routing", 12)])
def test_the_reference_resolves_every_case(statuses: Mapping[tuple[str, str], Any], task: str, cases: int) -> None:
    status = statuses[task, "reference"]
    assert status["score"] == "1"
    assert status["resolved"] is True
    assert status["assessed"] == f"{cases}/{cases}"
    assert condition(status, "Complete") == "True"


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("task", "name"), FAULTS)
def test_a_fault_scores_and_fails_what_evalarc_says(
    statuses: Mapping[tuple[str, str], Any], casewarden: Command, module_namespace: str, task: str, name: str
) -> None:
    program, status = evalarc.programs(task)[name], statuses[task, name]
    assert Decimal(status["score"]) == program.score
    listed = casewarden("cases", run_name(task, name), "-n", module_namespace, "--output", "json")
    assert listed.returncode == 0, listed.stderr
    failing = {row["case"] for row in json.loads(listed.stdout) if row["checks"].get(program.target) is False}
    assert tuple(sorted(failing)) == program.failing


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("task", "name"), [("durable-kv", "commit-on-exit"), ("support-routing", "skip-retry")])
def test_the_same_manifest_without_a_cluster_comes_to_the_same(
    statuses: Mapping[tuple[str, str], Any],
    casewarden: Command,
    module_namespace: str,
    tmp_path: Path,
    task: str,
    name: str,
) -> None:
    file = tmp_path / "evalrun.yaml"
    file.write_text(yaml.safe_dump_all(manifests(module_namespace, task, name, (17,))))
    local = casewarden("run", "-f", str(file), "--output", "json")
    assert local.returncode == 1, local.stdout + local.stderr
    here, there = json.loads(local.stdout), statuses[task, name]
    here = here.get("status", here)
    for field in ("score", "valid", "resolved", "assessed", "passRate", "dimensions", "cases", "seeds"):
        assert here[field] == there[field], field
    for field in SAME_EVERYWHERE:
        assert here["fingerprints"][field] == there["fingerprints"][field], field
    verdicts = [
        {key: item.get(key) for key in ("case", "seed", "status", "reason", "error")} for item in here["failures"]
    ]
    assert verdicts == [
        {key: item.get(key) for key in ("case", "seed", "status", "reason", "error")} for item in there["failures"]
    ]


@pytest.mark.timeout(1500)
def test_the_evidence_of_a_run_is_verified_against_its_status(
    statuses: Mapping[tuple[str, str], Any], casewarden: Command, module_namespace: str
) -> None:
    assert statuses["durable-kv", "memory-only"]["evidence"]["digest"].startswith("sha256:")
    done = casewarden("verify", run_name("durable-kv", "memory-only"), "-n", module_namespace)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "authenticated" in done.stdout


@pytest.mark.timeout(600)
def test_a_real_prometheus_has_the_intervals(
    statuses: Mapping[tuple[str, str], Any], kubectl: Kubectl, tmp_path: Path
) -> None:
    with watching(kubectl, tmp_path) as prometheus:
        kubectl.until(
            lambda: not prometheus.without_data(told_by("intervals")),
            20,
            lambda: f"no data: {prometheus.without_data(told_by('intervals'))}",
        )


def test_a_folder_is_evaluated_by_one_command(casewarden: Command, namespace: str, tmp_path: Path) -> None:
    folder = evalarc.write(evalarc.programs("support-routing")["wrong-queue"], tmp_path / "agent")
    done = casewarden(
        "evaluate", str(folder), "--task", "support-routing", "--seeds", "17", "-n", namespace, "--output", "json"
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert (
        Decimal(json.loads(done.stdout)["status"]["score"]) == evalarc.programs("support-routing")["wrong-queue"].score
    )
    shown = casewarden("get", "-n", namespace)
    assert "0.7" in shown.stdout
