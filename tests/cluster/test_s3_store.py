"""The relay before a real S3 server: a run's evidence is in the bucket, sealed once, and verifies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.kubectl import Kubectl, evalrun
from support.offers import SYSTEM
from support.s3_server import ACCESS, SECRET

from devkit import programs

ROOT = Path(__file__).resolve().parents[2]
BUCKET, CASES = "evidence", 4
_PORT = 7070


@pytest.fixture(scope="module")
def bucket(kubectl: Kubectl, trial_image: str) -> Iterator[Callable[[], list[str]]]:
    """The release with its evidence in a bucket of versitygw; what is yielded lists the objects."""
    folders = f"mkdir -p /data/buckets/{BUCKET} /data/meta"
    serve = f"{folders} && exec versitygw --port :{_PORT} posix --sidecar /data/meta /data/buckets"
    keys = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET}
    secured = {
        "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": True, "runAsUser": 65530,
        "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    meta = {"name": "s3", "namespace": SYSTEM}
    kubectl.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": keys},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "labels": {"app": "s3"}}, "spec": {
            "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "s3", "image": trial_image, "command": ["sh", "-c", serve],
                "env": [{"name": "ROOT_ACCESS_KEY", "value": ACCESS}, {"name": "ROOT_SECRET_KEY", "value": SECRET}],
                # It answers nobody without keys, a probe over HTTP neither.
                "readinessProbe": {"tcpSocket": {"port": _PORT}, "periodSeconds": 1},
                "securityContext": secured, "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            }],
            "volumes": [{"name": "data", "emptyDir": {"sizeLimit": "256Mi"}}],
        }},
        {"apiVersion": "v1", "kind": "Service", "metadata": meta,
         "spec": {"selector": {"app": "s3"}, "ports": [{"port": _PORT}]}},
    )  # fmt: skip
    try:
        wait = ["wait", "-n", SYSTEM, "--for=condition=Ready", "pod/s3", "--timeout=60s"]
        ready = kubectl(*wait, seconds=70, check=False)
        assert "condition met" in ready, kubectl("logs", "-n", SYSTEM, "s3", check=False) + kubectl.picture(SYSTEM)
        _store_in(kubectl, "s3", f"bucket={BUCKET}", f"endpoint=http://s3.{SYSTEM}.svc:{_PORT}", "secret=s3")
        yield lambda: kubectl("exec", "-n", SYSTEM, "s3", "--", "find", f"/data/buckets/{BUCKET}", "-type", "f").split()
    finally:
        _store_in(kubectl, "emptyDir")
        kubectl("delete", "pod,service,secret", "s3", "-n", SYSTEM, "--ignore-not-found", "--wait=false")


def _store_in(kubectl: Kubectl, kind: str, *settings: str) -> None:
    """Let the relay keep evidence elsewhere, as an administrator does it."""
    helm = shutil.which("helm") or str(programs.ensure(programs.CLUSTER) / "helm")
    values = ",".join([f"relay.storage.type={kind}", *(f"relay.storage.s3.{item}" for item in settings)])
    words = ["upgrade", "casewarden", str(ROOT / "charts" / "casewarden"), "-n", SYSTEM, "--reuse-values", "--wait"]
    done = subprocess.run(
        [helm, "--kubeconfig", kubectl.kubeconfig, *words, "--timeout", "2m", "--set", values],
        capture_output=True, text=True, timeout=150, check=False, env={**os.environ},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr + kubectl.picture(SYSTEM)


def test_a_runs_evidence_is_in_the_bucket_sealed_once_and_verifies(
    kubectl: Kubectl,
    namespace: str,
    bucket: Callable[[], list[str]],
    casewarden: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    run = evalrun(namespace, "in-s3", task={"name": "support-routing"}, seeds={"values": [17]},
                  candidate={"control": "reference"})  # fmt: skip
    kubectl.apply(run)
    # A relay that goes in the middle loses nothing: the bucket has what was sealed.
    kubectl.until(lambda: kubectl.status(namespace, "in-s3").get("cases", {}).get("running"), 90,
                  lambda: kubectl.picture(namespace))  # fmt: skip
    kubectl("delete", "pod", "-n", SYSTEM, "-l", "app.kubernetes.io/component=relay", "--wait=false")
    status = kubectl.finished(namespace, "in-s3")
    assert (status.get("score"), status["attempts"]["total"]) == ("1", CASES), status
    uid = kubectl.get("evalrun", namespace, "in-s3")["metadata"]["uid"]
    names = [path.partition(f"/{uid}/")[2] for path in bucket() if uid in path]
    assert len([name for name in names if name.endswith("sealed.json")]) == CASES
    assert {"meta.json", "plan.json", "results.jsonl", "run.json"} <= set(names)
    verified = casewarden("verify", "in-s3", "-n", namespace, "-o", "json")
    told = json.loads(verified.stdout)
    assert (told["consistent"], told["authenticated"], told["bundles"]) == (True, True, CASES), told
