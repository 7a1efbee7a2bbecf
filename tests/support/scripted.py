"""The scripted model on a cluster, where the endpoints of a checkout's release look for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.kubectl import Kubectl, KubectlError

__all__ = ["MODELS", "scripted_models"]

MODELS = "casewarden-models"
_FAKE = Path(__file__).with_name("fake_models.py")


@contextmanager
def scripted_models(kubectl: Kubectl, python_image: str) -> Iterator[Callable[[], dict[str, Any]]]:
    """Run it, freshly started, and yield what tells its own count of calls."""
    secured = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "runAsUser": 65530,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    kubectl("delete", "pod", "models", "-n", MODELS, "--ignore-not-found", "--grace-period=0", "--force", check=False)
    kubectl("wait", "--for=delete", f"namespace/{MODELS}", "--timeout=60s", seconds=70, check=False)
    kubectl.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MODELS}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "models", "namespace": MODELS},
         "data": {"main.py": _FAKE.read_text()}},
        {"apiVersion": "v1", "kind": "Pod",
         "metadata": {"name": "models", "namespace": MODELS, "labels": {"app": "models"}},
         "spec": {
             "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0,
             "containers": [{
                 "name": "models", "image": python_image, "command": ["python3", "/app/main.py", "8000"],
                 "readinessProbe": {"httpGet": {"path": "/", "port": 8000}, "periodSeconds": 1},
                 "securityContext": secured, "volumeMounts": [{"name": "app", "mountPath": "/app"}],
             }],
             "volumes": [{"name": "app", "configMap": {"name": "models"}}],
         }},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "models", "namespace": MODELS},
         "spec": {"selector": {"app": "models"}, "ports": [{"port": 8000}]}},
    )  # fmt: skip
    kubectl("wait", "-n", MODELS, "--for=condition=Ready", "pod/models", "--timeout=90s", seconds=100)

    def stats() -> dict[str, Any]:
        found = kubectl("get", "--raw", f"/api/v1/namespaces/{MODELS}/services/models:8000/proxy/stats")
        return json.loads(found)  # type: ignore[no-any-return]

    # A pod that is ready is not at once an endpoint of its service.
    kubectl.until(lambda: _answers(stats), 30, lambda: kubectl.picture(MODELS))
    yield stats
    kubectl("delete", "namespace", MODELS, "--wait=false")


def _answers(stats: Callable[[], dict[str, Any]]) -> bool:
    try:
        return "calls" in stats()
    except KubectlError:
        return False
