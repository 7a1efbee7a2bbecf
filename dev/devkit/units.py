"""What runs in the cluster, with which arguments and files, and what each part waits for. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from devkit.settings import Cluster

PIDS_PER_POD = 1024
PAUSE_IMAGE = "docker.io/library/casewarden-pause:dev"
CONTROLLER_QPS, CONTROLLER_BURST = 500, 1000  # the default of 20 a second is what a scale test would measure


@dataclass(frozen=True)
class Unit:
    """A program that process 1 keeps running. It is started when every gate is open."""

    name: str
    argv: tuple[str, ...]
    gates: tuple[str, ...] = ()
    """`file:PATH` exists, `socket:PATH` or `tcp:HOST:PORT` takes connections, `api:PATH` answers 200."""
    env: dict[str, str] = field(default_factory=dict)


def specification(cluster: Cluster, units: tuple[Unit, ...]) -> str:
    """What process 1 reads."""
    return json.dumps(
        {
            "root": str(cluster.root),
            "node": cluster.node,
            "api": cluster.api_url,
            "units": [asdict(unit) for unit in units],
        },
        indent=1,
    )


def containerd_config(cluster: Cluster, *, pods: bool = True) -> str:
    """containerd's TOML; without `pods`, only its stores, to clear them of a former run's containers."""
    common = f"""version = 2
root = "{cluster.image_store}"
state = "{cluster.containerd_state}"
oom_score = 0
[grpc]
  address = "{cluster.containerd_socket}"
"""
    if not pods:
        return common + 'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n'
    # A machine without CAP_SYS_RESOURCE cannot lower an oom_score_adj: runc dies of it ("can't get final child's PID").
    return (
        common
        + f"""[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  max_concurrent_downloads = 8
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{cluster.run}/cni"
"""
    )


def network_config(cluster: Cluster) -> str:
    """The CNI configuration: one bridge for the node's pods."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": f"{cluster.run}/ipam",
            "ranges": [[{"subnet": cluster.pod_network}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "0.4.0", "name": "cluster", "plugins": [bridge, ports]}, indent=1)


def kubelet_config(cluster: Cluster) -> str:
    pki = cluster.pki
    config: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{pki}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": f"{pki}/kubelet.crt",
        "tlsPrivateKeyFile": f"{pki}/kubelet.key",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cluster.cgroup}",
        "containerRuntimeEndpoint": f"unix://{cluster.containerd_socket}",
        "podLogsDir": f"{cluster.run}/pod-logs",
        "clusterDomain": "cluster.local",
        "clusterDNS": [cluster.service_dns_address],
        "resolvConf": f"{cluster.run}/resolv.conf",
        "failSwapOn": False,
        "maxPods": 250,
        "podPidsLimit": PIDS_PER_POD,
        "registryPullQPS": 0,
        "serializeImagePulls": False,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 99,
        "imageGCLowThresholdPercent": 98,
        "kubeAPIQPS": 200,
        "kubeAPIBurst": 400,
        "eventRecordQPS": 0,
    }
    return json.dumps(config, indent=1)


def files(cluster: Cluster) -> dict[str, str]:
    """The configuration files of a run, by their path in the run's folder."""
    return {
        "containerd.toml": containerd_config(cluster),
        "containerd-stores.toml": containerd_config(cluster, pods=False),
        "cni/10-bridge.conflist": network_config(cluster),
        "kubelet.json": kubelet_config(cluster),
        "resolv.conf": "nameserver 127.0.0.1\n",
    }


def _api_server(cluster: Cluster, programs: Path) -> Unit:
    pki = cluster.pki
    flags = {
        "etcd-servers": "http://127.0.0.1:2379",
        "secure-port": "6443",
        "advertise-address": cluster.address,
        "client-ca-file": f"{pki}/ca.crt",
        "tls-cert-file": f"{pki}/apiserver.crt",
        "tls-private-key-file": f"{pki}/apiserver.key",
        # The node's name resolves nowhere: exec and logs go by its address.
        "kubelet-preferred-address-types": "InternalIP",
        "kubelet-certificate-authority": f"{pki}/ca.crt",
        "kubelet-client-certificate": f"{pki}/apiserver-kubelet.crt",
        "kubelet-client-key": f"{pki}/apiserver-kubelet.key",
        "service-account-key-file": f"{pki}/sa.pub",
        "service-account-signing-key-file": f"{pki}/sa.key",
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "requestheader-client-ca-file": f"{pki}/ca.crt",
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": f"{pki}/front-proxy.crt",
        "proxy-client-key-file": f"{pki}/front-proxy.key",
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "service-cluster-ip-range": cluster.service_network,
        "allow-privileged": "true",
    }
    argv = (str(programs / "kube-apiserver"), *(f"--{name}={value}" for name, value in flags.items()))
    return Unit("kube-apiserver", argv, ("file:network", "tcp:127.0.0.1:2379"))


