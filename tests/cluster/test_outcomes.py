"""The outcome table on a real cluster: for each fact the verdict, the retry, the budget, the reason and the condition.

Facts that the recorder sees inside the pod (limits, protocol, exits) are those of the hostile candidates.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from support import strikes
from support.candidates import FINISHES_AFTER
from support.kubectl import Kubectl, condition, evalrun, message, reason, workspace

# What a candidate earns in this one case that does nothing, and one that broke.
CASE, NOTHING, BROKEN = "route-open-ticket", "0.45", "0.35"
# Longer than CI has time for: `make soak`.
SOAK_SECONDS = float(os.environ.get("CASEWARDEN_SOAK_SECONDS", "0"))
MINUTE = min(SOAK_SECONDS, 60.0)
Strike = Callable[[Kubectl, str, dict[str, Any]], None]


def run(kubectl: Kubectl, namespace: str, name: str, seconds: float = 0, **spec: Any) -> None:
    """Apply a run of one case whose candidate thinks for so long, and then finishes."""
    kubectl.apply(
        workspace(namespace, name, {"main.py": FINISHES_AFTER.format(seconds=seconds)}),
        evalrun(namespace, name, **({"task": {"name": "support-routing"}, "seeds": {"values": [17]},
                                     "select": {"families": [CASE]},
                                     "candidate": {"program": {"workspace": {"configMap": name}}}} | spec)),
    )  # fmt: skip


def rows(kubectl: Kubectl, namespace: str, name: str) -> list[tuple[str, str, str | None]]:
    """Return kind, status and reason of each attempt."""
    return [(row["kind"], row["status"], row["reason"]) for row in strikes.ledger(kubectl, namespace, name)]


def deleted(kubectl: Kubectl, namespace: str, pod: dict[str, Any]) -> None:
    kubectl("delete", "pod", pod["metadata"]["name"], "-n", namespace, "--wait=false")


def evicted(kubectl: Kubectl, namespace: str, pod: dict[str, Any]) -> None:
    strikes.evict(kubectl, namespace, pod["metadata"]["name"])


def under_pressure(kubectl: Kubectl, namespace: str, pod: dict[str, Any]) -> None:
    why = "The node was low on resource: memory."
    strikes.say_of(kubectl, namespace, pod, phase="Failed", reason="Evicted", message=why)


def own_volume_full(kubectl: Kubectl, namespace: str, pod: dict[str, Any]) -> None:
    why = 'Usage of EmptyDir volume "state" exceeds the limit "64Mi".'
    strikes.say_of(kubectl, namespace, pod, phase="Failed", reason="Evicted", message=why)


def killed(word: str) -> Strike:
    def strike(kubectl: Kubectl, namespace: str, pod: dict[str, Any]) -> None:
        os.kill(strikes.process(pod, word), signal.SIGKILL)

    return strike


def out_of_memory(word: str) -> Strike:
    def strike(kubectl: Kubectl, namespace: str, pod: dict[str, Any]) -> None:
        strikes.starve(strikes.process(pod, word))

    return strike


EVIDENCE, CANDIDATE, TASK = "casewarden.casepod", "shim", "drive"
LOST_ONCE = ("environment", "environment_error")
VERDICT = ("verdict", "failed", None)
BY_ITS_OWN = ("verdict", "agent_error")


@dataclass(frozen=True)
class Fact:
    """What is done to the first pods of a run and what the ledger must have of it; the last row is the case's end."""

    strike: Strike
    rows: list[tuple[str, str, str | None]]
    spec: Mapping[str, Any] = field(default_factory=dict)
    valid: bool = True
    failed: str | None = None
    times: int = 1


