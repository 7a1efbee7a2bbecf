"""Candidates with models on a cluster: one scripted model, its four slots, and three ways to play by it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.kubectl import Kubectl, condition, evalrun, message, reason, workspace

MODELS = "casewarden-models"
FAKE = Path(__file__).parents[1] / "support" / "fake_models.py"
# The task's own protocol on one side, the gateway on the other; what the model decides is passed on.
PROGRAM = """
import json, os, sys, urllib.request
NAMES = {"get_ticket": 1, "assign_queue": 2, "add_note": 3, "close_ticket": 1}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in NAMES]
messages, asked = [], None
for line in sys.stdin:
    heard = {"role": "tool", "tool_call_id": asked} if asked else {"role": "user"}
    messages.append({**heard, "content": line})
    body = json.dumps({"model": "anything", "messages": messages, "tools": TOOLS}).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    message = json.load(urllib.request.urlopen(request))["choices"][0]["message"]
    messages.append(message)
    if not message.get("tool_calls"):
        print(json.dumps({"finish": True}), flush=True)
        break
    call = message["tool_calls"][0]
    asked = call["id"]
    name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
    print(json.dumps({"tool": name, "arguments": arguments}), flush=True)
"""
SERVER = """
import http.server as h, os, urllib.request as u
class H(h.BaseHTTPRequestHandler):
    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        answer = u.urlopen(u.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", data)).read()
        self.send_response(200); self.send_header("Content-Length", str(len(answer))); self.end_headers()
        self.wfile.write(answer)
    def log_message(self, *_): pass
h.ThreadingHTTPServer(("127.0.0.1", 9000), H).serve_forever()
"""


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


def test_a_model_a_program_and_a_server_come_to_the_same_verdicts_through_four_slots(
    kubectl: Kubectl, module_namespace: str, models: None, python_image: str
) -> None:
    program = {"program": {"workspace": {"configMap": "by-program"}}, **model("support")}
    server = {"server": {"image": python_image, "argv": ["python3", "-c", SERVER], "port": 9000}, **model("support")}
    kubectl.apply(
        workspace(module_namespace, "by-program", {"main.py": PROGRAM}),
        a_run(module_namespace, "by-program", program, priority=1),
        a_run(module_namespace, "by-server", server),
        a_run(module_namespace, "by-model", model("support"), limits={"tokens": 100000}),
    )
    found = {name: kubectl.finished(module_namespace, name) for name in ("by-program", "by-server", "by-model")}
    for status in found.values():
        assert (status.get("score"), status["valid"], status["cases"]["passed"]) == ("1", True, 4), status
    # Each call is counted once: the same decisions take the same calls. What is asked is the program's own to word.
    usages = [status["usage"] for status in found.values()]
    assert usages[0]["modelCalls"] == usages[1]["modelCalls"] == usages[2]["modelCalls"]
    assert usages[1] == usages[2]
    assert usages[0]["modelCalls"] > 12
    assert usages[0]["source"] in ("reported", "estimated")
    assert float(usages[0]["cost"]) > 0
    assert len({status["fingerprints"]["candidate"] for status in found.values()}) == 3
    stats = json.loads(kubectl("get", "--raw", f"/api/v1/namespaces/{MODELS}/services/models:8000/proxy/stats"))
    assert stats["calls"] == 3 * usages[0]["modelCalls"]
    assert stats["most"] <= 4


def test_whatever_is_wrong_with_a_model_has_an_outcome_of_its_own(
    kubectl: Kubectl, module_namespace: str, models: None
) -> None:
    one = {"select": {"families": ["route-open-ticket"]}, "retries": {"environment": 0}}
    kubectl.apply(
        a_run(module_namespace, "unknown-model", model("unknown"), **one),
        a_run(module_namespace, "no-key", model("support", "scripted-keyless"), **one),
        a_run(module_namespace, "redirect", model("redirect"), **one),
        a_run(module_namespace, "no-budget", model("support"), budget={"modelCalls": 2}, **one),
        a_run(module_namespace, "not-ours", model("support", "scripted-elsewhere"), **one),
        a_run(
            module_namespace, "unknown-parameter",
            {"model": {"endpoint": "scripted", "name": "support", "parameters": {"frobnicate": 1}}}, **one,
        ),
        a_run(module_namespace, "few-tokens", model("support"), limits={"tokens": 20}, **one),
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
