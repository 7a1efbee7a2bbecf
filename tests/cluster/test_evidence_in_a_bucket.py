"""A release that keeps its evidence in a bucket: a run is played, its evidence is there, and it verifies."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.kubectl import Kubectl, evalrun

ROOT = Path(__file__).resolve().parents[2]
RELEASE = "casewarden-system"
PORT = 7070
KEYS = {"AWS_ACCESS_KEY_ID": "casewarden-test", "AWS_SECRET_ACCESS_KEY": "casewarden-test-secret"}
NOTHING_MAY = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}
# The S3 server may have to be built first.
pytestmark = pytest.mark.timeout(3000)


def _sh(*command: str, kubeconfig: str, seconds: float = 300) -> None:
    name = os.environ.get("CLUSTER_NAME", "test")
    environment = {**os.environ, "CLUSTER_NAME": name, "KUBECONFIG": kubeconfig}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]


@pytest.fixture(scope="module")
def endpoint(kubectl: Kubectl, kubeconfig: str, module_namespace: str) -> str:
    """An S3 server in the cluster with an empty bucket ``evidence``."""
    if "CASEWARDEN_TEST_KUBECONFIG" not in os.environ:
        _sh("dev/cluster", "load", "s3", kubeconfig=kubeconfig, seconds=2400)
    meta = {"name": "s3", "namespace": module_namespace, "labels": {"app": "s3"}}
    mount = {"name": "data", "mountPath": "/data"}
    pod = {
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "securityContext": {"fsGroup": 65532},
        "initContainers": [
            {
                "name": "bucket",
                "image": "casewarden-python:dev",
                "imagePullPolicy": "IfNotPresent",
                "command": ["mkdir", "/data/evidence"],
                "securityContext": NOTHING_MAY,
                "volumeMounts": [mount],
            }
        ],
        "containers": [
            {
                "name": "s3",
                "image": "casewarden-s3:dev",
                "imagePullPolicy": "IfNotPresent",
                # No volume of a development cluster is sure to have extended attributes.
                "args": ["--port", f":{PORT}", "--quiet", "posix", "--sidecar", "/meta", "/data"],
                "env": [
                    {"name": "ROOT_ACCESS_KEY", "value": KEYS["AWS_ACCESS_KEY_ID"]},
                    {"name": "ROOT_SECRET_KEY", "value": KEYS["AWS_SECRET_ACCESS_KEY"]},
                ],
                "ports": [{"containerPort": PORT}],
                "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
                "securityContext": NOTHING_MAY,
                "volumeMounts": [mount, {"name": "meta", "mountPath": "/meta"}],
            },
            # The server has no shell to look at its files with.
            {
                "name": "files",
                "image": "casewarden-python:dev",
                "imagePullPolicy": "IfNotPresent",
                "command": ["sleep", "infinity"],
                "securityContext": NOTHING_MAY,
                "volumeMounts": [mount],
            },
        ],
        "volumes": [{"name": "data", "emptyDir": {}}, {"name": "meta", "emptyDir": {}}],
    }
    kubectl.apply(
        {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {"selector": {"app": "s3"}, "ports": [{"port": PORT}]},
        },
    )
    kubectl("wait", "--for=condition=Ready", "pod/s3", "-n", module_namespace, "--timeout=60s", seconds=90)
    return f"http://s3.{module_namespace}.svc:{PORT}"


@pytest.fixture(scope="module")
def release_on_s3(kubectl: Kubectl, kubeconfig: str, endpoint: str) -> Iterator[None]:
    """The release with the bucket as its store; afterwards it is as it was."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s3-keys", "namespace": RELEASE}}
    kubectl.apply({**secret, "stringData": KEYS})
    s3 = {"bucket": "evidence", "prefix": "of-tests", "endpoint": endpoint, "region": "us-east-1", "secret": "s3-keys"}
    values = ["relay.storage.type=s3", *(f"relay.storage.s3.{name}={value}" for name, value in s3.items())]
    try:
        _sh("dev/install", "--", *(word for value in values for word in ("--set", value)), kubeconfig=kubeconfig)
        yield
    finally:
        _sh("dev/install", kubeconfig=kubeconfig)
        kubectl("delete", "secret", "s3-keys", "-n", RELEASE, "--ignore-not-found")


def test_a_run_is_sealed_in_the_bucket_and_verifies(
    kubectl: Kubectl,
    release_on_s3: None,
    module_namespace: str,
    casewarden: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    run = evalrun(
        module_namespace,
        "in-a-bucket",
        task={"name": "support-routing"},
        seeds={"values": [17]},
        candidate={"control": "null-agent"},
        parallelism=4,
    )
    kubectl.apply(run)
    status = kubectl.finished(module_namespace, "in-a-bucket")
    assert status["valid"] is True
    assert status["assessed"] == "4/4"
    uid = kubectl.get("evalrun", module_namespace, "in-a-bucket")["metadata"]["uid"]
    relay = kubectl.get("deployment", RELEASE, "casewarden-relay")["spec"]["template"]["spec"]
    assert "evidence" not in {volume["name"] for volume in relay["volumes"]}
    verified = casewarden("verify", "in-a-bucket", "-n", module_namespace)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    inside = ("exec", "s3", "-n", module_namespace, "-c", "files", "--")
    listed = kubectl(*inside, "find", f"/data/evidence/of-tests/runs/{uid}", "-name", "sealed.json")
    assert listed.count("sealed.json") == 4
