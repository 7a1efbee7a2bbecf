"""The chart on a cluster: tested by its hook, watched, upgraded during a run, narrowed to a namespace, gone."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.candidates import EXITS_127, FINISHES_AFTER
from support.helm import Helm
from support.kubectl import Kubectl, evalrun, message, reason, workspace
from support.prometheus import alerts, told_by, watching

pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).resolve().parents[2]
CHART = str(ROOT / "charts" / "casewarden")
RELEASE, SYSTEM = "casewarden", "casewarden-system"
SUPPORT_CASES = 4
KEPT = ("evalruns.casewarden.dev", "auditruns.casewarden.dev")


@pytest.fixture(scope="module")
def helm(kubeconfig: str) -> Helm:
    return Helm(kubeconfig)


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
    with watching(kubectl, tmp_path) as prometheus:
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
        assert prometheus.without_data(told_by(None)) == set()
        labels = {"namespace": namespace, "run": "watched", "task": "support-routing", "candidate": "watched"}
        (score,) = prometheus.query(f'casewarden_run_score{{namespace="{namespace}", run="watched"}}')
        assert labels.items() <= score["metric"].items()
        assert score["value"][1] == "0.35"
        (group,) = prometheus.ask("rules")["groups"]
        assert {(rule["name"], rule["health"]) for rule in group["rules"]} == {(a["alert"], "ok") for a in alerts()}
        assert not {"CasewardenNoLeader", "CasewardenRelayDown", "CasewardenWatchStale"} & prometheus.firing()
        kubectl("-n", namespace, "delete", "evalrun", "watched")
        kubectl.until(
            lambda: not prometheus.query(f'casewarden_run_score{{namespace="{namespace}", run="watched"}}'),
            60,
            lambda: "the score of a run that is gone is still shown",
        )


def test_an_invalid_run_and_a_store_that_is_away_bring_their_alerts_about(
    kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    # Only the operator is scraped here: the relay is not there, as far as this Prometheus can tell.
    with watching(kubectl, tmp_path, "operator") as prometheus:
        program = {"image": "127.0.0.1:1/none:1", "workspace": {"configMap": "no-image"}}
        applied(kubectl, namespace, "no-image", 0, limits={"pendingSeconds": 5}, parallelism=1,
                candidate={"program": program})  # fmt: skip
        assert reason(kubectl.finished(namespace, "no-image"), "Failed") == "ImagePull"
        kubectl.until(
            lambda: {"CasewardenRelayDown", "CasewardenRunFailed"} <= prometheus.firing(),
            60,
            lambda: f"firing: {prometheus.firing()}",
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


def test_an_operator_waits_for_crds_that_are_older_and_an_upgrade_brings_them_back(
    helm: Helm, kubectl: Kubectl
) -> None:
    name = "evalruns.casewarden.dev"
    patch = {"metadata": {"annotations": {"helm.sh/resource-policy": "keep", "drifted": "yes"}}}
    kubectl("patch", "crd", name, "--type=merge", "-p", json.dumps(patch))
    drop = [{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/progress"}]
    kubectl("patch", "crd", name, "--type=json", "-p", json.dumps(drop))
    kubectl("rollout", "restart", "-n", SYSTEM, "deployment/casewarden-operator")
    waiting(kubectl, f"the CRD {name} is older than this operator and does not know status.progress")
    helm("upgrade", RELEASE, CHART, "-n", SYSTEM, "--reuse-values", "--wait", "--timeout", "3m")
    crd = json.loads(kubectl("get", "crd", name, "-o", "json"))
    assert "progress" in crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert crd["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert restarts(kubectl) == [0]


def waiting(kubectl: Kubectl, said: str) -> None:
    """Wait until the operator says why it does not begin; it is not ready, and nobody starts it again for that."""
    kubectl.until(
        lambda: said in kubectl("logs", "-n", SYSTEM, "deployment/casewarden-operator", check=False),
        90,
        lambda: kubectl("logs", "-n", SYSTEM, "deployment/casewarden-operator", check=False)[-3000:],
    )
    pods = kubectl.list("pods", SYSTEM, "app.kubernetes.io/component=operator")
    ready = [state["ready"] for pod in pods for state in pod["status"].get("containerStatuses", ())]
    assert not any(ready)
    assert set(restarts(kubectl)) <= {0}


def restarts(kubectl: Kubectl) -> list[int]:
    """How often the operator's containers were started again."""
    pods = kubectl.list("pods", SYSTEM, "app.kubernetes.io/component=operator")
    return [state["restartCount"] for pod in pods for state in pod["status"].get("containerStatuses", ())]


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


