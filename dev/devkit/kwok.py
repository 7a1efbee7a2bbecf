"""Nodes that only pretend to run pods, so that thousands of case pods cost nothing but API calls."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from devkit import namespaces, programs
from devkit.api import Api, ApiError, Json
from devkit.errors import DevError
from devkit.settings import Cluster
from devkit.shell import say, wait_until
from devkit.units import Unit

CONFIGURATION = Path(__file__).with_name("kwok.yaml")
LABELS = {"type": "kwok"}
TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
"""Keeps every pod away that does not tolerate it: a real one would pretend to run."""
NODE_SECONDS = 60


def node(number: int) -> Json:
    return {
        "metadata": {"name": f"kwok-{number}", "labels": {**LABELS, "kubernetes.io/hostname": f"kwok-{number}"}},
        "spec": {"taints": [TAINT]},
    }


def _unit_file(cluster: Cluster) -> Path:
    return cluster.run / "extra" / "kwok.json"


def _start(cluster: Cluster) -> None:
    """Hand the program to the cluster's first process, to be kept running."""
    program = programs.ensure(programs.KWOK) / "kwok"
    argv = (str(program), "--kubeconfig", str(cluster.pki / "admin.kubeconfig"), "--config", str(CONFIGURATION))
    file = _unit_file(cluster)
    file.parent.mkdir(exist_ok=True)
    temporary = file.with_suffix(".new")
    temporary.write_text(json.dumps(asdict(Unit("kwok", argv, ("api:/readyz",)))))
    temporary.replace(file)


def _require_up(cluster: Cluster) -> Api:
    if namespaces.init_pid(cluster) is None:
        raise DevError(f"cluster {cluster.name} is not up: dev/cluster up")
    return Api(cluster.api_url, cluster.pki)


def up(cluster: Cluster, nodes: int) -> None:
    """Have that many pretended nodes, ready. Raises DevError when the cluster is not up."""
    api = _require_up(cluster)
    _start(cluster)
    for number in range(nodes):
        api.create("/api/v1/nodes", node(number))
    _remove_nodes(api, keep=nodes)
    wait_until(
        lambda: _ready(api) >= nodes,
        seconds=NODE_SECONDS,
        what=f"{nodes} pretended nodes",
        log=cluster.logs / "kwok.log",
    )
    say(f"{cluster.name}: {nodes} kwok nodes; label type=kwok, taint {TAINT['key']}={TAINT['value']}:{TAINT['effect']}")


def down(cluster: Cluster) -> None:
    """Remove the pretended nodes, their pods and the program that plays them."""
    api = _require_up(cluster)
    _remove_nodes(api, keep=0)
    _unit_file(cluster).unlink(missing_ok=True)
    say(f"{cluster.name}: no kwok nodes")


def _names(api: Api) -> list[Json]:
    found: list[Json] = api.get("/api/v1/nodes?labelSelector=type%3Dkwok")["items"]
    return found


def _ready(api: Api) -> int:
    try:
        nodes = _names(api)
    except ApiError:
        return 0
    return sum(
        any(one["type"] == "Ready" and one["status"] == "True" for one in item["status"].get("conditions", []))
        for item in nodes
    )


def _remove_nodes(api: Api, keep: int) -> None:
    for item in _names(api):
        name = item["metadata"]["name"]
        if int(name.rpartition("-")[2]) >= keep:
            api.delete(f"/api/v1/nodes/{name}")
