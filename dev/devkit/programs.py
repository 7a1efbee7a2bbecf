"""The cluster's programs, built from source through the Go module proxy, kept by the hash of what they are made from.

What is built is pinned by `dev/programs/go.mod` and go.sum: one module, so that packages which several programs share
are compiled once. A built program is used only while its own hash is the one that was written down after the build.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from devkit.errors import DevError
from devkit.settings import REPOSITORY, cache_root
from devkit.shell import Step, run, say

SOURCE = REPOSITORY / "dev" / "programs"
MANIFEST = "SHA256.json"
KUBERNETES_COMMANDS = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
)
BUILD_SECONDS = 3600  # on two slow cores with nothing cached


@dataclass(frozen=True)
class Group:
    """Programs that are built from one go.mod."""

    name: str
    source: Path
    targets: tuple[str, ...]
    links: tuple[tuple[str, str], ...] = ()
    """(name, the built program that it is another name of)"""


CLUSTER = Group(
    "cluster",
    SOURCE,
    (
        "./kubernetes",
        "./etcd",
        "./coredns",
        "helm.sh/helm/v3/cmd/helm",
        "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router",
    ),
    tuple((command, "kubernetes") for command in KUBERNETES_COMMANDS),
)
S3 = Group("s3", SOURCE / "s3", ("github.com/versity/versitygw/cmd/versitygw",))
HELM4 = Group("helm4", SOURCE / "helm4", ("helm.sh/helm/v4/cmd/helm",))
KUEUE = Group("kueue", SOURCE / "kueue", ("sigs.k8s.io/kueue/cmd/kueue",))
KWOK = Group("kwok", SOURCE / "kwok", ("sigs.k8s.io/kwok/cmd/kwok",))


def link_flags(go_mod: str) -> str:
    """What the upstream release builds stamp into their programs, read from the versions in `go_mod`."""

    def version(module: str) -> str:
        found = re.search(rf"^\s*{re.escape(module)} (v\S+)", go_mod, re.MULTILINE)
        return found.group(1) if found else "v0.0.0"

    kubernetes, helm = version("k8s.io/kubernetes"), version("helm.sh/helm/v3")
    major, minor = kubernetes.lstrip("v").split(".")[:2]
    stamps = {
        "k8s.io/component-base/version.gitVersion": kubernetes,
        "k8s.io/component-base/version.gitMajor": major,
        "k8s.io/component-base/version.gitMinor": minor,
        "k8s.io/component-base/version.gitTreeState": "clean",
        "helm.sh/helm/v3/internal/version.version": helm,
        "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor": major,
        "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor": minor,
        "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMajor": major,
        "helm.sh/helm/v3/pkg/lint/rules.k8sVersionMinor": minor,
    }
    if "helm.sh/helm/v4 " in go_mod:
        stamps["helm.sh/helm/v4/internal/version.version"] = version("helm.sh/helm/v4")
    return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in stamps.items())])


def key_of(source: Path, targets: tuple[str, ...], go_version: str) -> str:
    """The name of a build: 16 hex digits of everything that goes into it."""
    digest = hashlib.sha256(json.dumps([targets, go_version]).encode())
    for file in sorted(source.rglob("*")):
        if file.is_file() and file.name in {"go.mod", "go.sum", "main.go"}:
            relative = file.relative_to(source).as_posix()
            if any((folder / "go.mod").exists() for folder in file.parents if source in folder.parents):
                continue  # a module of its own
            content = file.read_bytes()
            digest.update(f"{relative}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def write_manifest(folder: Path) -> None:
    files = [file for file in sorted(folder.iterdir()) if file.is_file() and not file.is_symlink()]
    (folder / MANIFEST).write_text(json.dumps({file.name: sha256(file) for file in files}, indent=1) + "\n")


def damage(folder: Path) -> str | None:
    """Why a built folder cannot be used; None when every program in it is the one that was built."""
    try:
        recorded: dict[str, str] = json.loads((folder / MANIFEST).read_text())
    except (OSError, ValueError):
        return "not built yet"

    def differs(item: tuple[str, str]) -> str | None:
        file = folder / item[0]
        if not file.is_file():
            return f"{file.name} is missing"
        return None if sha256(file) == item[1] else f"{file.name} is not what was built"

    with ThreadPoolExecutor() as pool:
        return next(filter(None, pool.map(differs, recorded.items())), None)


def go() -> tuple[str, str]:
    """The path of the go command and its version. Raises DevError where there is none."""
    path = shutil.which("go", path=os.environ.get("PATH", "") + ":/usr/local/go/bin:/usr/lib/go/bin")
    if path is None:
        raise DevError("Go is not installed: the cluster's programs are built from source; install Go 1.25 or newer")
    return path, run([path, "env", "GOVERSION"], what="go env", cwd=SOURCE).strip()


def ensure(group: Group) -> Path:
    """The folder with the group's programs; built if they are not there, and built anew if they are damaged."""
    go_path, go_version = go()
    folder = cache_root() / "programs" / f"{group.name}-{key_of(group.source, group.targets, go_version)}"
    if damage(folder) is not None:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # One build at a time: a second one would take half of the machine from the first, and its folder from under it.
        with (folder.parent / f"{group.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            why = damage(folder)
            if why is not None:
                _build(group, folder, go_path, why)
    return folder


def _build(group: Group, folder: Path, go_path: str, why: str) -> None:
    log = cache_root() / "programs" / f"{group.name}.log"
    log.unlink(missing_ok=True)
    say(
        f"building the {group.name} programs from source ({why}); with empty caches this takes some minutes; log: {log}"
    )
    flags = link_flags("".join((folder / "go.mod").read_text() for folder in {SOURCE: 0, group.source: 0}))
    env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false"}
    with tempfile.TemporaryDirectory(dir=log.parent, prefix=f".{group.name}-") as made:
        output = Path(made) / "bin"
        output.mkdir()
        for target in group.targets:
            name = target.rsplit("/", 1)[-1]
            with Step(f"built {name}"):
                run(
                    [go_path, "build", "-ldflags", flags, "-o", output / name, target],
                    what=f"building {name}",
                    log=log,
                    cwd=group.source,
                    env=env,
                    seconds=BUILD_SECONDS,
                )
        for name, program in group.links:
            (output / name).symlink_to(program)
        write_manifest(output)
        shutil.rmtree(folder, ignore_errors=True)
        output.rename(folder)