def test_helm_4_serves_one_namespace_of_a_user_without_cluster_rights_and_leaves_little(
    helm: Helm, kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    """The release is taken away and put back as it was: the other tests share it."""
    values = helm("get", "values", RELEASE, "-n", SYSTEM, "-o", "json")
    applied(kubectl, namespace, "before", 0)
    kubectl.finished(namespace, "before")
    helm("uninstall", RELEASE, "-n", SYSTEM, "--wait")
    helm4 = Helm(helm.kubeconfig, 4)
    file = tmp_path / "values.json"
    file.write_text(values)
    try:
        _little_is_left(kubectl)
        assert kubectl.status(namespace, "before")["score"] == "0.35"
        kubectl("delete", "crd", *KEPT, seconds=120)
        # What a shared cluster asks of everybody, the release's own namespace included.
        kubectl("label", "namespace", SYSTEM, "pod-security.kubernetes.io/enforce=restricted")
        limited(kubectl, SYSTEM)
        limited(kubectl, namespace)
        _crds_come_by_hand(helm4, kubectl, namespace, file)
        _a_user_and_an_upgrade(helm4, kubectl, namespace)
        _readers(kubectl, namespace, tmp_path)
        assert helm4("test", RELEASE, "-n", SYSTEM, "--timeout", "5m", seconds=320).count("Succeeded") >= 5
        helm4("uninstall", RELEASE, "-n", SYSTEM, "--wait")
        _little_is_left(kubectl)
        assert kubectl.status(namespace, "narrow")["score"] == "0.35"
    finally:
        kubectl("label", "namespace", SYSTEM, "pod-security.kubernetes.io/enforce-")
        kubectl("delete", "-n", SYSTEM, "resourcequota/team", "limitrange/team", "--ignore-not-found")
        environment = {**os.environ, "KUBECONFIG": kubectl.kubeconfig}
        subprocess.run([str(ROOT / "dev" / "install")], env=environment, timeout=300, check=True, capture_output=True)


def _little_is_left(kubectl: Kubectl) -> None:
    kinds = "all,configmaps,secrets,roles,rolebindings,networkpolicies,serviceaccounts,poddisruptionbudgets,leases"
    ours = ["-l", "app.kubernetes.io/name=casewarden", "-o", "name"]
    kubectl.until(
        lambda: not kubectl("get", kinds, "-n", SYSTEM, *ours, "--ignore-not-found").split(),
        90,
        lambda: kubectl("get", kinds, "-n", SYSTEM, *ours),
    )
    assert kubectl("get", "clusterroles,clusterrolebindings", *ours).split() == []
    crds = kubectl("get", "crd", "-o", "name").split()
    assert {f"customresourcedefinition.apiextensions.k8s.io/{name}" for name in KEPT} <= set(crds)


def _crds_come_by_hand(helm4: Helm, kubectl: Kubectl, namespace: str, values: Path) -> None:
    narrow = ["--set", f"watchNamespaces={{{namespace}}}", "--set", "crds.install=false"]
    helm4("install", RELEASE, CHART, "-n", SYSTEM, "--values", str(values), *narrow)
    waiting(kubectl, "the API server has no CRD evalruns.casewarden.dev: apply crds/ of this version")
    kubectl("apply", "-f", str(ROOT / "crds"))
    kubectl("rollout", "status", "-n", SYSTEM, "deployment/casewarden-operator", "--timeout=90s", seconds=100)
    assert restarts(kubectl) == [0]


def _a_user_and_an_upgrade(helm4: Helm, kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "serviceaccount", "user", "-n", namespace)
    who = f"--serviceaccount={namespace}:user"
    kubectl("create", "rolebinding", "user", "-n", namespace, "--clusterrole=edit", who)
    user = [f"--as=system:serviceaccount:{namespace}:user", "-n", namespace]
    kubectl.until(
        lambda: kubectl("auth", "can-i", "create", "evalruns", *user, check=False).startswith("yes"),
        30,
        lambda: "the role edit has no rights on runs",
    )
    run = evalrun(namespace, "narrow", task={"name": "support-routing"}, seeds={"values": [17]}, parallelism=2,
                  candidate={"program": {"workspace": {"configMap": "narrow"}}})  # fmt: skip
    kubectl("create", "-f", "-", *user, stdin=json.dumps(
        workspace(namespace, "narrow", {"main.py": FINISHES_AFTER.format(seconds=5)})
    ))  # fmt: skip
    kubectl("create", "-f", "-", *user, stdin=json.dumps(run))
    kubectl.until(
        lambda: kubectl.status(namespace, "narrow").get("cases", {}).get("running", 0) >= 1,
        90,
        lambda: kubectl.picture(namespace),
    )
    # The CRDs that were applied by hand become the release's.
    words = ["--reuse-values", "--set", "crds.install=true", "--set", "operator.podAnnotations.upgraded=now"]
    helm4("upgrade", RELEASE, CHART, "-n", SYSTEM, *words, "--take-ownership", "--wait", "--timeout", "3m")
    status = kubectl.finished(namespace, "narrow")
    assert (status["score"], status["attempts"]["total"]) == ("0.35", SUPPORT_CASES), message(status, "Failed")
    assert kubectl("auth", "can-i", "list", "evalruns", "-A", user[0], check=False).startswith("no")
    operator = f"--as=system:serviceaccount:{SYSTEM}:casewarden-operator"
    assert kubectl("auth", "can-i", "create", "pods", "-n", "default", operator, check=False).startswith("no")
    assert kubectl("auth", "can-i", "create", "pods", "-n", namespace, operator, check=False).startswith("yes")


def _readers(kubectl: Kubectl, namespace: str, folder: Path) -> None:
    """Evidence is read by whom the release's roles let read it, and by nobody else."""
    kubectl("create", "serviceaccount", "reader", "-n", namespace)
    reader = f"--serviceaccount={namespace}:reader"
    for role in ("casewarden-viewer", "casewarden-evidence-reader"):
        kubectl("create", "rolebinding", role, "-n", namespace, f"--clusterrole={role}", reader)
    kubectl("create", "rolebinding", f"read-{namespace}", "-n", SYSTEM, "--role=casewarden-relay-access", reader)
    try:
        done = _verified(kubectl, namespace, "reader", folder)
        assert done.returncode == 0, done.stderr
        assert "authenticated" in done.stdout
        refused = _verified(kubectl, namespace, "user", folder)
        assert refused.returncode == 2
        assert "forbidden" in refused.stderr.lower()
    finally:
        kubectl("delete", "rolebinding", f"read-{namespace}", "-n", SYSTEM)


def _verified(kubectl: Kubectl, namespace: str, account: str, folder: Path) -> subprocess.CompletedProcess[str]:
    config = yaml.safe_load(Path(kubectl.kubeconfig).read_text())
    (user,) = config["users"]
    user["user"] = {"token": kubectl("create", "token", account, "-n", namespace).strip()}
    file = folder / account
    file.write_text(yaml.safe_dump(config))
    words = [str(ROOT / ".venv/bin/casewarden"), "verify", "narrow", "-n", namespace]
    return subprocess.run(words, env={**os.environ, "KUBECONFIG": str(file)}, capture_output=True, text=True,
                          timeout=120, check=False)  # fmt: skip
