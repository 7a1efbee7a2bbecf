"""The host's side of a cluster: its first process, the cable into its network, its cgroups, and clearing them away."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from devkit.errors import DevError, tail
from devkit.settings import Cluster
from devkit.shell import run, succeeds, wait_until

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = (
    0x00020000,
    0x04000000,
    0x08000000,
    0x20000000,
    0x40000000,
)
END_SECONDS = 20  # for the kernel to end every process of a cluster
CGROUPS = Path("/sys/fs/cgroup")
SYSCTLS = {"net.ipv4.ip_forward": "1", "net.bridge.bridge-nf-call-iptables": "1"}


def started_at(pid: int) -> str | None:
    """When a process started, in the kernel's ticks since boot; None when it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


def init_pid(cluster: Cluster) -> int | None:
    """The cluster's first process as the host numbers it, if it is alive."""
    try:
        noted = json.loads(cluster.pid_file.read_text())
        pid, start = int(noted["pid"]), noted["start"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if start is not None and started_at(pid) == start else None


def spawn(cluster: Cluster, specification: Path) -> int:
    """Start the cluster's first process in namespaces of its own, outliving this one; its number on the host."""
    reading, writing = os.pipe()
    first = os.fork()
    if first == 0:
        try:
            os.close(reading)
            os.setsid()
            libc = ctypes.CDLL(None, use_errno=True)
            flags = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
            if libc.unshare(flags) != 0:
                os.write(writing, f"error {os.strerror(ctypes.get_errno())}".encode())
                os._exit(1)
            second = os.fork()
            if second:
                os.write(writing, str(second).encode())
                os._exit(0)
            os.close(writing)
            log = os.open(cluster.logs / "init.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            null = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((null, 0), (log, 1), (log, 2)):
                os.dup2(source, target)
            os.closerange(3, 1024)
            os.chdir("/")
            python_path = str(Path(__file__).resolve().parents[1])
            environment = {
                "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME": "/root",
                "LANG": "C.UTF-8",
                "PYTHONPATH": python_path,
                "PYTHONDONTWRITEBYTECODE": "1",
            }
            os.execve(sys.executable, [sys.executable, "-m", "devkit.init", str(specification)], environment)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(first, 0)
    if not said.isdigit():
        raise DevError(f"this process may not make namespaces: {said or 'it ended early'}; see {cluster.logs}/init.log")
    pid = int(said)
    cluster.pid_file.write_text(json.dumps({"pid": pid, "start": started_at(pid)}))
    return pid


def in_network(pid: int, *words: str) -> list[str]:
    return ["nsenter", "--target", str(pid), "--net", "--", *words]


def connect(cluster: Cluster, pid: int) -> None:
    """Lay the cable between this machine and the cluster, with both addresses, and open the gate `file:network`."""
    wait_until(
        lambda: (cluster.run / "namespaces").exists() or init_pid(cluster) is None,
        seconds=20,
        what="the cluster's namespaces",
        log=cluster.logs / "init.log",
    )
    if init_pid(cluster) is None:
        log = cluster.logs / "init.log"
        raise DevError(f"the cluster's first process ended at once; see {log}\n{tail(log)}")
    link, batch = cluster.link, f"{cluster.address}/30"
    run(["ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(pid)], what="network cable")
    run(["ip", "address", "add", f"{cluster.host_address}/30", "dev", link], what="host's address")
    run(["ip", "link", "set", link, "up"], what="network cable")
    settings = [f"{name}={value}" for name, value in SYSCTLS.items()]
    script = (
        f"ip link set lo up && ip address add {batch} dev eth0 && ip link set eth0 up && "
        f"ip route add default via {cluster.host_address} && sysctl -q -e -w {' '.join(settings)}"
    )
    run(in_network(pid, "sh", "-c", script), what="cluster's network")
    (cluster.run / "network").touch()


def _hierarchies() -> Iterator[Path]:
    """The roots in which the kubelet wants its cgroup: one for version 2, one per controller for version 1."""
    if (CGROUPS / "cgroup.controllers").exists():
        yield CGROUPS
        return
    for folder in sorted(CGROUPS.iterdir()):
        if folder.is_dir() and not folder.is_symlink() and (folder / "cgroup.procs").exists():
            yield folder


def make_cgroups(cluster: Cluster) -> None:
    for root in _hierarchies():
        controllers = root / "cgroup.controllers"
        if controllers.exists():
            words = " ".join(f"+{name}" for name in controllers.read_text().split())
            with contextlib.suppress(OSError):
                (root / "cgroup.subtree_control").write_text(words)
        folder = root / cluster.cgroup
        folder.mkdir(exist_ok=True)
        if (folder / "cpuset.cpus").exists():
            for name in ("cpuset.cpus", "cpuset.mems"):
                if not (folder / name).read_text().strip():
                    (folder / name).write_text((root / name).read_text())


def cgroups(cluster: Cluster) -> list[Path]:
    return [root / cluster.cgroup for root in _hierarchies() if (root / cluster.cgroup).exists()]


def _remove_cgroups(cluster: Cluster) -> None:
    """Kill whatever is left in the cluster's cgroups and remove them, the innermost first."""

    def gone() -> bool:
        for top in cgroups(cluster):
            folders = [Path(path) for path, _, _ in os.walk(top, topdown=False)]
            for folder in folders:
                with contextlib.suppress(OSError):
                    for pid in (folder / "cgroup.procs").read_text().split():
                        with contextlib.suppress(OSError):
                            os.kill(int(pid), signal.SIGKILL)
                with contextlib.suppress(OSError):
                    folder.rmdir()
        return not cgroups(cluster)

    wait_until(gone, seconds=END_SECONDS, what=f"the end of the cgroups {cluster.cgroup}")


def _strays(cluster: Cluster) -> list[int]:
    """First processes of this cluster that its note does not name (the note may be lost)."""
    wanted = str(cluster.run / "specification.json").encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if b"devkit.init" in words and wanted in words:
                    found.append(int(entry.name))
    return found


def clear(cluster: Cluster) -> list[str]:
    """End the cluster, or what is left of one, and remove all that it had on this machine but its image store.

    Returns what there was, for the user. Raises DevError for what will not go.
    """
    found = []
    pids = _strays(cluster)
    for pid in pids:
        found.append(f"process {pid}")
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until(
        lambda: not any(started_at(pid) for pid in pids),
        seconds=END_SECONDS,
        what=f"the end of the processes {pids}",
    )
    if Path(f"/sys/class/net/{cluster.link}").exists():
        # The kernel takes a dead namespace's interfaces down in its own time; a new one may not find the old name.
        if succeeds(["ip", "link", "delete", cluster.link]):
            found.append(f"interface {cluster.link}")
        wait_until(
            lambda: not Path(f"/sys/class/net/{cluster.link}").exists(),
            seconds=END_SECONDS,
            what=f"the end of the interface {cluster.link}",
        )
    left = cgroups(cluster)
    if left:
        found.append(f"{len(left)} cgroups")
        _remove_cgroups(cluster)
    if cluster.run.exists():
        found.append(f"files in {cluster.run}")
        limit = time.monotonic() + END_SECONDS
        while cluster.run.exists():
            shutil.rmtree(cluster.run, ignore_errors=True)
            if time.monotonic() > limit:
                raise DevError(f"{cluster.run} cannot be removed: is something of it mounted, or a shell in it?")
    return found
