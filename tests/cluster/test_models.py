"""Candidates with models on a cluster: one scripted model, its four slots, and every way to play by it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import judged_pack, model_clients
from support.kubectl import Kubectl, condition, evalrun, message, reason, workspace
from support.offers import SYSTEM, image_of, offering
from support.prometheus import told_by, watching
from support.scripted import MODELS, scripted_models
from support.shipped_pack import command_of

Command = Callable[..., subprocess.CompletedProcess[str]]
Stats = Callable[[], dict[str, Any]]
SLOTS, CASES, CALLS, EARLY = 4, 4, 20, 3
ONE = {"select": {"families": ["route-open-ticket"]}, "retries": {"environment": 0}}


@pytest.fixture(scope="module")
def python_image(kubectl: Kubectl) -> str:
    return image_of(kubectl, "python")


@pytest.fixture(scope="module")
def models(kubectl: Kubectl, python_image: str) -> Iterator[Stats]:
    """The scripted model's own count, and beside it a pool of four pods, and a task that asks a judge."""

    def add(catalogue: dict[str, Any]) -> None:
        image = catalogue["tasks"]["durable-kv"]["image"]
        catalogue["tasks"]["judged"] = {"image": image, "command": command_of(judged_pack)}
        # Only pools have slots to be watched.
        pools = {"agents": {"scripted-shared": {"concurrency": SLOTS}}, "tasks": {"judged": {"concurrency": SLOTS}}}
        catalogue["pools"] = pools

    with scripted_models(kubectl, python_image) as stats, offering(kubectl, add):
        yield stats


def a_run(namespace: str, name: str, candidate: dict[str, Any], **spec: Any) -> dict[str, Any]:
    base = {"task": {"name": "support-routing"}, "seeds": {"values": [17]}, "candidate": candidate}
    return evalrun(namespace, name, **{**base, **spec})


def model(name: str, endpoint: str = "scripted") -> dict[str, Any]:
    return {"model": {"endpoint": endpoint, "name": name}}


def by_program(client: str, trial_image: str, name: str, endpoint: str = "scripted", env: Any = ()) -> dict[str, Any]:
    # Anthropic's SDK reads certificates at its start, and the image has those of a package only.
    trusted = {"name": "SSL_CERT_FILE", "value": "/usr/local/lib/python3.11/dist-packages/certifi/cacert.pem"}
    workspace = {"configMap": f"with-{client.lower()}"}
    program = {"image": trial_image, "workspace": workspace, "env": [trusted, *env]}
    return {"program": program, **model(name, endpoint)}


def client(namespace: str, name: str) -> dict[str, Any]:
    return workspace(namespace, f"with-{name.lower()}", {"main.py": getattr(model_clients, name)})


