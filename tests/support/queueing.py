"""A queue over plain pods that does what Kueue does to them.

At their creation they get a gate, a label and a finalizer; the gate is taken away when it is their turn, the finalizer
when the queue is done with them, however long that takes.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from support.authority import Authority
from support.kubectl import Kubectl

__all__ = ["FINALIZER", "GATE", "QUEUE", "queueing"]

QUEUE, MANAGED = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/managed"
GATE, FINALIZER = "kueue.x-k8s.io/admission", "kueue.x-k8s.io/managed"
NAME = "queue-of-a-test"


def _patched(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the JSON patch of a pod that names a queue."""
    labels = pod["metadata"].get("labels") or {}
    if QUEUE not in labels:
        return []
    return [
        {"op": "add", "path": "/metadata/labels/" + MANAGED.replace("/", "~1"), "value": "true"},
        {"op": "add", "path": "/metadata/finalizers", "value": [FINALIZER]},
        {"op": "add", "path": "/spec/schedulingGates", "value": [{"name": GATE}]},
    ]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        patch = base64.b64encode(json.dumps(_patched(review["request"]["object"])).encode()).decode()
        answer = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch", "patch": patch}
        data = json.dumps({**review, "request": None, "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def queueing(kubectl: Kubectl, namespace: str, here: str, folder: Path) -> Iterator[None]:
    """Hold back every pod of the namespace that names a queue; ``here`` is where the API server finds this machine."""
    authority = Authority(folder)
    certificate, key = authority.issue(here)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer((here, 0), _Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        bundle = base64.b64encode(authority.certificate.read_bytes()).decode()
        kubectl.apply({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": NAME},
            "webhooks": [{
                "name": "mpod.kb.io", "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 10,
                "clientConfig": {"url": f"https://{here}:{server.server_address[1]}/", "caBundle": bundle},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            }],
        })  # fmt: skip
        try:
            yield
        finally:
            kubectl("delete", "mutatingwebhookconfiguration", NAME)
            server.shutdown()
            thread.join(10)
