"""The development cluster, made, killed and ended as a user would, beside the one that the other tests use."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from devkit import namespaces
from devkit.settings import REPOSITORY, Cluster

NAME = "self"


def dev_cluster(*words: str, seconds: float = 300, check: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["dev/cluster", *words],
        cwd=REPOSITORY,
        env={**os.environ, "CLUSTER_NAME": NAME},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=check,
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    named = Cluster.from_environ({**os.environ, "CLUSTER_NAME": NAME})
    try:
        dev_cluster("up")
        yield named
    finally:
        dev_cluster("down", "--purge", check=False)


def below(cluster: Cluster) -> list[int]:
    """Every process in the cluster's process namespace."""
    init = namespaces.init_pid(cluster)
    assert init is not None
    wanted = os.readlink(f"/proc/{init}/ns/pid")
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "ns" / "pid") == wanted:
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def name_of(pid: int) -> str:
    """A process's name; empty for one that has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def left(cluster: Cluster) -> list[str]:
    """What of the cluster is to be seen on this machine, but for its image store and logs."""
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(cluster.root) in line]
    paths = [cluster.run, Path(f"/sys/class/net/{cluster.link}"), *namespaces.cgroups(cluster)]
    return [*mounts, *(str(path) for path in paths if path.exists())]


def test_up_where_it_is_up_changes_nothing(cluster: Cluster) -> None:
    before = namespaces.init_pid(cluster)
    dev_cluster("up")
    assert namespaces.init_pid(cluster) == before


def test_a_part_that_is_killed_is_running_again_and_is_counted(cluster: Cluster) -> None:
    def etcd() -> dict[str, object]:
        return json.loads(cluster.status_file.read_text())["etcd"]  # type: ignore[no-any-return]

    (pid,) = [pid for pid in below(cluster) if name_of(pid) == "etcd"]
    os.kill(pid, signal.SIGKILL)
    limit = time.monotonic() + 30
    while not (etcd()["restarts"] == 1 and etcd()["running"]):
        assert time.monotonic() < limit
        time.sleep(0.1)
    dev_cluster("up")
    assert dev_cluster("status").returncode == 0


def test_after_everything_was_killed_up_clears_what_is_left_and_is_quick(cluster: Cluster) -> None:
    for pid in below(cluster):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    began = time.monotonic()
    said = dev_cluster("up").stderr
    took = time.monotonic() - began
    assert "cleared what an earlier run left" in said
    assert "network policies are enforced" in said
    assert took < 30, said


def test_down_leaves_nothing_and_may_be_repeated(cluster: Cluster) -> None:
    assert left(cluster)
    dev_cluster("down")
    assert left(cluster) == []
    assert "was not up" in dev_cluster("down").stderr
    assert dev_cluster("status", check=False).returncode == 1


def test_down_works_on_half_a_cluster(cluster: Cluster) -> None:
    with subprocess.Popen(
        ["dev/cluster", "up"], cwd=REPOSITORY, env={**os.environ, "CLUSTER_NAME": NAME}, stderr=subprocess.DEVNULL
    ) as starting:
        limit = time.monotonic() + 60
        while namespaces.init_pid(cluster) is None:
            assert time.monotonic() < limit
            time.sleep(0.05)
        starting.kill()
    dev_cluster("down")
    assert left(cluster) == []
