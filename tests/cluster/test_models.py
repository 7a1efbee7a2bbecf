"""Candidates with models on a cluster: one scripted model, its four slots, and every way to play by it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import model_clients
from support.kubectl import Kubectl, condition, evalrun, message, reason, workspace

MODELS = "casewarden-models"
FAKE = Path(__file__).parents[1] / "support" / "fake_models.py"
ONE = {"select": {"families": ["route-open-ticket"]}, "retries": {"environment": 0}}


@pytest.fixture(scope="module")
def python_image(kubectl: Kubectl) -> str:
    text = kubectl.get("configmap", "casewarden-system", "casewarden-catalogue")["data"]["catalogue.yaml"]
    return str(yaml.safe_load(text)["images"]["python"])


@pytest.fixture(scope="module")
def models(kubectl: Kubectl, python_image: str) -> Iterator[None]:
    """The scripted model, where the endpoints of a checkout's release look for it."""
    secured = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 65530,
    }
    kubectl.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MODELS}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "models", "namespace": MODELS},
         "data": {"main.py": FAKE.read_text()}},
        {"apiVersion": "v1", "kind": "Pod",
         "metadata": {"name": "models", "namespace": MODELS, "labels": {"app": "models"}},
         "spec": {
             "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0,
             "containers": [{
                 "name": "models", "image": python_image, "command": ["python3", "/app/main.py", "8000"],
                 "readinessProbe": {"httpGet": {"path": "/", "port": 8000}, "periodSeconds": 1},
                 "securityContext": {**secured, "seccompProfile": {"type": "RuntimeDefault"}},
                 "volumeMounts": [{"name": "app", "mountPath": "/app"}],
             }],
             "volumes": [{"name": "app", "configMap": {"name": "models"}}],
         }},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "models", "namespace": MODELS},
         "spec": {"selector": {"app": "models"}, "ports": [{"port": 8000}]}},
    )  # fmt: skip
    kubectl("wait", "-n", MODELS, "--for=condition=Ready", "pod/models", "--timeout=90s", seconds=100)
    yield
    kubectl("delete", "namespace", MODELS, "--wait=false")


def a_run(namespace: str, name: str, candidate: dict[str, Any], **spec: Any) -> dict[str, Any]:
    base = {"task": {"name": "support-routing"}, "seeds": {"values": [17]}, "candidate": candidate}
    return evalrun(namespace, name, **{**base, **spec})


def model(name: str, endpoint: str = "scripted") -> dict[str, Any]:
    return {"model": {"endpoint": endpoint, "name": name}}


def stats(kubectl: Kubectl) -> dict[str, Any]:
    found = kubectl("get", "--raw", f"/api/v1/namespaces/{MODELS}/services/models:8000/proxy/stats")
    return json.loads(found)  # type: ignore[no-any-return]


def by_program(namespace: str, client: str, trial_image: str, name: str, endpoint: str = "scripted") -> Any:
    program = {"image": trial_image, "workspace": {"configMap": f"with-{client.lower()}"}}
    return {"program": program, **model(name, endpoint)}


def client(namespace: str, name: str) -> dict[str, Any]:
    return workspace(namespace, f"with-{name.lower()}", {"main.py": getattr(model_clients, name)})


def test_a_program_a_server_and_a_model_of_the_same_decisions_come_to_the_same_verdicts(
    kubectl: Kubectl, module_namespace: str, models: None, python_image: str, trial_image: str
) -> None:
    before = stats(kubectl)["calls"]
    server = {"image": python_image, "argv": ["python3", "-c", model_clients.SERVER], "port": 9000}
    # It forgets to close what is resolved: two cases pass and two fail.
    candidates = {
        "by-program": by_program(module_namespace, "OPENAI", trial_image, "careless"),
        "by-server": {"server": server, **model("careless")},
        "by-model": model("careless"),
    }
    kubectl.apply(
        client(module_namespace, "OPENAI"),
        *(a_run(module_namespace, name, candidate, limits={"tokens": 100000}, parallelism=2)
          for name, candidate in candidates.items()),
    )  # fmt: skip
    found = {name: kubectl.finished(module_namespace, name) for name in candidates}
    verdicts = [
        (status["score"], status["dimensions"], [(f["case"], f["status"], f["error"]) for f in status["failures"]])
        for status in found.values()
    ]
    assert verdicts[0][0] == "0.9", found
    assert verdicts[0] == verdicts[1] == verdicts[2]
    # Each call is counted once: the same decisions take the same calls. What is asked is the program's own to word.
    usages = [status["usage"] for status in found.values()]
    assert usages[0]["modelCalls"] == usages[1]["modelCalls"] == usages[2]["modelCalls"] > 12
    assert usages[1] == usages[2]
    assert usages[0]["source"] in ("reported", "estimated")
    assert float(usages[0]["cost"]) > 0
    assert len({status["fingerprints"]["candidate"] for status in found.values()}) == 3
    seen = stats(kubectl)
    assert seen["calls"] - before == 3 * usages[0]["modelCalls"]
    assert seen["most"] <= 4


