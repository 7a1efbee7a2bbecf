"""The distribution's packages that the cluster and the images stand on."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from devkit.errors import DevError
from devkit.settings import cache_root
from devkit.shell import Step, run, say


@dataclass(frozen=True)
class Package:
    name: str
    proof: str
    """A program, or an absolute path, whose presence shows that the package is there."""

    def present(self) -> bool:
        if self.proof.startswith("/"):
            return Path(self.proof).exists()
        return shutil.which(self.proof, path=SEARCH) is not None


SEARCH = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"
"""Daemons' folders are not on every user's path."""

CLUSTER = (
    Package("containerd", "containerd"),
    Package("runc", "runc"),
    Package("containernetworking-plugins", "/usr/lib/cni/bridge"),
    Package("iptables", "iptables"),
    Package("ipset", "ipset"),
    Package("iproute2", "ip"),
    Package("util-linux", "nsenter"),
    Package("mount", "mount"),
    Package("openssl", "openssl"),
)
IMAGES = (
    Package("buildah", "buildah"),
    Package("mmdebstrap", "mmdebstrap"),
    Package("debian-archive-keyring", "/usr/share/keyrings/debian-archive-keyring.gpg"),
    Package("ca-certificates", "/etc/ssl/certs/ca-certificates.crt"),
)
DATABASE = (
    Package("mariadb-server-core", "mariadbd"),
    Package("socat", "socat"),
)
"""What tests of the task pack agentbench-db run on this machine; in a cluster it is in an image."""


def missing(packages: tuple[Package, ...]) -> list[str]:
    """The names of those that are not installed."""
    return [package.name for package in packages if not package.present()]


def require(packages: tuple[Package, ...]) -> None:
    """Install what is missing. Raises DevError naming it where this process may not, or apt is not there."""
    names = missing(packages)
    if not names:
        return
    command = f"apt-get update && apt-get install --no-install-recommends {' '.join(names)}"
    if shutil.which("apt-get") is None:
        raise DevError(f"not installed: {', '.join(names)} (as Debian calls them); install them your system's way")
    if os.geteuid() != 0:
        raise DevError(f"not installed: {', '.join(names)}; as root: {command}")
    log = cache_root() / "apt.log"
    log.unlink(missing_ok=True)
    say(f"installing {' '.join(names)}")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with Step("installed"):
        run(["apt-get", "update"], what="apt-get update", log=log, env=env, seconds=300)
        run(
            ["apt-get", "install", "-y", "--no-install-recommends", *names],
            what="apt-get install",
            log=log,
            env=env,
            seconds=900,
        )
    left = missing(packages)
    if left:
        raise DevError(f"installed, but not to be found: {', '.join(left)}; see {log}")