def test_a_program_a_server_and_a_model_of_the_same_decisions_come_to_the_same_verdicts(
    kubectl: Kubectl, module_namespace: str, models: Stats, python_image: str, trial_image: str
) -> None:
    before = models()["calls"]
    server = {"image": python_image, "argv": ["python3", "-c", model_clients.SERVER], "port": 9000}
    # It forgets to close what is resolved: two cases pass and two fail.
    candidates = {
        "by-program": by_program("OPENAI", trial_image, "careless"),
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
    seen = models()
    assert seen["calls"] - before == 3 * usages[0]["modelCalls"]
    assert seen["most"] <= SLOTS


def test_clients_work_through_the_gateway_as_they_are(
    kubectl: Kubectl, module_namespace: str, models: Stats, trial_image: str,
    casewarden: Command,
) -> None:  # fmt: skip
    """The `openai` SDK is above; here are Anthropic's, an agent of LangChain's and curl, streams and tools included."""
    endpoints = {"ANTHROPIC": "scripted-claude", "LANGCHAIN": "scripted", "CURL": "scripted"}
    places = [(MODELS, "models", "8000/"), (SYSTEM, "casewarden-relay", "8080/healthz")]
    addresses = [f"http://{kubectl.get('service', *place[:2])['spec']['clusterIP']}:{place[2]}" for place in places]
    elsewhere = [{"name": "ELSEWHERE", "value": " ".join(addresses)}]
    kubectl.apply(*(client(module_namespace, name) for name in endpoints))
    kubectl.apply(
        *(a_run(module_namespace, f"with-{name.lower()}",
                by_program(name, trial_image, "support", endpoint, elsewhere), **ONE)
          for name, endpoint in endpoints.items())
    )  # fmt: skip
    for name in endpoints:
        run = f"with-{name.lower()}"
        status = kubectl.finished(module_namespace, run)
        assert (status.get("score"), status.get("usage", {}).get("modelCalls")) == ("1", 4), (name, status)
        shown = casewarden("show", run, "route-open-ticket", "-n", module_namespace, "-o", "json")
        rows = json.loads(shown.stdout)["transcript"]
        calls = [row["dir"] for row in rows if row["dir"].startswith("model-")]
        assert sorted(calls) == ["model-in"] * 4 + ["model-out"] * 4
        assert "assign_queue" in "".join(row["text"] for row in rows if row["dir"] == "model-out")
    # What was used is under the digest of the status.
    verified = casewarden("verify", "with-curl", "-n", module_namespace, "-o", "json")
    told = json.loads(verified.stdout)
    assert (told["consistent"], told["authenticated"], told["calls_in_bundles"]) == (True, True, 4), told


def test_whatever_is_wrong_with_a_model_has_an_outcome_of_its_own(
    kubectl: Kubectl, module_namespace: str, models: Stats
) -> None:
    kubectl.apply(
        a_run(module_namespace, "unknown-model", model("unknown"), **ONE),
        a_run(module_namespace, "no-key", model("support", "scripted-keyless"), **ONE),
        a_run(module_namespace, "wrong-key", model("keyed"), **ONE),
        a_run(module_namespace, "redirect", model("redirect"), **ONE),
        a_run(module_namespace, "too-long", model("context"), **ONE),
        a_run(module_namespace, "bad-json", model("bad-json"), **ONE),
        a_run(module_namespace, "bomb", model("bomb"), **ONE),
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
        ("wrong-key", "environment_error", "ModelUnavailable", "refuses the relay's key (401)"),
        ("too-long", "agent_error", "ContextLimit", "maximum context length"),
        ("bad-json", "environment_error", "ModelUnavailable", "no JSON"),
        ("bomb", "environment_error", "ModelUnavailable", "is over"),
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


def test_a_judge_is_metered_apart_and_what_is_wrong_with_it_is_not_the_agents(
    kubectl: Kubectl, module_namespace: str, models: Stats, casewarden: Command
) -> None:
    def judged(name: str, judge: str, control: str) -> dict[str, Any]:
        task = {"name": "judged", "models": {"judge": {"endpoint": "scripted", "name": judge}}}
        return a_run(module_namespace, name, {"control": control}, task=task, retries={"environment": 0})

    kubectl.apply(
        judged("judged-right", "judge", "reference"),
        judged("judged-wrong", "judge", "off-by-one"),
        judged("judge-away", "failing99", "reference"),
    )
    right, wrong, away = (
        kubectl.finished(module_namespace, name) for name in ("judged-right", "judged-wrong", "judge-away")
    )
    assert (right.get("score"), wrong.get("score"), away.get("score")) == ("1", "0", None)
    assert (right["usage"]["modelCalls"], right["usage"]["models"]["judge"]["modelCalls"]) == (0, 1)
    (failure,) = away["failures"]
    assert (failure["status"], failure["reason"]) == ("environment_error", "ModelUnavailable")
    assert failure["error"].startswith("judge: endpoint scripted")
    shown = json.loads(casewarden("show", "judged-wrong", "forty-two", "-n", module_namespace, "-o", "json").stdout)
    said = {row["dir"]: row["text"] for row in shown["transcript"]}
    assert "Is it 42?" in said["judge-in"]
    assert '"no"' in said["judge-out"]


def shared(namespace: str, name: str, model: str, **spec: Any) -> dict[str, Any]:
    """A run of the endpoint whose four slots are shared; it would take eight."""
    return a_run(namespace, name, {"model": {"endpoint": "scripted-shared", "name": model}}, parallelism=8, **spec)


class Watch:
    """Looks at the slots all the time: how many are used while there are runs that would take them."""

    def __init__(self, kubectl: Kubectl) -> None:
        self.most = 0
        self.used = self.full = 0.0
        self._kubectl = kubectl
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(60)

    def _look(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(Exception):
                self._once()
            time.sleep(0.2)

    def _once(self) -> None:
        raw = self._kubectl(
            "get", "--raw", f"/api/v1/namespaces/{SYSTEM}/services/casewarden-operator:8080/proxy/slots"
        )
        (pool,) = [pool for pool in json.loads(raw)["pools"] if pool["name"] == "scripted-shared"]
        self.most = max(self.most, pool["used"])
        # Where all that is wanted is used, nothing is left to use.
        if pool["wanted"] >= pool["limit"]:
            self.used += pool["used"]
            self.full += pool["limit"]


def test_four_slots_are_used_by_priority_and_every_call_is_counted_once_whoever_is_killed(
    kubectl: Kubectl, namespace: str, models: Stats, casewarden: Command
) -> None:
    first, last, before = ["early-1", "early-2"], "late-but-urgent", models()
    with Watch(kubectl) as watch:
        kubectl.apply(*(shared(namespace, name, "support+slow", repeats=EARLY) for name in first))
        kubectl.until(
            lambda: models()["calls"] > before["calls"], 120, lambda: f"no calls\n{kubectl.picture(namespace)}"
        )
        shown = casewarden("slots", "-o", "json")
        (pool,) = [pool for pool in json.loads(shown.stdout)["pools"] if pool["name"] == "scripted-shared"]
        assert (pool["limit"], 0 < pool["used"] <= SLOTS) == (SLOTS, True)
        kubectl.apply(shared(namespace, last, "support+flaky", priority=10))
        # In the middle of their calls: the endpoint goes on with those, and so do their slots.
        killed = kubectl.until(
            lambda: [pod["metadata"]["name"] for name in first for pod in kubectl.pods_of(namespace, name)
                     if pod["status"]["phase"] == "Running"][:2],
            60, lambda: kubectl.picture(namespace), pause=0.1,
        )  # fmt: skip
        at_once = ["--grace-period=0", "--force", "--wait=false"]
        kubectl("delete", "pod", "-n", namespace, *at_once, *killed)
        ended = {last: kubectl.finished(namespace, last)}
        kubectl("delete", "pod", "-n", SYSTEM, *at_once, "-l", "app.kubernetes.io/component=operator")
        ended |= {name: kubectl.finished(namespace, name) for name in first}
    for name, status in ended.items():
        cases = CASES if name == last else EARLY * CASES
        assert (status.get("score"), status["assessed"]) == ("1", f"{cases}/{cases}"), (name, status)
    # Nobody starved, and the urgent one, which came last, was done while the others had cases left.
    times = {name: status["completionTime"] for name, status in ended.items()}
    assert times[last] < max(times[name] for name in first), times
    # One that had sealed already when it was killed is not played again.
    attempts = [status["attempts"] for status in ended.values()]
    assert sum(item["interruptions"] for item in attempts) <= len(killed)
    again = sum(item["interruptions"] + item["environmentRetries"] for item in attempts)
    seen = models()
    assert seen["most"] <= SLOTS, seen
    assert watch.most <= SLOTS
    assert watch.used / watch.full > 0.95, (watch.used, watch.full)
    # No call is charged twice, those of killed pods are charged once: what the server answered is what was counted.
    answered = seen["answered"] - before["answered"]
    assert sum(status["usage"]["modelCalls"] for status in ended.values()) == answered
    # A killed pod's case is played anew: that, and no more, is what it cost.
    alone = (2 * EARLY + 1) * CALLS
    assert alone <= answered <= alone + 6 * again, answered


def test_a_real_prometheus_has_data_for_every_panel_of_models_and_tells_of_a_spent_budget(
    kubectl: Kubectl, module_namespace: str, models: Stats, tmp_path: Path
) -> None:
    def run(name: str) -> None:
        kubectl.apply(a_run(module_namespace, name, model("support"), budget={"modelCalls": 2}, **ONE))

    # What is counted for the first time has not risen yet, as Prometheus sees it.
    run("spent-before")
    assert reason(kubectl.finished(module_namespace, "spent-before"), "Failed") == "BudgetSpent"
    missing = set(told_by("models"))
    with watching(kubectl, tmp_path) as prometheus:
        run("spent")

        def told() -> bool:
            missing.intersection_update(prometheus.without_data(missing))
            return not missing and "CasewardenModelBudgetSpent" in prometheus.firing()

        kubectl.until(told, 60, lambda: f"firing: {prometheus.firing()}, no data: {missing}")
