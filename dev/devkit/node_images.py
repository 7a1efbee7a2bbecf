"""Filling a node's image store from the images built here, sending only what it lacks."""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from devkit.engines import Buildah
from devkit.errors import DevError
from devkit.settings import Cluster
from devkit.shell import run

IMPORT_SECONDS = 300


def _ctr(cluster: Cluster) -> list[str]:
    return ["ctr", "--address", str(cluster.containerd_socket), "--namespace", "k8s.io"]


def present(cluster: Cluster) -> dict[str, str]:
    """The images that the node has: name to digest of the manifest."""
    rows = run([*_ctr(cluster), "images", "list"], what="the node's images", seconds=60).splitlines()[1:]
    return {fields[0]: fields[2] for row in rows if len(fields := row.split()) >= 3}


def archive(output: IO[bytes], engine: Buildah, wanted: dict[str, str], known: set[str]) -> None:
    """Write an OCI archive of the images (name to manifest), without the contents that are known already."""
    with tarfile.open(fileobj=output, mode="w|") as tar:

        def add(name: str, content: bytes) -> None:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))

        add("oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        sent: set[str] = set()
        for digest in (blob for manifest in wanted.values() for blob in engine.blobs(manifest)):
            # Manifests go each time: the import reads an image's parts from them.
            if digest in sent or (digest in known and digest not in wanted.values()):
                continue
            sent.add(digest)
            file = engine.blob(digest)
            entry = tarfile.TarInfo(f"blobs/{digest.replace(':', '/')}")
            entry.size = file.stat().st_size
            with file.open("rb") as content:
                tar.addfile(entry, content)
        entries = [
            {
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "digest": manifest,
                "size": engine.blob(manifest).stat().st_size,
                "annotations": {"io.containerd.image.name": name},
            }
            for name, manifest in wanted.items()
        ]
        add("index.json", json.dumps({"schemaVersion": 2, "manifests": entries}).encode())


def load(cluster: Cluster, engine: Buildah, images: dict[str, str]) -> list[str]:
    """Bring the node's images (name to manifest) up to date; the names of those that it did not have."""
    there = present(cluster)
    wanted = {name: digest for name, digest in images.items() if there.get(name) != digest}
    if not wanted:
        return []
    known = set(run([*_ctr(cluster), "content", "list", "--quiet"], what="the node's contents", seconds=60).split())
    _import(cluster, lambda pipe: archive(pipe, engine, wanted, known))
    return list(wanted)


def load_file(cluster: Cluster, file: Path) -> None:
    """Load an image archive (OCI or Docker's) from a file."""
    run(
        [*_ctr(cluster), "images", "import", "--digests", str(file)],
        what=f"loading {file}",
        seconds=IMPORT_SECONDS,
    )


def _import(cluster: Cluster, write: Callable[[IO[bytes]], None]) -> None:
    with subprocess.Popen(
        [*_ctr(cluster), "images", "import", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            write(process.stdin)
            process.stdin.close()
        except BrokenPipeError:
            pass
        said = process.stderr.read().decode(errors="replace")
        try:
            code = process.wait(IMPORT_SECONDS)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise DevError(f"loading images: not done after {IMPORT_SECONDS} s") from error
    if code != 0:
        raise DevError(f"loading images: ctr exited {code}\n    {said[-2000:]}")
