"""AgentBench's environments in real pods, played by models: all prompters, audits of those that only read, and ends."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.kubectl import Kubectl, condition, evalrun
from support.offers import image_of
from support.scripted import scripted_models

Casewarden = Callable[..., subprocess.CompletedProcess[str]]
# What solves the first sample of each, said at once and again. A row of each kind is played of DB.
DB = {"name": "agentbench-db", "params": {"indices": [0, 4, 17, 23]}}
OS = {"name": "agentbench-os"}
SAYS: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "db": (DB, [], 'Action: Answer\nFinal Answer: ["Gannet"]'),
    "os": (OS, ["own-own-00000"], "Think: eight files are there.\n\nAct: answer(8)"),
}
BY_ENDPOINT: dict[str, dict[str, Any]] = {
    "openai-chat": {},
    "role-content-dict": {"name": "role_content_dict"},
    "prompt-string": {"name": "prompt_string", "args": {"suffix": "AGENT:"}},
    "claude": {"name": "claude"},
}
BY_SERVER = ["role_content_dict", "batched_role_content_dict", "prompt_string", "claude", "palm"]
# AgentBench's own kind of agent: it answers what it is asked at a path of its own, in a form of its own.
SERVER = """\
import http.server, json, sys
class Agent(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert asked.pop("temperature") == 0 and len(asked) == 1, asked
        data = json.dumps({"said": [{"text": sys.argv[1]}]}).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(data))); self.end_headers()
        self.wfile.write(data)
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer(("", 9000), Agent).serve_forever()
"""
# One sample of each, or two, in which every fault shows.
AUDITS = {
    "graph": ({"name": "agentbench-kg", "params": {"indices": [0, 4]}}, 7),
    "browsing": ({"name": "agentbench-mind2web", "params": {"indices": [0, 2]}}, 7),
    "shopping": ({"name": "agentbench-webshop", "params": {"indices": [0]}}, 8),
    # A plate to be cleaned, and two things.
    "chores": ({"name": "agentbench-alfworld", "params": {"indices": [1, 5]}}, 5),
}
TO_THE_END: dict[str, tuple[dict[str, Any], list[str], str]] = {
    "chores": ({"name": "agentbench-alfworld", "params": {"max_step": 2}}, ["0"], "ACTION: look"),
    "graph": ({"name": "agentbench-kg", "params": {"round": 3}}, ["0"], "Final Answer: #0"),
    "browsing": ({"name": "agentbench-mind2web"}, ["1", "2"], "Answer: B\nAction: CLICK"),
    "shopping": ({"name": "agentbench-webshop", "params": {"round": 3}}, ["0"], "Action:\nsearch[socks]"),
}


@pytest.fixture(scope="module", autouse=True)
def _models(kubectl: Kubectl) -> Iterator[None]:
    with scripted_models(kubectl, image_of(kubectl, "python")):
        yield


@pytest.fixture(scope="module")
def root_namespace(kubectl: Kubectl, module_namespace: str) -> str:
    """A namespace that admits the Pod Security level ``baseline``, which OS needs."""
    kubectl("label", "namespace", module_namespace, "pod-security.kubernetes.io/enforce=baseline", "--overwrite")
    return module_namespace


def says(text: str, prompter: dict[str, Any] | None = None) -> dict[str, Any]:
    model: dict[str, Any] = {"endpoint": "scripted", "name": "says", "parameters": {"say": text}}
    return {"model": {**model, "prompter": prompter} if prompter else model}


def serves(image: str, text: str, prompter: str) -> dict[str, Any]:
    agent = {
        "path": "/act", "body": {"temperature": 0}, "prompter": {"name": prompter},
        "returnFormat": "{response[said][0][text]}",
    }  # fmt: skip
    return {"server": {"image": image, "argv": ["python3", "-c", SERVER, text], "port": 9000, "agent": agent}}


def played(
    namespace: str, name: str, task: dict[str, Any], cases: list[str], candidate: dict[str, Any]
) -> dict[str, Any]:
    chosen = {"select": {"families": cases}} if cases else {}
    return evalrun(namespace, name, task=task, candidate=candidate, seeds={"values": [0]},
                   retries={"environment": 0}, **chosen)  # fmt: skip


def test_os_and_db_are_played_through_an_endpoint_and_by_agentbenchs_own_agents_with_every_prompter(
    kubectl: Kubectl, root_namespace: str, casewarden: Casewarden
) -> None:
    image, runs = image_of(kubectl, "python"), {}
    for name, (task, cases, text) in SAYS.items():
        for word, prompter in BY_ENDPOINT.items():
            runs[f"{name}-{word}"] = (task, cases, says(text, prompter or None))
        for word in BY_SERVER:
            runs[f"{name}-served-{word.replace('_', '-')}"] = (task, cases, serves(image, text, word))
    kubectl.apply(*(played(root_namespace, name, *run) for name, run in runs.items()))
    ended = {name: kubectl.finished(root_namespace, name, 280) for name in runs}
    passed = {name: (status.get("cases", {}).get("passed"), status.get("valid")) for name, status in ended.items()}
    assert passed == dict.fromkeys(runs, (1, True)), {name: status.get("failures") for name, status in ended.items()}
    assert {status["score"] for name, status in ended.items() if name.startswith("os-")} == {"1"}
    # The form that a prompter gives the history is what the endpoint was sent.
    shown = casewarden("show", "db-prompt-string", "0", "-n", root_namespace, "-o", "json")
    said = [json.loads(row["text"]) for row in json.loads(shown.stdout)["transcript"] if row["dir"] == "model-in"]
    assert said[0]["prompt"].startswith("USER: ")
    assert said[0]["prompt"].endswith("AGENT:")


@pytest.fixture(scope="module")
def audits(kubectl: Kubectl, root_namespace: str) -> dict[str, dict[str, Any]]:
    """The statuses of the audits, which run side by side."""
    kubectl.apply(
        *({"apiVersion": "casewarden.dev/v1alpha1", "kind": "AuditRun",
           "metadata": {"name": name, "namespace": root_namespace},
           "spec": {"task": task, "seeds": {"values": [0]}, "referenceRepeats": 1, "parallelism": 8, "strict": True}}
          for name, (task, _) in AUDITS.items())
    )  # fmt: skip

    def over(name: str) -> dict[str, Any] | None:
        status = kubectl.get("auditrun", root_namespace, name).get("status") or {}
        return status if condition(status, "Finished") == "True" else None

    return {
        name: kubectl.until(lambda name=name: over(name), 290, lambda: kubectl.picture(root_namespace))
        for name in AUDITS
    }


@pytest.mark.parametrize("name", AUDITS)
def test_an_audit_catches_every_fault_and_its_evidence_verifies(
    audits: dict[str, dict[str, Any]], casewarden: Casewarden, root_namespace: str, name: str
) -> None:
    status, faults = audits[name], AUDITS[name][1]
    assert (status["valid"], status["passed"], status["killed"]) == (True, True, f"{faults}/{faults}"), status
    assert (status["referenceScore"], set(status["floors"].values())) == ("1", {"0"})
    verified = casewarden("verify", f"ar/{name}", "-n", root_namespace, "-o", "json")
    assert json.loads(verified.stdout)["consistent"] is True, verified.stdout + verified.stderr


def test_a_model_plays_each_of_the_others_to_its_end(kubectl: Kubectl, root_namespace: str) -> None:
    kubectl.apply(
        *(played(root_namespace, f"plays-{name}", task, cases, says(text))
          for name, (task, cases, text) in TO_THE_END.items())
    )  # fmt: skip
    for name in TO_THE_END:
        status = kubectl.finished(root_namespace, f"plays-{name}")
        assert (status.get("valid"), status["cases"]["agentErrors"]) == (True, 0), status
        assert 0 <= float(status["score"]) < 1
        assert status["usage"]["modelCalls"] > 0


def test_an_agent_is_tried_before_it_is_evaluated(
    kubectl: Kubectl, root_namespace: str, casewarden: Casewarden, tmp_path: Any
) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps(played(root_namespace, "try-it", DB, [], says("hello"))))
    tried = casewarden("agent-test", "-f", str(file), "-n", root_namespace, "--message", "Say hello")
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert "hello" in tried.stdout
    unheard = {"model": {"endpoint": "scripted", "name": "unknown"}}
    file.write_text(json.dumps(played(root_namespace, "try-it", DB, [], unheard)))
    tried = casewarden("agent-test", "-f", str(file), "-n", root_namespace, "--message", "Say hello")
    assert tried.returncode != 0
    assert "does not exist" in tried.stdout + tried.stderr