FACTS = {
    "drained": Fact(evicted, [(*LOST_ONCE, "Evicted"), VERDICT]),
    "node-pressure": Fact(under_pressure, [(*LOST_ONCE, "Evicted"), VERDICT]),
    "own-volume-full": Fact(own_volume_full, [(*BY_ITS_OWN, "StorageLimit")]),
    "deleted": Fact(deleted, [("interruption", "environment_error", "Deleted"), VERDICT]),
    "recorder-killed": Fact(killed(EVIDENCE), [(*LOST_ONCE, "EvidenceFailed"), VERDICT]),
    "recorder-out-of-memory": Fact(out_of_memory(EVIDENCE), [(*LOST_ONCE, "EvidenceFailed"), VERDICT]),
    "driver-out-of-memory": Fact(out_of_memory(TASK), [(*LOST_ONCE, "TaskFailed"), VERDICT]),
    "driver-killed": Fact(killed(TASK), [(*LOST_ONCE, "TaskFailed"), VERDICT]),
    "candidate-killed": Fact(killed(CANDIDATE), [(*BY_ITS_OWN, "ShimLost")]),
    "environment-budget-spent": Fact(
        evicted, [(*LOST_ONCE, "Evicted")], {"retries": {"environment": 0}}, valid=False
    ),
    "interruption-budget-spent": Fact(
        deleted, [("interruption", "environment_error", "Deleted")], {"retries": {"interruptions": 0}}, valid=False
    ),
    "breaker": Fact(
        killed(TASK), [(*LOST_ONCE, "TaskFailed")] * 3, {"parallelism": 1, "retries": {"environment": 5}},
        valid=False, failed="CircuitBreaker", times=3,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def struck(kubectl: Kubectl, module_namespace: str) -> str:
    """The namespace in which each fact has befallen a run of its own, and every run is over."""
    for name, fact in FACTS.items():
        run(kubectl, module_namespace, name, 18, **fact.spec)
    waiting = {name: fact.times for name, fact in FACTS.items()}
    struck: set[str] = set()

    def strike() -> bool:
        for name, pod in strikes.playing(kubectl, module_namespace).items():
            if waiting.get(name) and pod["metadata"]["uid"] not in struck:
                struck.add(pod["metadata"]["uid"])
                waiting[name] -= 1
                FACTS[name].strike(kubectl, module_namespace, pod)
        return not any(waiting.values())

    kubectl.until(strike, 240, lambda: f"still to be struck: {waiting}: {kubectl.picture(module_namespace)}")
    for name in FACTS:
        kubectl.finished(module_namespace, name)
    return module_namespace


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", FACTS)
def test_who_caused_it_decides_what_becomes_of_it(kubectl: Kubectl, struck: str, name: str) -> None:
    fact, status = FACTS[name], kubectl.status(struck, name)
    assert rows(kubectl, struck, name) == fact.rows, strikes.ledger(kubectl, struck, name)
    environment = sum(kind == "environment" for kind, _, _ in fact.rows)
    interruptions = sum(kind == "interruption" for kind, _, _ in fact.rows)
    assert status["attempts"]["total"] == len(fact.rows)
    assert status["attempts"]["interruptions"] == interruptions
    assert status["valid"] is fact.valid
    if fact.failed is not None:
        assert (condition(status, "Failed"), reason(status, "Failed")) == ("True", fact.failed)
        assert ("Warning", fact.failed) in strikes.events(kubectl, struck, name)
        return
    assert condition(status, "Complete") == "True"
    assert ("Normal", "Completed") in strikes.events(kubectl, struck, name)
    if not fact.valid:
        assert "score" not in status
        assert status["cases"]["environmentErrors"] == 1
        assert condition(status, "Passed") == "Unknown"
        assert status["failures"][0]["reason"] == fact.rows[-1][2]
        return
    assert status["attempts"]["environmentRetries"] == environment
    assert status["score"] == (NOTHING if fact.rows[-1] == VERDICT else BROKEN if name != "own-volume-full" else "0")
    assert condition(status, "Passed") == "False"


@pytest.mark.parametrize("container", ["recorder", "driver"])
def test_of_a_container_that_was_out_of_memory_the_row_says_so(kubectl: Kubectl, struck: str, container: str) -> None:
    first = strikes.ledger(kubectl, struck, f"{container}-out-of-memory")[0]
    assert "137 OOMKilled" in first["error"], first


def test_a_candidates_container_that_dies_before_anything_ran_in_it_is_the_environments(
    kubectl: Kubectl, namespace: str
) -> None:
    run(kubectl, namespace, "early", 1)
    (pod,) = kubectl.until(
        lambda: kubectl.pods_of(namespace, "early"), 90, lambda: kubectl.picture(namespace), pause=0.05
    )
    os.kill(strikes.as_it_starts(pod, CANDIDATE), signal.SIGKILL)
    struck_at = time.monotonic()
    kubectl.until(lambda: rows(kubectl, namespace, "early"), 60, lambda: kubectl.picture(namespace))
    assert time.monotonic() - struck_at < 60, "the driver waits for a shim for 900 s"
    status = kubectl.finished(namespace, "early")
    assert rows(kubectl, namespace, "early") == [(*LOST_ONCE, "EvidenceFailed"), VERDICT]
    assert status["score"] == NOTHING


def test_a_finished_pod_that_is_drained_keeps_its_verdict(kubectl: Kubectl, namespace: str) -> None:
    run(
        kubectl,
        namespace,
        "kept",
        4,
        keepPods="OnFailure",
        parallelism=1,
        select={"families": [CASE, "close-resolved-ticket"]},
    )
    kubectl.until(lambda: kubectl.status(namespace, "kept").get("cases", {}).get("failed", 0) >= 1, 120,
                  lambda: kubectl.picture(namespace))  # fmt: skip
    over = [
        pod
        for pod in kubectl.pods_of(namespace, "kept")
        if any("terminated" in item["state"] for item in pod["status"]["containerStatuses"] if item["name"] == "task")
    ]
    evicted(kubectl, namespace, over[0])
    status = kubectl.finished(namespace, "kept")
    assert rows(kubectl, namespace, "kept") == [VERDICT, VERDICT]
    assert status["attempts"]["environmentRetries"] == status["attempts"]["interruptions"] == 0


def test_a_preempted_pod_is_tried_again(kubectl: Kubectl, namespace: str) -> None:
    low, high = f"{namespace[-6:]}-low", f"{namespace[-6:]}-high"
    for name, value in ((low, -10), (high, 1000)):
        kubectl.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
                       "value": value})  # fmt: skip
    try:
        run(kubectl, namespace, "preempted", 12, podTemplate={
            "priorityClassName": low, "candidate": {"resources": {"requests": {"cpu": "400m"}}}})  # fmt: skip
        pod = strikes.play(kubectl, namespace, "preempted")
        free = _free_cpu(kubectl, pod["spec"]["nodeName"])
        image = next(item["image"] for item in pod["spec"]["containers"] if item["name"] == "candidate")
        kubectl.apply(_sleeper(namespace, high, image, f"{free + 200}m"))
        kubectl.until(lambda: kubectl.get("pod", namespace, "preemptor")["status"]["phase"] == "Running", 60,
                      lambda: kubectl.picture(namespace))  # fmt: skip
        kubectl("delete", "pod", "preemptor", "-n", namespace, "--grace-period=0", "--force")
        kubectl.finished(namespace, "preempted")
    finally:
        kubectl("delete", "priorityclass", low, high)
    assert rows(kubectl, namespace, "preempted") == [(*LOST_ONCE, "Preempted"), VERDICT]


