"""The chart and the operator's start against a real API server; it has no nodes, so nothing runs there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.api_server import api_server, kubeconfig_of
from support.chart_values import combinations
from support.helm import Helm
from support.kubectl import Kubectl
from support.pages import COMMANDS, INLINE, ON_A_CLUSTER
from support.ports import free_port

from devkit import programs

# The programs of the development cluster and Helm 4 may have to be built first.
pytestmark = pytest.mark.timeout(4800)

ROOT = Path(__file__).resolve().parents[3]
CHART = str(ROOT / "charts" / "casewarden")
RELEASE, SYSTEM = "casewarden", "casewarden-system"
OURS = ("evalruns.casewarden.dev", "auditruns.casewarden.dev")
Document = dict[str, Any]
Server = tuple[Kubectl, int]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with api_server(tmp_path_factory.mktemp("api-server")) as found:
        found[0].apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
        yield found


@pytest.fixture
def kubectl(server: Server) -> Kubectl:
    return server[0]


@pytest.fixture(params=[3, 4], ids=["Helm 3", "Helm 4"])
def helm(kubectl: Kubectl, request: pytest.FixtureRequest) -> Helm:
    return Helm(kubectl.kubeconfig, request.param)


@pytest.fixture
def release(helm: Helm, kubectl: Kubectl) -> Iterator[None]:
    """The release, with nothing left of it afterwards but its CRDs and its claim."""
    helm("install", RELEASE, CHART, "-n", SYSTEM)
    yield
    helm("uninstall", RELEASE, "-n", SYSTEM)
    little_is_left(kubectl)


def little_is_left(kubectl: Kubectl) -> None:
    ours = ["-l", "app.kubernetes.io/name=casewarden", "-o", "name"]
    kinds = "all,configmaps,secrets,roles,rolebindings,networkpolicies,serviceaccounts,poddisruptionbudgets"
    assert kubectl("get", kinds, "-n", SYSTEM, *ours).split() == []
    assert kubectl("get", "clusterroles,clusterrolebindings", *ours).split() == []
    crds = kubectl("get", "crd", "-o", "name").split()
    assert {f"customresourcedefinition.apiextensions.k8s.io/{name}" for name in OURS} <= set(crds)
    assert kubectl.find("persistentvolumeclaim", SYSTEM, "casewarden-evidence") is not None


@contextmanager
def monitoring_crds(kubectl: Kubectl) -> Iterator[None]:
    """The Prometheus operator's own CRDs."""
    go, _ = programs.go()
    words = [go, "mod", "download", "-json", "github.com/prometheus-operator/prometheus-operator"]
    done = subprocess.run(words, cwd=programs.SOURCE / "crds", capture_output=True, text=True, timeout=600, check=True)
    folder = Path(json.loads(done.stdout)["Dir"]) / "example" / "prometheus-operator-crd"
    kinds = ("servicemonitors", "prometheusrules")
    files = [word for kind in kinds for word in ("-f", str(folder / f"monitoring.coreos.com_{kind}.yaml"))]
    kubectl("apply", "--server-side", *files)
    names = [f"{kind}.monitoring.coreos.com" for kind in kinds]
    kubectl("wait", "--for=condition=Established", "crd", *names, "--timeout=30s")
    yield
    kubectl("delete", "crd", *names)


def rendered(kubectl: Kubectl, namespace: str, values: Document) -> list[Document]:
    words = [word for name, value in values.items() for word in ("--set-json", f"{name}={json.dumps(value)}")]
    helm = Helm(kubectl.kubeconfig)
    text = helm("template", RELEASE, CHART, "--namespace", namespace, "--kube-version", "1.34.0", *words)
    return [document for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document]


