"""Ways to hurt a case pod, a service or a node of the cluster under test, and what the run has counted of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.kubectl import Kubectl

RELEASE = "casewarden-system"
NOW = "%Y-%m-%dT%H:%M:%SZ"


def ledger(kubectl: Kubectl, namespace: str, run: str) -> list[dict[str, Any]]:
    """Return a row for each attempt that a run has counted."""
    uid = kubectl.get("evalrun", namespace, run)["metadata"]["uid"]
    shards = kubectl.list("configmaps", namespace, f"casewarden.dev/run-uid={uid},casewarden.dev/role=ledger")
    rows = [json.loads(line) for item in shards for text in item["data"].values() for line in text.splitlines()]
    return sorted(rows, key=lambda row: (row["seed"], row["case_id"], row["repeat"], row["attempt"]))


def events(kubectl: Kubectl, namespace: str, run: str) -> set[tuple[str, str]]:
    """Return type and reason of every Event about a run."""
    found = kubectl.list("events", namespace)
    return {
        (item["type"], item["reason"])
        for item in found
        if item["involvedObject"]["kind"] == "EvalRun" and item["involvedObject"]["name"] == run
    }


def playing(kubectl: Kubectl, namespace: str) -> dict[str, dict[str, Any]]:
    """Return the pods whose candidate runs, by the name of their run."""
    pods = kubectl.list("pods", namespace, "casewarden.dev/role=case")
    started = _uids_with("main.py")
    return {
        pod["metadata"]["ownerReferences"][0]["name"]: pod
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"] and any(pod["metadata"]["uid"] in text for text in started)
    }


def play(kubectl: Kubectl, namespace: str, run: str) -> dict[str, Any]:
    """Wait until the candidate of a run runs, and return its pod."""
    return kubectl.until(
        lambda: playing(kubectl, namespace).get(run), 120, lambda: kubectl.picture(namespace), pause=0.2
    )


def _uids_with(word: str) -> list[str]:
    """Return the cgroups, as text, of this machine's processes with a word in their command; nodes are on it."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word in (entry / "cmdline").read_bytes().decode("utf-8", "replace"):
                found.append((entry / "cgroup").read_text().replace("_", "-"))
        except OSError:
            continue
    return found


def evict(kubectl: Kubectl, namespace: str, pod: str) -> None:
    """Do to one pod what `kubectl drain` does to all pods of a node."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
    kubectl("create", "--raw", f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction", "-f", "-", stdin=json.dumps(body))


def say_of(kubectl: Kubectl, namespace: str, pod: dict[str, Any], **status: Any) -> None:
    """Say of a pod what a kubelet would, where the fact itself would endanger the node, until the run has counted it.

    The kubelet stands still meanwhile: it would take its word back at once.
    """
    meta = pod["metadata"]
    run, attempt = meta["ownerReferences"][0]["name"], int(meta["annotations"]["casewarden.dev/attempt"])
    with frozen(kubelet(kubectl)):
        body = json.dumps({"status": status})
        kubectl("patch", "pod", meta["name"], "-n", namespace, "--subresource=status", "-p", body)
        kubectl.until(
            lambda: attempt in [row["attempt"] for row in ledger(kubectl, namespace, run)],
            30,
            lambda: kubectl.picture(namespace),
            pause=0.2,
        )


def process(pod: dict[str, Any], word: str) -> int:
    """Return the first process of the pod's container whose command has a word in it; the node is on this machine."""
    uid = pod["metadata"]["uid"]
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and uid in (entry / "cgroup").read_text().replace("_", "-"):
                command = (entry / "cmdline").read_bytes().decode("utf-8", "replace")
                inner = [line for line in (entry / "status").read_text().splitlines() if line.startswith("NSpid:")]
                if word in command and inner and inner[0].split()[-1] == "1":
                    found.append(int(entry.name))
        except OSError:
            continue
    assert found, f"no process of pod {uid} with {word!r} in its command is on this machine"
    return found[0]


def as_it_starts(pod: dict[str, Any], word: str, seconds: float = 60) -> int:
    """Wait for the first process of one of the pod's containers and return it within milliseconds of its start."""
    end = time.monotonic() + seconds
    while True:
        try:
            return process(pod, word)
        except AssertionError:
            if time.monotonic() > end:
                raise