def _sleeper(namespace: str, priority: str, image: str, cpu: str) -> dict[str, Any]:
    security = {"runAsNonRoot": True, "runAsUser": 65532, "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}  # fmt: skip
    container = {"name": "sleep", "image": image, "command": ["python3", "-c", "import time; time.sleep(60)"],
                 "resources": {"requests": {"cpu": cpu}}, "securityContext": security}  # fmt: skip
    spec = {"priorityClassName": priority, "containers": [container], "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "preemptor", "namespace": namespace}, "spec": spec}


def _free_cpu(kubectl: Kubectl, node: str) -> int:
    """Return how many thousandths of a CPU no pod of the node has asked for."""

    def milli(text: str) -> int:
        return int(text[:-1]) if text.endswith("m") else int(float(text) * 1000)

    total = milli(kubectl("get", "node", node, "-o", "jsonpath={.status.allocatable.cpu}"))
    pods = json.loads(kubectl("get", "pods", "-A", "-o", "json", "--field-selector", f"spec.nodeName={node}"))["items"]
    for pod in pods:
        if pod["status"]["phase"] in ("Pending", "Running"):
            asked = [
                *pod["spec"]["containers"],
                *(c for c in pod["spec"].get("initContainers", ()) if c.get("restartPolicy")),
            ]
            total -= sum(milli(c.get("resources", {}).get("requests", {}).get("cpu", "0")) for c in asked)
    return total


@pytest.mark.timeout(400)
def test_a_pod_whose_node_is_gone_is_tried_again(kubectl: Kubectl, namespace: str) -> None:
    run(kubectl, namespace, "lost", 2, suspend=True)
    kubectl.until(lambda: condition(kubectl.status(namespace, "lost"), "Suspended") == "True", 60,
                  lambda: kubectl.picture(namespace))  # fmt: skip
    node = f"pretended-{namespace[-6:]}"
    kubectl("patch", "evalrun", "lost", "-n", namespace, "--type=merge", "-p", '{"spec":{"suspend":false}}')
    kubectl.until(lambda: condition(kubectl.status(namespace, "lost"), "Planned") == "True"
                  or kubectl.pods_of(namespace, "lost"), 60, lambda: kubectl.picture(namespace), pause=0.1)  # fmt: skip
    with strikes.pretended_node(kubectl, node):
        if kubectl.pods_of(namespace, "lost"):
            # It was quicker than the node: its next attempt goes there.
            deleted(kubectl, namespace, kubectl.pods_of(namespace, "lost")[0])
        kubectl.until(lambda: any(pod["spec"].get("nodeName") == node for pod in kubectl.pods_of(namespace, "lost")),
                      90, lambda: kubectl.picture(namespace))  # fmt: skip
    kubectl.finished(namespace, "lost")
    last = rows(kubectl, namespace, "lost")[-2:]
    assert last == [(*LOST_ONCE, "NodeLost"), VERDICT]


def test_a_quota_is_waited_for(kubectl: Kubectl, namespace: str) -> None:
    kubectl.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": namespace},
                   "spec": {"hard": {"pods": "0"}}})  # fmt: skip
    kubectl.until(lambda: kubectl.get("resourcequota", namespace, "none").get("status", {}).get("hard"), 30,
                  lambda: kubectl.picture(namespace))  # fmt: skip
    run(kubectl, namespace, "waits")
    status = kubectl.until(lambda: s if reason(s := kubectl.status(namespace, "waits"), "Finished") == "QuotaExceeded"
                           else None, 60, lambda: kubectl.picture(namespace))  # fmt: skip
    assert condition(status, "Finished") == "False"
    assert "exceeded quota" in message(status, "Finished")
    kubectl("delete", "resourcequota", "none", "-n", namespace)
    status = kubectl.finished(namespace, "waits")
    assert status["score"] == NOTHING
    assert rows(kubectl, namespace, "waits") == [VERDICT]
    assert ("Warning", "QuotaExceeded") in strikes.events(kubectl, namespace, "waits")


