"""Who builds and keeps images: Docker where its daemon answers, else buildah."""

from __future__ import annotations

import json
import os
import shutil
from abc import ABC, abstractmethod
from pathlib import Path

from devkit import debian
from devkit.errors import DevError
from devkit.images import Image
from devkit.settings import cache_root
from devkit.shell import run, succeeds

BUILD_SECONDS = 1800
CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")


class Engine(ABC):
    name: str

    @abstractmethod
    def build(self, image: Image, folder: Path, base: str | None, log: Path) -> str:
        """Build from a staged folder; the digest of the image."""

    @abstractmethod
    def has(self, image: Image, digest: str) -> bool:
        """Whether that very build is still there."""

    @abstractmethod
    def push(self, image: Image, target: str) -> None:
        """Copy an image to a registry."""

    @abstractmethod
    def name_of(self, image: Image) -> str:
        """How a Containerfile built by this engine calls the image."""

    def pulls(self, image: Image) -> bool:
        """Whether the image need not be built, since another is pulled in its place."""
        return False


class Docker(Engine):
    name = "docker"

    def build(self, image: Image, folder: Path, base: str | None, log: Path) -> str:
        arguments = [] if base is None else ["--build-arg", f"BASE_IMAGE={base}"]
        file = ["-f", str(folder / "Containerfile")]
        argv = ["docker", "build", *arguments, *file, "-t", image.tag, str(folder)]
        run(argv, what=f"building {image.tag}", log=log, seconds=BUILD_SECONDS)
        return self._digest(image)

    def _digest(self, image: Image) -> str:
        return run(["docker", "image", "inspect", "-f", "{{.Id}}", image.tag], what=f"looking at {image.tag}").strip()

    def has(self, image: Image, digest: str) -> bool:
        try:
            return self._digest(image) == digest
        except DevError:
            return False

    def push(self, image: Image, target: str) -> None:
        run(["docker", "tag", image.tag, target], what=f"tagging {target}")
        run(["docker", "push", target], what=f"pushing {target}", seconds=BUILD_SECONDS)

    def name_of(self, image: Image) -> str:
        return image.upstream or image.tag

    def pulls(self, image: Image) -> bool:
        return image.upstream is not None


class Buildah(Engine):
    """buildah without a daemon, its storage in our cache; every build is also put into an OCI layout.

    The layout holds each layer once, as it is on the disk, which is what a node's image store is filled from.
    """

    name = "buildah"

    def __init__(self) -> None:
        debian.require(debian.IMAGES)
        if os.geteuid() != 0:
            raise DevError("building images without Docker needs root: run it as root, or start Docker")
        self.folder = cache_root() / "images"
        self.layout = self.folder / "layout"
        storage = self.folder / "storage"
        storage.mkdir(parents=True, exist_ok=True)
        driver = os.environ.get("STORAGE_DRIVER", "overlay")
        self.command = ["buildah", "--root", storage, "--runroot", self.folder / "run", "--storage-driver", driver]

    def build(self, image: Image, folder: Path, base: str | None, log: Path) -> str:
        arguments = [] if base is None else ["--build-arg", f"BASE_IMAGE={base}"]
        # A package proxy's certificate has to be known inside, too.
        trusted = ["-v", f"{CA_BUNDLE}:{CA_BUNDLE}:ro"] if CA_BUNDLE.exists() else []
        run(
            [
                *(*self.command, "build", "--isolation", "chroot", "--layers", "--pull-never", "--network", "host"),
                *(*arguments, *trusted, "-f", folder / "Containerfile", "-t", image.reference, folder),
            ],
            what=f"building {image.tag}",
            log=log,
            seconds=BUILD_SECONDS,
        )
        run(
            [*self.command, "push", "--disable-compression", image.reference, f"oci:{self.layout}:{image.reference}"],
            what=f"keeping {image.tag}",
            log=log,
        )
        self.drop_unused()
        return self.manifest(image.reference) or ""

    def manifest(self, reference: str) -> str | None:
        """The digest of an image's manifest in the layout."""
        found = [entry for entry in self._index() if _reference_of(entry) == reference]
        return str(found[-1]["digest"]) if found else None

    def _index(self) -> list[dict[str, object]]:
        try:
            entries: list[dict[str, object]] = json.loads((self.layout / "index.json").read_text())["manifests"]
        except (OSError, ValueError, KeyError):
            return []
        return entries

    def blob(self, digest: object) -> Path:
        kind, _, value = str(digest).partition(":")
        return self.layout / "blobs" / kind / value

    def blobs(self, manifest: str) -> list[str]:
        """The digests of all that an image consists of, its manifest first."""
        content = json.loads(self.blob(manifest).read_text())
        return [manifest, content["config"]["digest"], *(layer["digest"] for layer in content["layers"])]

    def has(self, image: Image, digest: str) -> bool:
        return self.manifest(image.reference) == digest and all(self.blob(x).exists() for x in self.blobs(digest))

    def name_of(self, image: Image) -> str:
        return image.reference

    def push(self, image: Image, target: str) -> None:
        run(
            [*self.command, "push", image.reference, f"docker://{target}"],
            what=f"pushing {target}",
            seconds=BUILD_SECONDS,
        )

    def drop_unused(self) -> None:
        """Remove from the layout, and from buildah's storage, what a newer build has replaced."""
        used = {digest for entry in self._index() for digest in self.blobs(str(entry["digest"]))}
        for file in (self.layout / "blobs" / "sha256").iterdir():
            if f"sha256:{file.name}" not in used:
                file.unlink()
        succeeds([*map(str, self.command), "rmi", "--prune"], seconds=120)


def _reference_of(entry: dict[str, object]) -> object:
    annotations = entry.get("annotations")
    return annotations.get("org.opencontainers.image.ref.name") if isinstance(annotations, dict) else None


def docker_answers() -> bool:
    return shutil.which("docker") is not None and succeeds(["docker", "info"], seconds=10)


def choose(wanted: str | None = None) -> Engine:
    """The engine that IMAGE_ENGINE names, else Docker where it answers, else buildah."""
    wanted = wanted or os.environ.get("IMAGE_ENGINE") or "auto"
    if wanted not in {"auto", "docker", "buildah"}:
        raise DevError(f"IMAGE_ENGINE={wanted!r}: it is auto, docker or buildah")
    if wanted == "docker" or (wanted == "auto" and docker_answers()):
        return Docker()
    return Buildah()
