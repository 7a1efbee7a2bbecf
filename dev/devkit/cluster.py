"""A one-node Kubernetes on this machine: up, down, status and load."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devkit import addons, builds, debian, images, namespaces, node_images, pki, programs, units
from devkit.api import Api, ApiError
from devkit.engines import Buildah
from devkit.errors import DevError, tail
from devkit.settings import Cluster
from devkit.shell import Step, run, say, wait_until

API_SECONDS, NODE_SECONDS, DNS_SECONDS, CONTAINERD_SECONDS = 180, 180, 180, 120  # on a machine that is busy
RESTART_SECONDS = 15  # in which a part that died is running again
NEEDED_IMAGES = (*images.CLUSTER_ONLY, "python")


@contextmanager
def exclusive(cluster: Cluster) -> Iterator[None]:
    """One `up` or `down` of a cluster at a time."""
    cluster.lock.parent.mkdir(parents=True, exist_ok=True)
    with cluster.lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def require_root() -> None:
    if os.geteuid() != 0:
        raise DevError("a cluster without Docker needs root (namespaces, cgroups, network): run it as root")


def containerd() -> str:
    found = shutil.which("containerd", path=debian.SEARCH)
    if found is None:
        raise DevError("containerd is not installed")
    return found


@dataclass(frozen=True)
class Running:
    """What a cluster that answers was started from."""

    pid: int
    key: str


def running(cluster: Cluster, patience: float = 0) -> Running | None:
    """The cluster, if its first process lives and its API answers within `patience` seconds, or at once."""
    pid = namespaces.init_pid(cluster)
    if pid is None:
        return None
    try:
        key = (cluster.run / "key").read_text()
        api = Api(cluster.api_url, cluster.pki)
        wait_until(api.ready, seconds=patience, what="the API server")
    except (OSError, DevError):
        return None
    return Running(pid, key)


def node_is_ready(cluster: Cluster, api: Api) -> bool:
    try:
        conditions = api.get(f"/api/v1/nodes/{cluster.node}")["status"]["conditions"]
    except (ApiError, KeyError):
        return False
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _write_run(cluster: Cluster, specification: str) -> Path:
    cluster.run.mkdir(parents=True, mode=0o755)
    cluster.logs.mkdir(exist_ok=True)
    for log in cluster.logs.iterdir():
        log.unlink()
    for name, content in units.files(cluster).items():
        file = cluster.run / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    file = cluster.run / "specification.json"
    file.write_text(specification)
    return file


def load(cluster: Cluster, names: list[str]) -> list[str]:
    """Build what has changed of the named images (or archives), and bring the node up to date; what it lacked."""
    files = [Path(name) for name in names if "/" in name or name.endswith(".tar")]
    for file in files:
        if not file.is_file():
            raise DevError(f"{file}: no such image archive")
        node_images.load_file(cluster, file)
    ours = [name for name in names if Path(name) not in files]
    if not ours:
        return [str(file) for file in files]
    engine = Buildah()
    made = builds.build(ours, engine)
    wanted = {images.IMAGES[name].reference: made[name]["digest"] for name in made if name != "base"}
    return [*map(str, files), *node_images.load(cluster, engine, wanted)]


def up(cluster: Cluster) -> None:
    """Bring the cluster up, from whatever state it is in, and prove that it works."""
    require_root()
    with exclusive(cluster):
        debian.require(debian.CLUSTER)
        built = programs.ensure(programs.CLUSTER)
        specification = units.specification(cluster, units.units(cluster, built, containerd()))
        key = hashlib.sha256((specification + json.dumps(units.files(cluster))).encode()).hexdigest()
        alive = running(cluster, RESTART_SECONDS)
        if alive is not None:
            if alive.key != key:
                say(f"{cluster.name}: runs what another checkout or an older one set up; `dev/cluster down` first")
            load(cluster, [*NEEDED_IMAGES])
            say(f"{cluster.name}: is up")
            return
        began = time.monotonic()
        _start(cluster, specification, key)
        say(f"{cluster.name}: up in {time.monotonic() - began:.1f} s; export KUBECONFIG={cluster.kubeconfig}")


def _start(cluster: Cluster, specification: str, key: str) -> None:
    engine = Buildah()
    made = builds.build([*NEEDED_IMAGES], engine)
    wanted = {images.IMAGES[name].reference: made[name]["digest"] for name in NEEDED_IMAGES}
    found = namespaces.clear(cluster)
    if found:
        say(f"  cleared what an earlier run left: {', '.join(found)}")
    cluster.root.mkdir(parents=True, exist_ok=True)
    pki.ensure(cluster)
    file = _write_run(cluster, specification)
    namespaces.make_cgroups(cluster)
    pid = namespaces.spawn(cluster, file)
    namespaces.connect(cluster, pid)
    api = Api(cluster.api_url, cluster.pki)
    check = addons.NetworkCheck(cluster, api)
    with ThreadPoolExecutor() as pool:
        loading = pool.submit(_load_when_up, cluster, engine, wanted)
        with Step("API server"):
            wait_until(
                lambda: api.ready() or _dead(cluster, loading),
                seconds=API_SECONDS,
                what="the API server",
                log=cluster.logs / "kube-apiserver.log",
            )
        with Step("node"):
            for path, body in addons.dns(cluster):
                api.create(path, body)
            starting = pool.submit(check.start)
            wait_until(
                lambda: node_is_ready(cluster, api) or _dead(cluster, loading),
                seconds=NODE_SECONDS,
                what="the node",
                log=cluster.logs / "kubelet.log",
            )
            loading.result()
            starting.result()
        with Step("DNS"):
            wait_until(
                lambda: addons.dns_is_ready(api),
                seconds=DNS_SECONDS,
                what="DNS (deployment coredns in kube-system)",
                log=cluster.logs / "kubelet.log",
            )
        with Step("network policies are enforced"):
            took = check.finish()
    say(f"  a pod was cut off {took:.1f} s after its policy")
    (cluster.run / "key").write_text(key)


def _dead(cluster: Cluster, loading: Future[None]) -> bool:
    """False; raises when waiting on is no use."""
    if namespaces.init_pid(cluster) is None:
        log = cluster.logs / "init.log"
        raise DevError(f"the cluster's first process has ended; see {log}\n{tail(log)}")
    if loading.done():
        loading.result()
    return False


def _load_when_up(cluster: Cluster, engine: Buildah, wanted: dict[str, str]) -> None:
    wait_until(
        lambda: (cluster.run / "stores-cleared").exists() and cluster.containerd_socket.is_socket(),
        seconds=CONTAINERD_SECONDS,
        what="containerd",
        log=cluster.logs / "containerd.log",
    )
    run(
        ["ctr", "--address", cluster.containerd_socket, "--connect-timeout", "20s", "version"],
        what="containerd",
        seconds=CONTAINERD_SECONDS,
    )
    node_images.load(cluster, engine, wanted)


def down(cluster: Cluster, *, purge: bool = False) -> None:
    """End the cluster, or the half of one that is there. With `purge` its image store and certificates go too."""
    require_root()
    with exclusive(cluster):
        found = namespaces.clear(cluster)
        if purge and cluster.root.exists():
            found.append(str(cluster.root))
            shutil.rmtree(cluster.root)
        say(f"{cluster.name}: " + (f"down; removed {', '.join(found)}" if found else "was not up"))


def status(cluster: Cluster) -> bool:
    """Say how each part of the cluster does; whether all do well."""
    pid = namespaces.init_pid(cluster)
    if pid is None:
        print(f"{cluster.name}: not running")
        return False
    try:
        states = json.loads(cluster.status_file.read_text())
    except (OSError, ValueError):
        states = {}
    api = Api(cluster.api_url, cluster.pki)
    api_ready, node_ready = api.ready(), node_is_ready(cluster, api)
    print(f"{cluster.name}: process {pid}, API {cluster.api_url} {'ready' if api_ready else 'NOT READY'}, ", end="")
    print(f"node {'ready' if node_ready else 'NOT READY'}, DNS {'ready' if addons.dns_is_ready(api) else 'NOT READY'}")
    well = api_ready and node_ready and bool(states)
    for name, state in states.items():
        word = "running" if state["running"] else f"NOT RUNNING (last exit {state['last_code']})"
        waits = f", waits for {', '.join(state['waits_for'])}" if state["waits_for"] and not state["running"] else ""
        print(f"  {name:24} {word}{waits}; restarts {state['restarts']}; log {cluster.logs}/{name}.log")
        well = well and state["running"]
    return well