def test_the_server_takes_every_way_that_the_documentation_names(kubectl: Kubectl) -> None:
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    kind = {"apiVersion": "v1", "kind": "Namespace"}
    kubectl.apply(*({**kind, "metadata": {"name": name}} for name in ("evals", "research")),
                  {**kind, "metadata": {"name": "strict", "labels": levels}})  # fmt: skip
    # Nothing is made, so the account of the hook's pod has to be there.
    kubectl("create", "serviceaccount", "casewarden-test", "-n", "strict")
    found = [document for _, values in combinations() for document in rendered(kubectl, "strict", values)]
    unique = {json.dumps(document, sort_keys=True): document for document in found}
    assert len(list(combinations())) > 30
    words = ["kubectl", "--kubeconfig", kubectl.kubeconfig, "apply", "--server-side", "--dry-run=server", "-f", "-"]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(unique.values())})
    with monitoring_crds(kubectl):
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    # Pod Security warns of a Deployment, and refuses a pod.
    assert done.stderr == ""
    assert done.stdout.count("serverside-applied") == len(unique)


EVERYBODY = {(f"selfsubject{what}", "create") for what in ("reviews", "accessreviews", "rulesreviews")}


def test_all_that_operator_and_relay_may_do_is_this(kubectl: Kubectl, release: None) -> None:
    def may(account: str, namespace: str) -> set[tuple[str, str]]:
        kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
        said = kubectl("create", "--raw", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "-f", "-",
                       f"--as=system:serviceaccount:{SYSTEM}:casewarden-{account}",
                       "--as-group=system:serviceaccounts", "--as-group=system:authenticated",
                       stdin=json.dumps({**kind, "spec": {"namespace": namespace}}))  # fmt: skip
        rules = json.loads(said)["status"]["resourceRules"]
        return {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}

    def of(resources: str, verbs: str) -> set[tuple[str, str]]:
        return {(resource, verb) for resource in resources.split() for verb in verbs.split()}

    operator = (
        of("evalruns", "get list watch create patch delete")
        | of("auditruns", "get list watch delete")
        | of("evalruns/status auditruns/status", "patch")
        | of("pods", "get list watch create delete")
        | of("pods/log", "get")
        | of("configmaps", "get list create patch")
        | of("serviceaccounts networkpolicies", "get create patch")
        | of("events", "create")
        | EVERYBODY
    )
    assert may("operator", "default") == operator
    assert may("operator", SYSTEM) - operator <= of("leases", "create get update")
    for namespace in ("default", SYSTEM):
        assert may("relay", namespace) == of("tokenreviews", "create") | of("pods", "get") | EVERYBODY


def test_values_that_cannot_be_are_refused_before_anything_changes(helm: Helm, kubectl: Kubectl, release: None) -> None:
    before = kubectl.get("deployment", SYSTEM, "casewarden-operator")["metadata"]["generation"]
    wrong = {"operator.replicas=9": "/operator/replicas", "relay.storage.type=nfs": "/relay/storage/type",
             "operater.replicas=1": "operater"}  # fmt: skip
    for value, said in wrong.items():
        done = helm.attempt("upgrade", RELEASE, CHART, "-n", SYSTEM, "--reuse-values", "--set", value)
        assert done.returncode != 0
        assert said in done.stderr.replace(".", "/"), done.stderr
    assert kubectl.get("deployment", SYSTEM, "casewarden-operator")["metadata"]["generation"] == before


class Operator:
    """The operator as a process of this machine, with the rights of its account and no more."""

    def __init__(self, server: Server, folder: Path) -> None:
        kubectl, port = server
        token = kubectl("create", "token", "casewarden-operator", "-n", SYSTEM).strip()
        text = kubectl.get("configmap", SYSTEM, "casewarden-catalogue")["data"]["catalogue.yaml"]
        (folder / "catalogue.yaml").write_text(text)
        (folder / "token").write_text("none")
        self._port, self._log = free_port(), folder / "operator.log"
        words = ["--kubeconfig", kubeconfig_of(folder / "operator", port, token), "--host", "127.0.0.1", "--port",
                 str(self._port), "--catalogue", str(folder / "catalogue.yaml"), "--relay-token-file",
                 str(folder / "token")]  # fmt: skip
        with self._log.open("w") as log:
            self.process = subprocess.Popen([sys.executable, "-m", "casewarden", "operator", *words], stderr=log)

    def says(self, code: int, text: str) -> None:
        """Wait until it answers so at /readyz."""
        until, said = time.monotonic() + 120, ""
        while time.monotonic() < until:
            assert self.process.poll() is None, self.log
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/readyz", timeout=5) as answer:
                    status, said = answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                status, said = error.code, error.read().decode()
            except OSError:
                status = 0
            if status == code and text in said:
                return
            time.sleep(0.1)
        raise AssertionError(f"{said}\n{self.log}")

    @property
    def log(self) -> str:
        """What it has logged."""
        return self._log.read_text()


