"""The clusters that a release can be put into, and how images get to each: loaded, or through a registry."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from devkit import builds, cluster, engines, images, node_images, programs
from devkit.errors import DevError
from devkit.settings import DEFAULT_NAME, Cluster, cache_root
from devkit.shell import run, say

KIND_CLUSTER = "casewarden"
KIND_SECONDS = 600


class Target(ABC):
    """A cluster that is up."""

    kubeconfig: Path

    @abstractmethod
    def provide(self) -> dict[str, str]:
        """Bring the product's images to the cluster; name (`operator`, …) to the reference that its pods use."""


@dataclass(frozen=True)
class Own(Target):
    """A cluster of `dev/cluster`."""

    cluster: Cluster

    @property
    def kubeconfig(self) -> Path:  # type: ignore[override]
        return self.cluster.kubeconfig

    def provide(self) -> dict[str, str]:
        engine = engines.Buildah()
        made = builds.build(list(images.PRODUCT), engine)
        references, wanted = {}, {}
        for name in images.PRODUCT:
            image, built = images.IMAGES[name], made[name]
            # Named by what it is made of, so that a release never runs an older build of the same name.
            references[name] = image.tag.replace(f":{images.TAG}", f":{built['key']}")
            wanted[f"docker.io/library/{references[name]}"] = wanted[image.reference] = built["digest"]
        loaded = [
            name for name in node_images.load(self.cluster, engine, wanted) if not name.endswith(f":{images.TAG}")
        ]
        if loaded:
            say(f"  loaded {', '.join(name.removeprefix('docker.io/library/') for name in loaded)}")
        return references


@dataclass(frozen=True)
class Kind(Target):
    """A cluster of kind, on this machine's Docker."""

    name: str
    kubeconfig: Path

    def provide(self) -> dict[str, str]:
        engine = engines.Docker()
        made = builds.build(list(images.PRODUCT), engine)
        references = {}
        for name in images.PRODUCT:
            tag = images.IMAGES[name].tag
            references[name] = tag.replace(f":{images.TAG}", f":{made[name]['key']}")
            run(["docker", "tag", tag, references[name]], what=f"tagging {tag}")
            run(
                ["kind", "load", "docker-image", references[name], "--name", self.name],
                what=f"loading {tag} into kind",
                seconds=KIND_SECONDS,
            )
        return references


@dataclass(frozen=True)
class Elsewhere(Target):
    """Any other cluster: it pulls from a registry."""

    kubeconfig: Path
    registry: str

    def provide(self) -> dict[str, str]:
        engine = engines.choose()
        made = builds.build(list(images.PRODUCT), engine)
        references = {}
        for name in images.PRODUCT:
            references[name] = f"{self.registry.rstrip('/')}/casewarden-{name}:{made[name]['key']}"
            engine.push(images.IMAGES[name], references[name])
            say(f"  pushed {references[name]}")
        return references


def tool(name: str, target: Target) -> str:
    """kubectl or helm: the cluster's own build, the one on the PATH, or else one that is built."""
    found = shutil.which(name)
    return found if found and not isinstance(target, Own) else str(programs.ensure(programs.CLUSTER) / name)


def own_of(kubeconfig: Path) -> Cluster | None:
    """The `dev/cluster` that a kubeconfig belongs to."""
    folder = kubeconfig.resolve().parent
    if folder.parent != (cache_root() / "clusters").resolve():
        return None
    return Cluster.from_environ({**os.environ, "CLUSTER_NAME": folder.name})