_HOG = """
import pathlib, sys
sys.stdin.read()
state, held = pathlib.Path(f"/proc/{sys.argv[1]}/stat"), []
while state.exists() and state.read_text().rpartition(")")[2].split()[0] not in "ZX":
    held.append(bytearray(b"x" * (1 << 20)))
"""


def starve(pid: int, seconds: float = 60) -> None:
    """Use up the memory of a process's container from outside, so that the kernel kills this very process for it."""
    folder = _memory_cgroup(pid)
    with subprocess.Popen([sys.executable, "-c", _HOG, str(pid)], stdin=subprocess.PIPE) as hog:
        try:
            (folder / "cgroup.procs").write_text(str(hog.pid))
            # The kernel chooses by use and by this, in thousandths of the limit: the whole limit is more than any use.
            Path(f"/proc/{hog.pid}/oom_score_adj").write_text("0")
            Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
            hog.communicate(timeout=seconds)
        finally:
            hog.kill()


def _memory_cgroup(pid: int) -> Path:
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        if "memory" in kinds.split(","):
            return Path(f"/sys/fs/cgroup/memory{path}")
        if not kinds and (folder := Path(f"/sys/fs/cgroup{path}")).joinpath("memory.max").exists():
            return folder
    raise AssertionError(f"process {pid} is in no memory cgroup that this machine shows")


@contextmanager
def relay_away(kubectl: Kubectl) -> Iterator[None]:
    """Make the relay unreachable, with all that it keeps left as it is."""

    def patch(value: str | None) -> str:
        return json.dumps({"spec": {"selector": {"away": value}}})

    kubectl("patch", "service", "casewarden-relay", "-n", RELEASE, "-p", patch("yes"))
    try:
        yield
    finally:
        kubectl("patch", "service", "casewarden-relay", "-n", RELEASE, "--type=merge", "-p", patch(None))


@contextmanager
def frozen(*pids: int) -> Iterator[None]:
    """Stop processes of this machine for a while: they are there, and answer nothing."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def api_server(kubectl: Kubectl) -> int:
    """Return the API server's process, which must be on this machine."""
    return _program("kube-apiserver", f"--advertise-address={_address(kubectl)}")


def kubelet(kubectl: Kubectl) -> int:
    """Return the kubelet's process of the one node, which must be on this machine."""
    return _program("kubelet", _address(kubectl))


def _address(kubectl: Kubectl) -> str:
    server = kubectl("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
    return server.removeprefix("https://").rpartition(":")[0]


def _program(name: str, word: str) -> int:
    for entry in Path("/proc").iterdir():
        try:
            words = (
                (entry / "cmdline").read_bytes().decode("utf-8", "replace").split("\0") if entry.name.isdigit() else []
            )
        except OSError:
            continue
        if words and words[0].rpartition("/")[2] == name and word in words:
            return int(entry.name)
    raise AssertionError(f"no {name} with {word} is on this machine")


@contextmanager
def pretended_node(kubectl: Kubectl, name: str) -> Iterator[None]:
    """Have a node that takes pods and never runs them, and let no other node take any, until it is deleted."""
    real = kubectl("get", "nodes", "-o", "name").split()
    kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pretended": name}}})
    stamp = time.strftime(NOW, time.gmtime())
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "", "lastHeartbeatTime": stamp,
             "lastTransitionTime": stamp}  # fmt: skip
    room = {"cpu": "8", "memory": "32Gi", "pods": "100", "ephemeral-storage": "100Gi"}
    body = json.dumps({"status": {"conditions": [ready], "capacity": room, "allocatable": room}})
    kubectl("patch", "node", name, "--subresource=status", "-p", body)
    kubectl("patch", "node", name, "--type=json", "-p", '[{"op":"replace","path":"/spec","value":{}}]')
    try:
        for node in real:
            kubectl("cordon", node)
        yield
    finally:
        kubectl("delete", "node", name, "--ignore-not-found", "--wait=false")
        for node in real:
            kubectl("uncordon", node)