def _controller(cluster: Cluster, programs: Path, name: str, user: str, *flags: str) -> Unit:
    config = f"{cluster.pki}/{user}.kubeconfig"
    credentials = tuple(f"--{use}kubeconfig={config}" for use in ("", "authentication-", "authorization-"))
    common = ("--leader-elect=false", "--bind-address=127.0.0.1")
    return Unit(name, (str(programs / name), *credentials, *common, *flags), ("api:/readyz",))


def units(cluster: Cluster, programs: Path, containerd: str) -> tuple[Unit, ...]:
    """Everything that the cluster runs beside its pods, in the order in which it comes up."""
    pki, run = cluster.pki, cluster.run
    rate = (f"--kube-api-qps={CONTROLLER_QPS}", f"--kube-api-burst={CONTROLLER_BURST}")
    etcd = (
        *("--data-dir", f"{run}/etcd", "--listen-client-urls", "http://127.0.0.1:2379"),
        *("--advertise-client-urls", "http://127.0.0.1:2379", "--listen-peer-urls", "http://127.0.0.1:2380"),
        *(
            "--initial-advertise-peer-urls",
            "http://127.0.0.1:2380",
            "--initial-cluster",
            "default=http://127.0.0.1:2380",
        ),
        # What it keeps does not outlive this run: it need not be on the disk.
        *("--unsafe-no-fsync", "--quota-backend-bytes", str(8 << 30), "--log-level", "warn"),
    )
    controllers = (
        f"--service-account-private-key-file={pki}/sa.key",
        f"--root-ca-file={pki}/ca.crt",
        f"--cluster-signing-cert-file={pki}/ca.crt",
        f"--cluster-signing-key-file={pki}/ca.key",
        "--use-service-account-credentials",
    )
    kubelet = (
        *("--kubeconfig", f"{pki}/kubelet.kubeconfig", "--config", f"{run}/kubelet.json"),
        *("--root-dir", "/var/lib/kubelet", "--hostname-override", cluster.node, "--node-ip", cluster.address),
    )
    proxy = (
        *("--kubeconfig", f"{pki}/proxy.kubeconfig", "--proxy-mode", "iptables", "--cluster-cidr", cluster.pod_network),
        # conntrack's table belongs to the machine, not to the cluster's network.
        *("--hostname-override", cluster.node, "--conntrack-max-per-core", "0"),
    )
    router = (
        *("--kubeconfig", f"{pki}/admin.kubeconfig", "--run-router=false", "--run-service-proxy=false"),
        *("--run-loadbalancer=false", "--run-firewall=true", "--hostname-override", cluster.node),
        *("--service-cluster-ip-range", cluster.service_network, "--metrics-port", "0", "--health-port", "0"),
    )
    node = f"api:/api/v1/nodes/{cluster.node}"
    return (
        Unit("etcd", (str(programs / "etcd"), *etcd), ("file:network",)),
        Unit("containerd", (containerd, "--config", f"{run}/containerd.toml"), ("file:stores-cleared", "file:network")),
        _api_server(cluster, programs),
        _controller(cluster, programs, "kube-controller-manager", "controller-manager", *controllers, *rate),
        _controller(cluster, programs, "kube-scheduler", "scheduler", *rate),
        Unit(
            "kubelet",
            (str(programs / "kubelet"), *kubelet),
            ("api:/readyz", f"socket:{cluster.containerd_socket}"),
        ),
        Unit("kube-proxy", (str(programs / "kube-proxy"), *proxy), ("api:/readyz",)),
        # It dies when the node is not registered, and then nothing is enforced and nothing says so.
        Unit("kube-router", (str(programs / "kube-router"), *router), (node,), {"NODE_NAME": cluster.node}),
    )