def _private_file(text: str) -> Path:
    """A file with credentials that ends with this process."""
    folder = Path(tempfile.mkdtemp(prefix="casewarden-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / "kubeconfig"
    file.touch(mode=0o600)
    file.write_text(text)
    return file


def _context_kubeconfig(context: str) -> Path:
    """A kubeconfig of that context alone (the current one where it is empty)."""
    kubectl = shutil.which("kubectl") or str(programs.ensure(programs.CLUSTER) / "kubectl")
    chosen = ["--context", context] if context else []
    return _private_file(
        run([kubectl, "config", "view", "--minify", "--flatten", "--raw", *chosen], what="reading the kubeconfig")
    )


def named(context: str, registry: str) -> Target:
    """The cluster of a context of the user's kubeconfig. Raises DevError where images could not get to it."""
    configured = os.environ.get("KUBECONFIG", "")
    own = own_of(Path(configured)) if configured and not context else None
    if own is not None:
        return Own(own)
    file = _context_kubeconfig(context)
    if registry:
        return Elsewhere(file, registry)
    current = (
        context
        or run([shutil.which("kubectl") or "kubectl", "config", "current-context"], what="the current context").strip()
    )
    if current.startswith("kind-"):
        return Kind(current.removeprefix("kind-"), file)
    raise DevError(
        f"context {current!r}: its nodes cannot see this machine's images; name a registry that both can reach, "
        "as in REGISTRY=registry.example/team"
    )


def kind_works() -> bool:
    return shutil.which("kind") is not None and engines.docker_answers()


def _kind() -> Target:
    there = run(["kind", "get", "clusters"], what="kind").split()
    if KIND_CLUSTER not in there:
        say(f"making the kind cluster {KIND_CLUSTER}")
        run(
            ["kind", "create", "cluster", "--name", KIND_CLUSTER, "--wait", "180s"],
            what="kind create cluster",
            log=cache_root() / "kind.log",
            seconds=KIND_SECONDS,
        )
    return Kind(KIND_CLUSTER, _private_file(run(["kind", "get", "kubeconfig", "--name", KIND_CLUSTER], what="kind")))


def choose(context: str, registry: str) -> Target:
    """The cluster that is named, else kind where Docker runs, else one made from source on this machine."""
    if context or registry:
        return named(context, registry)
    if kind_works():
        return _kind()
    if sys.platform != "linux":
        raise DevError("name a cluster (CONTEXT=… REGISTRY=…) or install kind and start Docker")
    own = Cluster.from_environ({"CLUSTER_NAME": DEFAULT_NAME, **os.environ})
    cluster.up(own)
    return Own(own)


# Where the cluster tests put a scripted model; nobody is there else.
_SCRIPTED = {"url": "http://models.casewarden-models.svc:8000/v1", "retrySeconds": 2}
SCRIPTED = {
    "scripted": {**_SCRIPTED, "concurrency": 4, "price": {"prompt": "1000", "completion": "1000"}},
    "scripted-claude": {**_SCRIPTED, "dialect": "anthropic"},
    "scripted-shared": {**_SCRIPTED, "concurrency": 4, "retrySeconds": 20},
    "scripted-keyless": {**_SCRIPTED, "secret": {"name": "no-such-secret"}},
    "scripted-elsewhere": {**_SCRIPTED, "namespaces": ["elsewhere"]},
}


PACKS = (
    "durable-kv", "support-routing", "agentbench-alfworld", "agentbench-db", "agentbench-dcg", "agentbench-kg",
    "agentbench-ltp", "agentbench-mind2web", "agentbench-os", "agentbench-webshop",
)  # fmt: skip
"""The packs of the image of tasks."""
ENVIRONMENTS = ("python", "mariadb", "os-default")
"""Images that candidates and environments run, by their aliases in the catalogue."""


def chart_values(references: dict[str, str]) -> str:
    """What the chart is told of the images; JSON is YAML."""
    packs = {pack: {"image": references["tasks"]} for pack in PACKS}
    values = {
        "image": {"operator": references["operator"], "evidence": references["evidence"]},
        "catalogue": {
            "tasks": packs,
            "images": {name: references[name] for name in ENVIRONMENTS},
            "endpoints": SCRIPTED,
            "allowBaseline": ["agentbench-os"],
        },
        # A checkout's release is for trials, and its own cluster has no storage class.
        "relay": {"storage": {"type": "emptyDir", "size": "2Gi"}},
    }
    return json.dumps(values)
