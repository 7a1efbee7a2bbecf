from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from devkit.engines import Buildah
from devkit.images import IMAGES
from devkit.node_images import archive

NAME = "docker.io/library/some:dev"


class Layout:
    """An OCI layout of one image with two layers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "blobs" / "sha256"
        self.folder.mkdir(parents=True)
        self.layers = [self.put(b"base"), self.put(b"code")]
        self.config = self.put(b"{}")
        parts = {"config": {"digest": self.config}, "layers": [{"digest": layer} for layer in self.layers]}
        self.manifest = self.put(json.dumps(parts).encode())
        entry = {"digest": self.manifest, "annotations": {"org.opencontainers.image.ref.name": NAME}}
        (folder / "index.json").write_text(json.dumps({"manifests": [entry]}))

    def put(self, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        (self.folder / digest).write_bytes(content)
        return f"sha256:{digest}"


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path)


@pytest.fixture
def engine(tmp_path: Path, layout: Layout) -> Buildah:
    made = object.__new__(Buildah)
    made.layout = tmp_path
    made.command = ["true"]
    return made


def sent(engine: Buildah, manifest: str, known: set[str]) -> dict[str, bytes]:
    buffer = io.BytesIO()
    archive(buffer, engine, {NAME: manifest}, known)
    buffer.seek(0)
    with tarfile.open(fileobj=buffer) as tar:
        return {entry.name: tar.extractfile(entry).read() for entry in tar}  # type: ignore[union-attr]


def path(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def test_a_node_without_the_image_is_sent_all_of_it(engine: Buildah, layout: Layout) -> None:
    files = sent(engine, layout.manifest, set())
    assert {path(digest) for digest in [layout.manifest, layout.config, *layout.layers]} < files.keys()


def test_a_node_is_not_sent_the_layers_that_it_has(engine: Buildah, layout: Layout) -> None:
    files = sent(engine, layout.manifest, {layout.layers[0], layout.config, layout.manifest})
    assert path(layout.layers[0]) not in files
    assert path(layout.layers[1]) in files
    assert path(layout.manifest) in files


def test_the_archive_tells_the_name_under_which_nodes_look_for_it(engine: Buildah, layout: Layout) -> None:
    (entry,) = json.loads(sent(engine, layout.manifest, set())["index.json"])["manifests"]
    assert entry["digest"] == layout.manifest
    assert entry["annotations"]["io.containerd.image.name"] == NAME


def test_the_newest_build_of_a_name_counts(engine: Buildah, layout: Layout) -> None:
    assert engine.manifest(NAME) == layout.manifest
    assert engine.manifest("docker.io/library/other:dev") is None


def test_an_image_that_has_lost_a_layer_is_not_there(engine: Buildah, layout: Layout, tmp_path: Path) -> None:
    image = IMAGES["python"]
    index = json.loads((tmp_path / "index.json").read_text())
    index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"] = image.reference
    (tmp_path / "index.json").write_text(json.dumps(index))
    assert engine.has(image, layout.manifest)
    engine.blob(layout.layers[1]).unlink()
    assert not engine.has(image, layout.manifest)


def test_what_a_newer_build_has_replaced_is_removed_from_the_layout(engine: Buildah, layout: Layout) -> None:
    old = layout.put(b"an old layer")
    engine.drop_unused()
    assert not engine.blob(old).exists()
    assert all(engine.blob(digest).exists() for digest in engine.blobs(layout.manifest))
