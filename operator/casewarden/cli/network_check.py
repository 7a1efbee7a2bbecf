"""Whether network policies hold on a cluster: a pod reaches the API server, until a policy says that it may not."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from casewarden.cli.cluster import Cluster
from casewarden.ports.kube import NETWORK_POLICIES, PODS, Manifest, NotFound

__all__ = ["check_network"]

_START_SECONDS: Final = 60.0
_CUT_SECONDS: Final = 20.0
_LIFE_SECONDS: Final = 120
_POLL_SECONDS: Final = 0.3
# Connects over and over, and says in a line each time whether it could.
_PROGRAM: Final = """
import os, socket, time
where = (os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"]))
while True:
    try:
        socket.create_connection(where, 1).close()
        print("open", flush=True)
    except OSError as error:
        print("closed", error, flush=True)
    time.sleep(0.2)
"""


async def check_network(cluster: Cluster, name: str, label: str, image: str) -> dict[str, Any]:
    """Return ``enforced`` (None where it cannot be told), ``seconds`` until the pod was cut off, and a ``message``."""
    labels = {label: f"{name}-network"}
    await cluster.api.create(PODS, cluster.namespace, _pod(name, labels, image))
    try:
        if not await _says(cluster, name, "open", _START_SECONDS):
            message = (
                f"not known: a pod could not reach the API server within {_START_SECONDS:g} s even without a policy"
            )
            return {"enforced": None, "seconds": None, "message": message}
        began = time.monotonic()
        await cluster.api.create(NETWORK_POLICIES, cluster.namespace, _policy(name, labels))
        if await _says(cluster, name, "closed", _CUT_SECONDS):
            took = round(time.monotonic() - began, 1)
            message = f"enforced: a pod that reached the API server was cut off {took:g} s after its policy"
            return {"enforced": True, "seconds": took, "message": message}
        message = f"NOT ENFORCED: a pod still reached the API server {_CUT_SECONDS:g} s after its policy forbade it"
        return {"enforced": False, "seconds": None, "message": message}
    finally:
        for kind in (PODS, NETWORK_POLICIES):
            try:
                await cluster.api.delete(kind, cluster.namespace, name, grace_seconds=0)
            except NotFound:
                continue


async def _says(cluster: Cluster, name: str, word: str, seconds: float) -> bool:
    """Wait until the newest lines of the pod say a word."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.sleep(_POLL_SECONDS)
        pod = await cluster.api.get(PODS, cluster.namespace, name)
        if (pod.get("status") or {}).get("phase") != "Running":
            continue
        lines = (await cluster.api.pod_log(cluster.namespace, name, "probe", 1 << 20)).decode("utf-8", "replace")
        # A slow start of the pod's own network says closed too: only what was said last counts.
        newest = lines.split("\n")[-4:]
        if any(newest) and all(line.startswith(word) for line in newest if line):
            return True
    return False


def _pod(name: str, labels: dict[str, str], image: str) -> Manifest:
    security = {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    resources = {"cpu": "50m", "memory": "64Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": _LIFE_SECONDS,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "probe",
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["python3", "-I", "-c", _PROGRAM],
                    "securityContext": security,
                    "resources": {"requests": resources, "limits": resources},
                }
            ],
        },
    }


def _policy(name: str, labels: dict[str, str]) -> Manifest:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "labels": labels},
        "spec": {"podSelector": {"matchLabels": labels}, "policyTypes": ["Egress"], "egress": []},
    }
