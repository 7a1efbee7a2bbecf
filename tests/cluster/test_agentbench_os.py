"""agentbench-os on a real cluster: what root needs in the sandbox, its own problems, and its grader on trial."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from support.kubectl import FINISHED, Kubectl, condition, evalrun, message

TASK = "agentbench-os"
# A question, and a deed with users and groups.
FEW = ["own-own-00000", "own-own-00016"]
FAULTS = ["claims-without-doing", "kills-the-shell", "off-by-one", "reads-the-check", "replaces-ls", "wrong-format"]


@pytest.fixture(scope="module")
def root_namespace(kubectl: Kubectl, module_namespace: str) -> str:
    """A namespace that admits the Pod Security level ``baseline``."""
    level = "pod-security.kubernetes.io/enforce=baseline"
    kubectl("label", "namespace", module_namespace, level, "--overwrite")
    return module_namespace


@pytest.fixture(scope="module")
def audited(kubectl: Kubectl, root_namespace: str) -> dict[str, Any]:
    """The status of a finished audit."""
    kubectl.apply(
        {
            "apiVersion": "casewarden.dev/v1alpha1",
            "kind": "AuditRun",
            "metadata": {"name": "trial", "namespace": root_namespace},
            "spec": {"task": {"name": TASK, "params": {"indices": FEW}}, "seeds": {"values": [0]},
                     "referenceRepeats": 1, "parallelism": 8},
        }
    )  # fmt: skip

    def finished() -> dict[str, Any] | None:
        status = kubectl.get("auditrun", root_namespace, "trial").get("status") or {}
        return status if condition(status, FINISHED) == "True" else None

    return kubectl.until(finished, 280, lambda: kubectl.picture(root_namespace))


def test_every_fault_is_caught_and_doing_nothing_is_worth_nothing(audited: dict[str, Any]) -> None:
    assert (audited["valid"], audited["passed"], audited["killed"]) == (True, True, "6/6"), audited
    assert (audited["referenceScore"], set(audited["floors"].values())) == ("1", {"0"})
    caught = {row["name"]: row["margin"] for row in audited["controls"] if row["kind"] == "fault"}
    # The two that answer wrongly do the deed rightly.
    assert caught == {name: 1 if name in ("off-by-one", "wrong-format") else 2 for name in FAULTS}


def test_what_was_replaced_is_in_the_evidence(
    audited: dict[str, Any],
    kubectl: Kubectl,
    root_namespace: str,
    casewarden: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    (run,) = (
        item["metadata"]["name"]
        for item in kubectl.list("evalruns", root_namespace, "casewarden.dev/control=replaces-ls")
    )
    shown = json.loads(casewarden("show", run, FEW[1], "-n", root_namespace, "--output", "json").stdout)
    changed = shown["record"]["facts"]["changed"]
    assert {"/usr/bin/ls", "/usr/bin/python3", "/usr/local/bin/wc"} <= set(changed)
    assert "programs of the sandbox were replaced" in shown["verdict"]["error"], shown["verdict"]


def test_a_namespace_that_admits_no_root_says_so(kubectl: Kubectl, namespace: str) -> None:
    kubectl.apply(
        evalrun(namespace, "refused", task={"name": TASK, "params": {"indices": FEW[:1]}}, seeds={"values": [0]},
                candidate={"control": "null-agent"})
    )  # fmt: skip
    status = kubectl.finished(namespace, "refused", 120)
    assert condition(status, "Failed") == "True"
    assert "violates PodSecurity" in message(status, "Failed"), status["conditions"]
