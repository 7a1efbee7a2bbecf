"""The chart on a cluster: tested by its hook, watched, upgraded during a run, narrowed to a namespace, gone."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.candidates import EXITS_127, FINISHES_AFTER
from support.kubectl import Kubectl, condition, evalrun, message, reason, workspace
from support.prometheus import alerts, panel_expressions, scraping

from devkit import programs

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).resolve().parents[2]
CHART = str(ROOT / "charts" / "casewarden")
RELEASE, SYSTEM = "casewarden", "casewarden-system"
SUPPORT_CASES = 4
KEPT = ("evalruns.casewarden.dev", "auditruns.casewarden.dev")
# Audits, intervals, models and pools are what these series tell of; no run here has any.
LATER = (
    "casewarden_run_score_bound", "casewarden_run_score_floor", "casewarden_run_model", "casewarden_relay_model",
    "casewarden_slots{", "casewarden_audit_",
)  # fmt: skip

Helm = Callable[..., str]


@pytest.fixture(scope="module")
def helm(kubeconfig: str) -> Helm:
    program = shutil.which("helm") or str(programs.ensure(programs.CLUSTER) / "helm")

    def run(*words: str, seconds: float = 300) -> str:
        done = subprocess.run([program, "--kubeconfig", kubeconfig, *words], capture_output=True, text=True,
                              timeout=seconds, check=False)  # fmt: skip
        assert done.returncode == 0, f"helm {' '.join(words)}: {done.stderr or done.stdout}"
        return done.stdout

    return run


@contextmanager
def forwarded(kubectl: Kubectl, service: str) -> Iterator[int]:
    """Yield the local port that leads to a service of the release."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    words = ["kubectl", "--kubeconfig", kubectl.kubeconfig, "-n", SYSTEM, "port-forward", f"service/{service}"]
    with subprocess.Popen([*words, f"{port}:8080"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            kubectl.until(lambda: _answers(port), 30, lambda: f"no port-forward to {service}")
            yield port
        finally:
            process.terminate()


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


def applied(kubectl: Kubectl, namespace: str, name: str, seconds: float, **spec: Any) -> None:
    """Apply a run whose candidate thinks for so long and then finishes: all cases fail, the score is 0.35."""
    candidate = {"program": {"workspace": {"configMap": name}}}
    whole = {"task": {"name": "support-routing"}, "seeds": {"values": [17]}, "candidate": candidate} | spec
    files = {"main.py": FINISHES_AFTER.format(seconds=seconds)}
    kubectl.apply(workspace(namespace, name, files), evalrun(namespace, name, **whole))


def limited(kubectl: Kubectl, namespace: str) -> None:
    """Give a namespace the bounds that a shared cluster has."""
    meta = {"name": "team", "namespace": namespace}
    bounds = [{"type": "Container", "max": {"cpu": "2", "memory": "2Gi"}, "min": {"cpu": "1m", "memory": "4Mi"}}]
    kubectl.apply(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta,
         "spec": {"hard": {"pods": "3", "requests.cpu": "4", "requests.memory": "4Gi", "limits.memory": "8Gi"}}},
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": bounds}},
    )  # fmt: skip


def test_helm_test_runs_a_reference_to_its_score(helm: Helm, kubectl: Kubectl) -> None:
    said = helm("test", RELEASE, "-n", SYSTEM, "--timeout", "5m", seconds=320)
    assert said.count("Phase:          Succeeded") == 5
    assert kubectl.list("evalruns", SYSTEM) == []
    assert [pod["metadata"]["name"] for pod in kubectl.list("pods", SYSTEM, "app.kubernetes.io/component=test")] == []


def test_a_real_prometheus_has_data_for_every_panel_and_every_rule(
    kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    limited(kubectl, namespace)
    with ExitStack() as stack:
        ports = {part: stack.enter_context(forwarded(kubectl, f"casewarden-{part}")) for part in ("operator", "relay")}
        with socket.create_server(("127.0.0.1", 0)) as server:
            own = server.getsockname()[1]
        watching = stack.enter_context(scraping(tmp_path, ports, own))
        # Three pods at a time is what the quota leaves.
        applied(kubectl, namespace, "watched", 1, parallelism=4)
        kubectl.apply(
            workspace(namespace, "exits", {"main.py": EXITS_127}),
            evalrun(namespace, "exits", task={"name": "support-routing"}, seeds={"values": [17]}, parallelism=1,
                    candidate={"program": {"workspace": {"configMap": "exits"}}}),
        )  # fmt: skip
        kubectl.finished(namespace, "exits")
        status = kubectl.finished(namespace, "watched")
        assert status["score"] == "0.35"
        time.sleep(3)
        expected = [text for text in panel_expressions("2m") if not any(name in text for name in LATER)]
        assert watching.without_data(expected) == set()
        labels = {"namespace": namespace, "run": "watched", "task": "support-routing", "candidate": "watched"}
        (score,) = watching.query(f'casewarden_run_score{{namespace="{namespace}", run="watched"}}')
        assert labels.items() <= score["metric"].items()
        assert score["value"][1] == "0.35"
        (group,) = watching.ask("rules")["groups"]
        assert {(rule["name"], rule["health"]) for rule in group["rules"]} == {(a["alert"], "ok") for a in alerts()}
        assert not {"CasewardenNoLeader", "CasewardenRelayDown", "CasewardenWatchStale"} & watching.firing()
        kubectl("-n", namespace, "delete", "evalrun", "watched")
        kubectl.until(
            lambda: not watching.query(f'casewarden_run_score{{namespace="{namespace}", run="watched"}}'),
            60,
            lambda: "the score of a run that is gone is still shown",
        )


def test_an_invalid_run_and_a_store_that_is_away_bring_their_alerts_about(
    kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    with forwarded(kubectl, "casewarden-operator") as port, socket.create_server(("127.0.0.1", 0)) as server:
        own = server.getsockname()[1]
        server.close()
        with scraping(tmp_path, {"operator": port}, own) as watching:
            # Only the operator is scraped here: the relay is not there, as far as this Prometheus can tell.
            program = {"image": "127.0.0.1:1/none:1", "workspace": {"configMap": "no-image"}}
            limits = {"pendingSeconds": 5}
            applied(kubectl, namespace, "no-image", 0, limits=limits, parallelism=1, candidate={"program": program})
            assert reason(kubectl.finished(namespace, "no-image"), "Failed") == "ImagePull"
            kubectl.until(
                lambda: {"CasewardenRelayDown", "CasewardenRunFailed"} <= watching.firing(),
                60,
                lambda: f"firing: {watching.firing()}",
            )


def test_an_upgrade_in_the_middle_of_a_run_loses_nothing(helm: Helm, kubectl: Kubectl, namespace: str) -> None:
    applied(kubectl, namespace, "upgraded", 6, parallelism=2)
    kubectl.until(
        lambda: kubectl.status(namespace, "upgraded").get("cases", {}).get("running", 0) >= 1,
        90,
        lambda: kubectl.picture(namespace),
    )
    before = kubectl.get("deployment", SYSTEM, "casewarden-operator")["metadata"]["generation"]
    level = f"operator.podAnnotations.upgraded=at-{int(time.time())}"
    helm("upgrade", RELEASE, CHART, "-n", SYSTEM, "--reuse-values", "--set", level, "--wait", "--timeout", "3m")
    assert kubectl.get("deployment", SYSTEM, "casewarden-operator")["metadata"]["generation"] > before
    status = kubectl.finished(namespace, "upgraded")
    assert status["assessed"] == f"{SUPPORT_CASES}/{SUPPORT_CASES}"
    assert status["attempts"]["total"] == SUPPORT_CASES
    assert status["score"] == "0.35"


def test_the_crds_come_back_as_they_should_be_with_an_upgrade(helm: Helm, kubectl: Kubectl) -> None:
    name = "evalruns.casewarden.dev"
    patch = {"metadata": {"annotations": {"helm.sh/resource-policy": "keep", "drifted": "yes"}}}
    kubectl("patch", "crd", name, "--type=merge", "-p", json.dumps(patch))
    drop = [{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/progress"}]
    kubectl("patch", "crd", name, "--type=json", "-p", json.dumps(drop))
    helm("upgrade", RELEASE, CHART, "-n", SYSTEM, "--reuse-values", "--wait", "--timeout", "3m")
    crd = json.loads(kubectl("get", "crd", name, "-o", "json"))
    assert "progress" in crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"


def test_what_the_operator_may_do_is_little(kubectl: Kubectl) -> None:
    def may(verb: str, what: str, account: str, namespace: str = "default") -> bool:
        who = f"--as=system:serviceaccount:{SYSTEM}:casewarden-{account}"
        resource, _, subresource = what.partition("/")
        words = [verb, resource, *([f"--subresource={subresource}"] if subresource else []), "-n", namespace, who]
        return kubectl("auth", "can-i", *words, check=False).strip().startswith("yes")

    for account in ("operator", "relay"):
        for what in ("secrets", "nodes", "roles.rbac.authorization.k8s.io", "deployments.apps"):
            assert not any(may(verb, what, account) for verb in ("get", "list", "create", "delete")), (account, what)
        assert not may("create", "pods/exec", account)
        assert not may("impersonate", "users", account)
    assert may("create", "pods", "operator")
    assert may("get", "pods/log", "operator")
    assert may("get", "pods", "relay")
    assert not may("create", "pods", "relay")
    assert not may("list", "pods", "relay")


def test_it_serves_one_namespace_of_a_user_without_cluster_rights_and_leaves_little(
    helm: Helm, kubectl: Kubectl, namespace: str
) -> None:
    """The release is taken away and put back as it was: the other tests share it."""
    values = helm("get", "values", RELEASE, "-n", SYSTEM, "-o", "json")
    applied(kubectl, namespace, "before", 0)
    kubectl.finished(namespace, "before")
    helm("uninstall", RELEASE, "-n", SYSTEM, "--wait")
    try:
        kinds = "all,configmaps,roles,rolebindings,networkpolicies,serviceaccounts"
        ours = ["-l", "app.kubernetes.io/name=casewarden", "-o", "name"]
        kubectl.until(
            lambda: not kubectl("get", kinds, "-n", SYSTEM, *ours, "--ignore-not-found").split(),
            90,
            lambda: kubectl("get", kinds, "-n", SYSTEM, *ours),
        )
        assert kubectl("get", "clusterroles,clusterrolebindings", *ours).split() == []
        crds = kubectl("get", "crd", "-o", "name").split()
        assert {f"customresourcedefinition.apiextensions.k8s.io/{name}" for name in KEPT} <= set(crds)
        assert kubectl.status(namespace, "before")["score"] == "0.35"
        _one_namespace(helm, kubectl, namespace, values)
        helm("uninstall", RELEASE, "-n", SYSTEM, "--wait")
    finally:
        environment = {**os.environ, "KUBECONFIG": kubectl.kubeconfig}
        subprocess.run([str(ROOT / "dev" / "install")], env=environment, timeout=300, check=True, capture_output=True)


def _one_namespace(helm: Helm, kubectl: Kubectl, namespace: str, values: str) -> None:
    limited(kubectl, namespace)
    narrow = ["--set", f"watchNamespaces={{{namespace}}}", "--wait", "--timeout", "3m"]
    file = Path(os.environ.get("TMPDIR", "/tmp")) / f"values-{namespace}.json"
    file.write_text(values)
    helm("install", RELEASE, CHART, "-n", SYSTEM, "--values", str(file), *narrow)
    file.unlink()
    kubectl("create", "serviceaccount", "user", "-n", namespace)
    who = f"--serviceaccount={namespace}:user"
    kubectl("create", "rolebinding", "user", "-n", namespace, "--clusterrole=edit", who)
    user = [f"--as=system:serviceaccount:{namespace}:user", "-n", namespace]
    run = evalrun(namespace, "narrow", task={"name": "support-routing"}, seeds={"values": [17]},
                  candidate={"control": "reference"})  # fmt: skip
    kubectl.until(
        lambda: kubectl("auth", "can-i", "create", "evalruns", *user, check=False).startswith("yes"),
        30,
        lambda: "the role edit has no rights on runs",
    )
    kubectl("create", "-f", "-", *user, stdin=json.dumps(run))
    status = kubectl.finished(namespace, "narrow")
    assert status["score"] == "1", (condition(status, "Failed"), message(status, "Failed"))
    assert kubectl("auth", "can-i", "list", "evalruns", "-A", user[0], check=False).startswith("no")
    operator = f"--as=system:serviceaccount:{SYSTEM}:casewarden-operator"
    assert kubectl("auth", "can-i", "create", "pods", "-n", "default", operator, check=False).startswith("no")
    assert kubectl("auth", "can-i", "create", "pods", "-n", namespace, operator, check=False).startswith("yes")