def test_clients_work_through_the_gateway_as_they_are(
    kubectl: Kubectl, module_namespace: str, models: None, trial_image: str,
    casewarden: Callable[..., subprocess.CompletedProcess[str]],
) -> None:  # fmt: skip
    """The `openai` SDK is above; here are Anthropic's, an agent of LangChain's and curl, streams and tools included."""
    endpoints = {"ANTHROPIC": "scripted-claude", "LANGCHAIN": "scripted", "CURL": "scripted"}
    kubectl.apply(*(client(module_namespace, name) for name in endpoints))
    kubectl.apply(
        *(a_run(module_namespace, f"with-{name.lower()}",
                by_program(module_namespace, name, trial_image, "support", endpoint), **ONE)
          for name, endpoint in endpoints.items())
    )  # fmt: skip
    for name in endpoints:
        run = f"with-{name.lower()}"
        status = kubectl.finished(module_namespace, run)
        assert (status.get("score"), status["usage"]["modelCalls"]) == ("1", 4), (name, status)
        shown = casewarden("show", run, "route-open-ticket", "-n", module_namespace, "-o", "json")
        rows = json.loads(shown.stdout)["transcript"]
        calls = [row["dir"] for row in rows if row["dir"].startswith("model-")]
        assert calls == ["model-in", "model-out"] * 4
        assert "assign_queue" in "".join(row["text"] for row in rows if row["dir"] == "model-out")
    # What was used is under the digest of the status.
    verified = casewarden("verify", "with-curl", "-n", module_namespace, "-o", "json")
    told = json.loads(verified.stdout)
    assert (told["consistent"], told["authenticated"], told["calls_in_bundles"]) == (True, True, 4), told


def test_whatever_is_wrong_with_a_model_has_an_outcome_of_its_own(
    kubectl: Kubectl, module_namespace: str, models: None
) -> None:
    kubectl.apply(
        a_run(module_namespace, "unknown-model", model("unknown"), **ONE),
        a_run(module_namespace, "no-key", model("support", "scripted-keyless"), **ONE),
        a_run(module_namespace, "redirect", model("redirect"), **ONE),
        a_run(module_namespace, "no-budget", model("support"), budget={"modelCalls": 2}, **ONE),
        a_run(module_namespace, "not-ours", model("support", "scripted-elsewhere"), **ONE),
        a_run(
            module_namespace, "unknown-parameter",
            {"model": {"endpoint": "scripted", "name": "support", "parameters": {"frobnicate": 1}}}, **ONE,
        ),
        a_run(module_namespace, "few-tokens", model("support"), limits={"tokens": 20}, **ONE),
    )  # fmt: skip

    def failure(name: str) -> dict[str, Any]:
        status = kubectl.finished(module_namespace, name)
        (found,) = status["failures"]
        return {**found, "score": status.get("score")}

    for name, status, why, said in (
        ("unknown-model", "agent_error", "BadRequest", "does not exist"),
        ("unknown-parameter", "agent_error", "BadRequest", "frobnicate"),
        ("few-tokens", "agent_error", "TokenLimit", "the case has 20"),
        ("no-key", "environment_error", "ModelUnavailable", "key cannot be read"),
        ("redirect", "environment_error", "ModelUnavailable", "redirects (307)"),
    ):
        found = failure(name)
        assert (found["status"], found["reason"]) == (status, why), found
        assert said in found["error"]
        assert (found["score"] is None) == (status == "environment_error")
    spent = kubectl.finished(module_namespace, "no-budget")
    assert (condition(spent, "Failed"), reason(spent, "Failed")) == ("True", "BudgetSpent")
    assert spent["usage"]["modelCalls"] == 2
    refused = kubectl.finished(module_namespace, "not-ours")
    assert reason(refused, "Accepted") == "UnknownEndpoint"
    assert "have the namespace added" in message(refused, "Accepted")
