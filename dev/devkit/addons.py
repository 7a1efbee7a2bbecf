"""What a cluster has beside its own programs: DNS, and the proof that network policies are enforced."""

from __future__ import annotations

import time
from pathlib import Path

from devkit.api import Api, ApiError, Json
from devkit.errors import DevError
from devkit.settings import Cluster
from devkit.shell import wait_until

DNS_IMAGE = "docker.io/library/casewarden-coredns:dev"
PROBE_IMAGE = "docker.io/library/casewarden-python:dev"
PROBE_NAMESPACE = "casewarden-network-check"
RESTRICTED: Json = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
COREFILE = """.:53 {
  errors
  health
  ready
  kubernetes cluster.local in-addr.arpa ip6.arpa {
    pods insecure
    fallthrough in-addr.arpa ip6.arpa
  }
  cache 5
}
"""

PROBE = """
import socket, sys, time
target = (sys.argv[1], 53)

def connects():
    try:
        socket.create_connection(target, 0.25).close()
    except OSError:
        return False
    return True

def until(wanted, seconds, in_a_row):
    limit, seen = time.monotonic() + seconds, 0
    while seen < in_a_row:
        if time.monotonic() > limit:
            return False
        seen = seen + 1 if connects() == wanted else 0
        time.sleep(0.02)
    return True

if not until(True, 90, 1):
    sys.exit("never connected to %s:%d" % target)
print("connected", flush=True)
if not until(False, 15, 3):
    sys.exit("a policy that denies all egress does not keep this pod from %s:%d" % target)
print("blocked", flush=True)
"""


def dns(cluster: Cluster) -> list[tuple[str, Json]]:
    """CoreDNS: each object with the path that it is created under."""
    system = "/api/v1/namespaces/kube-system"
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    labels = {"k8s-app": "kube-dns"}
    name = {"name": "coredns", "namespace": "kube-system"}
    pod: Json = {
        "serviceAccountName": "coredns",
        "priorityClassName": "system-cluster-critical",
        "dnsPolicy": "Default",
        "containers": [
            {
                "name": "coredns",
                "image": DNS_IMAGE,
                "imagePullPolicy": "Never",
                "args": ["-conf", "/etc/coredns/Corefile"],
                "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
                "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
                "securityContext": RESTRICTED,
            }
        ],
        # Port 53 for a user that is not root.
        "securityContext": {"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "53"}]},
        "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
    }
    return [
        (f"{system}/serviceaccounts", {"metadata": name}),
        (
            f"{rbac}/clusterroles",
            {
                "metadata": {"name": "coredns"},
                "rules": [
                    {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": ["list", "watch"]},
                    {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
                ],
            },
        ),
        (
            f"{rbac}/clusterrolebindings",
            {
                "metadata": {"name": "coredns"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "coredns"},
                "subjects": [{"kind": "ServiceAccount", **name}],
            },
        ),
        (f"{system}/configmaps", {"metadata": name, "data": {"Corefile": COREFILE}}),
        (
            f"{system}/services",
            {
                "metadata": {"name": "kube-dns", "namespace": "kube-system", "labels": labels},
                "spec": {
                    "clusterIP": cluster.service_dns_address,
                    "selector": labels,
                    "ports": [
                        {"name": "dns", "port": 53, "protocol": "UDP"},
                        {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
                    ],
                },
            },
        ),
        (
            "/apis/apps/v1/namespaces/kube-system/deployments",
            {
                "metadata": {**name, "labels": labels},
                "spec": {
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": pod},
                },
            },
        ),
    ]


def dns_is_ready(api: Api) -> bool:
    try:
        status = api.get("/apis/apps/v1/namespaces/kube-system/deployments/coredns").get("status", {})
    except ApiError:
        return False
    return bool(status.get("availableReplicas"))


def probe_pod(cluster: Cluster) -> Json:
    """A pod that connects to the cluster's DNS, says so, and ends well only once it no longer can."""
    return {
        "metadata": {"name": "probe"},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "probe",
                    "image": PROBE_IMAGE,
                    "imagePullPolicy": "Never",
                    "command": ["python3", "-I", "-c", PROBE, cluster.service_dns_address],
                    "securityContext": RESTRICTED,
                }
            ],
        },
    }


DENY_ALL: Json = {"metadata": {"name": "deny-all"}, "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}}


class NetworkCheck:
    """Proves with one pod that a connection is possible, and that a NetworkPolicy ends that."""

    def __init__(self, cluster: Cluster, api: Api) -> None:
        self.cluster, self.api = cluster, api
        self.namespace = f"/api/v1/namespaces/{PROBE_NAMESPACE}"

    def start(self) -> None:
        """Put the pod in; it can start before anything that it connects to is there."""
        self.api.create("/api/v1/namespaces", {"metadata": {"name": PROBE_NAMESPACE}})
        # Pods are refused until the controllers have made the namespace's service account.
        wait_until(
            self._has_account,
            seconds=30,
            what=f"service account default of {PROBE_NAMESPACE}",
            log=self.cluster.logs / "kube-controller-manager.log",
        )
        self.api.create(f"{self.namespace}/pods", probe_pod(self.cluster))

    def _has_account(self) -> bool:
        try:
            self.api.get(f"{self.namespace}/serviceaccounts/default")
        except ApiError:
            return False
        return True

    def _log(self) -> str:
        try:
            return self.api.raw("GET", f"{self.namespace}/pods/probe/log")
        except ApiError:
            return ""

    def _await(self, word: str, what: str, seconds: float, log: Path) -> None:
        wait_until(lambda: word in self._log(), seconds=seconds, what=what, log=log, detail=self._state)

    def _state(self) -> str:
        """The pod's phase and what is said of its container."""
        try:
            status = self.api.get(f"{self.namespace}/pods/probe")["status"]
        except ApiError as error:
            return str(error)
        states = [container.get("state") for container in status.get("containerStatuses", [])]
        return f"{status.get('phase')} {states or status.get('conditions', '')}"

    def finish(self) -> float:
        """Wait for the proof, and clear up; the seconds from the policy to the block.

        Raises DevError when the policy blocks nothing: nothing may be evaluated on such a cluster.
        """
        self._await("connected", "a pod's connection to DNS", 100, self.cluster.logs / "kubelet.log")
        policies = f"/apis/networking.k8s.io/v1/namespaces/{PROBE_NAMESPACE}/networkpolicies"
        self.api.create(policies, DENY_ALL)
        began = time.monotonic()
        try:
            self._await("blocked", "a blocked connection", 20, self.cluster.logs / "kube-router.log")
        except DevError as error:
            raise DevError(f"network policies are not enforced: {error}") from error
        took = time.monotonic() - began
        self.api.delete(self.namespace)
        return took
