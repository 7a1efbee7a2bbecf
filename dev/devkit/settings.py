"""Where a cluster keeps what, and under which addresses it is found. Pure but for the environment it is given."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from devkit.errors import DevError

REPOSITORY = Path(__file__).resolve().parents[2]
SOCKET_PATH_LIMIT = 107  # bytes, of a Unix socket's address
DEFAULT_NAME = "dev"


def cache_root(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder for everything that can be made again: programs, images, clusters."""
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "/root")) / ".cache")
    return Path(base) / "casewarden"


@dataclass(frozen=True)
class Cluster:
    """One cluster's name, folders and addresses. Two clusters share none of them."""

    name: str
    root: Path

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ) -> Cluster:
        """The cluster that CLUSTER_NAME names. Raises DevError for a name that cannot be an interface's."""
        name = environ.get("CLUSTER_NAME") or DEFAULT_NAME
        if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", name):
            raise DevError(f"CLUSTER_NAME={name!r}: use 1 to 10 of a-z, 0-9 and '-', not '-' at an end")
        cluster = cls(name, cache_root(environ) / "clusters" / name)
        if len(os.fsencode(cluster.containerd_socket)) > SOCKET_PATH_LIMIT:
            raise DevError(
                f"{cluster.containerd_socket} is too long for a socket: set XDG_CACHE_HOME to a shorter path"
            )
        return cluster

    # What a run of the cluster makes, and `down` removes.
    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def containerd_socket(self) -> Path:
        return self.run / "containerd.sock"

    @property
    def containerd_state(self) -> Path:
        return self.run / "containerd"

    @property
    def status_file(self) -> Path:
        return self.run / "status.json"

    @property
    def pid_file(self) -> Path:
        return self.run / "init.json"

    # What is kept between runs, so that the next start is quick.
    @property
    def pki(self) -> Path:
        return self.root / "pki"

    @property
    def image_store(self) -> Path:
        return self.root / "containerd"

    @property
    def logs(self) -> Path:
        return self.root / "log"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def lock(self) -> Path:
        return self.root.parent / f"{self.name}.lock"

    # Names on the host.
    @property
    def link(self) -> str:
        """The host's end of the cable into the cluster's network."""
        return f"cw-{self.name}"

    @property
    def cgroup(self) -> str:
        return f"casewarden-{self.name}"

    @property
    def node(self) -> str:
        return f"casewarden-{self.name}"

    # Addresses. 198.18.0.0/15 is set aside for tests of devices, so no real network uses it.
    @property
    def network_number(self) -> int:
        return zlib.crc32(self.name.encode()) % 256

    @property
    def host_address(self) -> str:
        """This machine, as the cluster sees it."""
        return f"198.19.{self.network_number}.1"

    @property
    def address(self) -> str:
        """The node, as this machine sees it."""
        return f"198.19.{self.network_number}.2"

    @property
    def api_url(self) -> str:
        return f"https://{self.address}:6443"

    pod_network = "10.244.0.0/22"
    service_network = "10.96.0.0/16"
    service_api_address = "10.96.0.1"
    service_dns_address = "10.96.0.10"