def _limit_range(namespace: str) -> dict[str, Any]:
    limit = {"type": "Container", "max": {"memory": "16Mi"}}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small", "namespace": namespace},
            "spec": {"limits": [limit]}}  # fmt: skip


def test_pods_that_a_limit_range_refuses_fail_the_run(kubectl: Kubectl, namespace: str) -> None:
    kubectl.apply(_limit_range(namespace))
    run(kubectl, namespace, "refused")
    status = kubectl.finished(namespace, "refused", 60)
    assert (condition(status, "Failed"), reason(status, "Failed")) == ("True", "Refused")
    assert "maximum memory usage per Container is 16Mi" in message(status, "Failed")
    assert ("Warning", "Refused") in strikes.events(kubectl, namespace, "refused")


def test_pods_of_a_runtime_class_that_is_not_there_fail_the_run(kubectl: Kubectl, namespace: str) -> None:
    run(kubectl, namespace, "refused", podTemplate={"runtimeClassName": "none-such"})
    status = kubectl.finished(namespace, "refused", 60)
    assert (condition(status, "Failed"), reason(status, "Failed")) == ("True", "Refused")
    assert "none-such" in message(status, "Failed")


def test_pods_that_fit_on_no_node_fail_the_run_in_time(kubectl: Kubectl, namespace: str) -> None:
    run(kubectl, namespace, "nowhere", podTemplate={"nodeSelector": {"no": "such"}}, limits={"pendingSeconds": 8})
    status = kubectl.finished(namespace, "nowhere", 60)
    assert (condition(status, "Failed"), reason(status, "Failed")) == ("True", "Unschedulable")
    assert "score" not in status
    assert ("Warning", "Unschedulable") in strikes.events(kubectl, namespace, "nowhere")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("when", ["before-the-start", "while-it-plays", "after-the-verdict"])