@contextmanager
def operator(server: Server, folder: Path) -> Iterator[Operator]:
    made = Operator(server, folder)
    try:
        yield made
        made.process.send_signal(signal.SIGTERM)
        assert made.process.wait(60) == 0
    finally:
        made.process.kill()
        made.process.wait(10)


def test_an_operator_waits_for_crds_that_are_older_until_an_upgrade_brings_them(
    helm: Helm, server: Server, release: None, tmp_path: Path
) -> None:
    name, where = OURS[0], "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/progress"
    server[0]("patch", "crd", name, "--type=json", "-p", json.dumps([{"op": "remove", "path": where}]))
    with operator(server, tmp_path) as waiting:
        waiting.says(503, f"the CRD {name} is older than this operator and does not know status.progress")
        words = ["--force-conflicts"] if helm.major == 4 else []
        helm("upgrade", RELEASE, CHART, "-n", SYSTEM, "--reuse-values", *words)
        waiting.says(200, "ok")
    assert "waiting: the CRD" in waiting.log


def test_crds_that_are_missing_are_said_and_those_applied_by_hand_become_the_releases(
    helm: Helm, server: Server, tmp_path: Path
) -> None:
    kubectl = server[0]
    kubectl("delete", "crd", *OURS, "--ignore-not-found")
    helm("install", RELEASE, CHART, "-n", SYSTEM, "--set", "crds.install=false")
    try:
        with operator(server, tmp_path) as waiting:
            waiting.says(503, "the API server has no CRD evalruns.casewarden.dev: apply crds/ of this version")
            kubectl("apply", "-f", str(ROOT / "crds"))
            waiting.says(200, "ok")
        words = ["--reuse-values", "--set", "crds.install=true", "--take-ownership"]
        helm("upgrade", RELEASE, CHART, "-n", SYSTEM, *words)
        annotations = json.loads(kubectl("get", "crd", OURS[0], "-o", "json"))["metadata"]["annotations"]
        assert annotations["meta.helm.sh/release-name"] == RELEASE
        assert annotations["helm.sh/resource-policy"] == "keep"
    finally:
        helm("uninstall", RELEASE, "-n", SYSTEM)
    little_is_left(kubectl)


def test_what_the_pages_have_for_kubectl_is_what_the_server_understands(kubectl: Kubectl, release: None) -> None:
    """But for logs, which only a node has; a run is not played here, so it is there and never over."""
    run = {"apiVersion": "casewarden.dev/v1alpha1", "kind": "EvalRun",
           "metadata": {"name": "over", "namespace": "default"},
           "spec": {"task": {"name": "support-routing"}, "candidate": {"control": "reference"},
                    "seeds": {"values": [17]}}}  # fmt: skip
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": "default"},
             "spec": {"hard": {"pods": "20"}}}  # fmt: skip
    kubectl("apply", "-f", str(ROOT / "crds"))
    kubectl.apply(run, quota)
    uid = kubectl.get("evalrun", "default", "over")["metadata"]["uid"]
    alone = [line for line in COMMANDS if line in ON_A_CLUSTER and line.startswith("kubectl get")]
    lines = [line for line in INLINE if line.startswith("kubectl ") and " logs " not in line]
    assert len(lines) >= 10
    failed = {}
    for line in [*lines, *alone]:
        command = line
        for word, meaning in {"NAMESPACE": "default", "NAME": "over", "RUN": "over", "UID": uid}.items():
            command = re.sub(rf"\b{word}\b", meaning, command)
        done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "KUBECONFIG": kubectl.kubeconfig}, check=False)  # fmt: skip
        if done.returncode:
            failed[line] = done.stderr
    kubectl("delete", "evalrun/over", "resourcequota/team", "-n", "default")
    assert failed == {}