def test_a_relay_that_is_away_costs_no_attempt(kubectl: Kubectl, namespace: str, when: str) -> None:
    if when == "before-the-start":
        with strikes.relay_away(kubectl):
            run(kubectl, namespace, when, 1)
            time.sleep(MINUTE or 20)
            assert condition(kubectl.status(namespace, when), "Finished") == "False"
    else:
        run(kubectl, namespace, when, 10 if when == "while-it-plays" else 4)
        # The claim comes before the candidate starts.
        strikes.play(kubectl, namespace, when)
        with strikes.relay_away(kubectl):
            time.sleep(MINUTE or (5 if when == "while-it-plays" else 25))
            if when == "after-the-verdict":
                assert rows(kubectl, namespace, when) == []
                assert len(kubectl.pods_of(namespace, when)) == 1, "the verdict is held, not made again"
    status = kubectl.finished(namespace, when)
    assert rows(kubectl, namespace, when) == [VERDICT]
    assert status["score"] == NOTHING


@pytest.mark.timeout(600)
def test_an_api_server_that_is_away_costs_no_attempt(kubectl: Kubectl, namespace: str) -> None:
    run(kubectl, namespace, "cut-off", 6, parallelism=2, select={}, seeds={"values": [17]})
    kubectl.until(lambda: kubectl.status(namespace, "cut-off").get("cases", {}).get("failed", 0) >= 1, 120,
                  lambda: kubectl.picture(namespace))  # fmt: skip
    with strikes.frozen(strikes.api_server(kubectl)):
        time.sleep(SOAK_SECONDS or 40)
    status = kubectl.finished(namespace, "cut-off")
    assert rows(kubectl, namespace, "cut-off") == [VERDICT] * 4
    assert status["score"] == "0.35"
    assert status["attempts"]["total"] == 4


def test_a_namespace_goes_while_its_runs_are_played(kubectl: Kubectl, namespace: str) -> None:
    run(kubectl, namespace, "going", 20)
    strikes.play(kubectl, namespace, "going")
    kubectl("delete", "namespace", namespace, "--wait=false")
    kubectl.until(lambda: not kubectl("get", "namespace", namespace, "--ignore-not-found").strip(), 90,
                  lambda: kubectl("get", "namespace", namespace, "-o", "yaml"))  # fmt: skip
    kubectl("-n", strikes.RELEASE, "rollout", "status", "deployment/casewarden-operator", "--timeout=10s")
