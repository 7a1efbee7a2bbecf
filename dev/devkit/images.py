"""The project's images: what each is made of, and making those whose contents have changed.

An image is built from a folder that holds exactly what it is made of, so the hash of that folder is the hash of the
image's sources: where it is unchanged, nothing is built. Docker builds them where it is the engine, buildah elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from devkit import programs
from devkit.errors import DevError
from devkit.settings import REPOSITORY, cache_root
from devkit.shell import run

TAG = "dev"
DEBIAN = "bookworm"
PYTHON = "3.11"
"""The Python of that Debian: the one that the locked dependencies are chosen for."""
EPOCH = 946684800  # 2000-01-01: the time of every file in an image
LEFT_OUT = ("__pycache__", "*.pyc", ".mypy_cache", ".ruff_cache", "README.md")


@dataclass(frozen=True)
class Image:
    """An image of this repository: the folder `images/<name>` and what is added to it."""

    name: str
    base: str | None = None
    """The image that it stands on, given to its Containerfile as BASE_IMAGE."""
    sources: tuple[str, ...] = ()
    """Files and folders of the repository, under the same path in the build's folder."""
    prepare: Callable[[Path], None] | None = None
    """Makes what is not in the repository, into the build's folder."""
    upstream: str | None = None
    """What stands in for it where images can be pulled; it is then not built."""

    @property
    def tag(self) -> str:
        return f"casewarden-{self.name}:{TAG}"

    @property
    def reference(self) -> str:
        """The full name under which a node looks for `tag`."""
        return f"docker.io/library/{self.tag}"


def go_build(source: Path, output: Path) -> None:
    """A static program, from a folder that may be a module of its own."""
    go_path, _ = programs.go()
    env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-trimpath -buildvcs=false"}
    target = "." if (source / "go.mod").exists() else "main.go"
    run(
        [go_path, "build", "-ldflags", "-s -w", "-o", output, target],
        what=f"building {source.name}",
        cwd=source,
        env=env,
        seconds=900,
    )


def _pause(folder: Path) -> None:
    go_build(REPOSITORY / "images" / "pause", folder / "pause")


def _coredns(folder: Path) -> None:
    shutil.copy2(programs.ensure(programs.CLUSTER) / "coredns", folder / "coredns")


def _base(folder: Path) -> None:
    """A small Debian with apt in it. It is made once and then kept: see `base_archive`."""
    archive = base_archive()
    try:
        os.link(archive, folder / "base.tar")
    except OSError:  # the cache is on another file system
        shutil.copy2(archive, folder / "base.tar")


def base_archive() -> Path:
    """A Debian root as a tar archive, made from the distribution's packages; kept until the cache is cleared."""
    archive = cache_root() / "images" / f"debian-{DEBIAN}.tar"
    if not archive.exists():
        log = archive.with_suffix(".log")
        log.parent.mkdir(parents=True, exist_ok=True)
        log.unlink(missing_ok=True)
        temporary = archive.with_name(f".{os.getpid()}-{archive.name}")
        excluded = [
            f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in ("doc", "man", "info", "locale", "lintian")
        ]
        run(
            ["mmdebstrap", "--variant=minbase", "--mode=root", *excluded, DEBIAN, temporary],
            what=f"Debian {DEBIAN} from its packages",
            log=log,
            seconds=900,
        )
        temporary.rename(archive)
    return archive


UV = REPOSITORY / "dev" / "uv"


def _locked(folder: Path, *selection: str) -> None:
    """The packages of uv.lock that `selection` names, by their hashes, as `site/` in the build's folder."""
    requirements = folder / "requirements.txt"
    exported = run(
        [UV, "export", "--frozen", "--no-dev", "--no-emit-workspace", "--no-header", "--no-annotate", *selection],
        what="reading uv.lock",
        cwd=REPOSITORY,
    )
    requirements.write_text(exported)


FROM_SOURCE = frozenset({"fast-downward-textworld", "jericho"})
"""What is on the index as source alone, and is compiled here: by a compiler of C++ with CMake."""


def _names_in(requirements: Path) -> set[str]:
    lines = (line.split("==")[0].strip() for line in requirements.read_text().splitlines() if "==" in line)
    return {name.split("[")[0] for name in lines if name and not name.startswith(("-", "#"))}


def _install_locked(folder: Path) -> None:
    """Fill `site/` from the build folder's requirements."""
    requirements, site = folder / "requirements.txt", folder / "site"
    machine = {"arm64": "aarch64", "amd64": "x86_64"}.get(platform.machine(), platform.machine())
    run(
        [
            *(UV, "pip", "install", "--quiet", "--link-mode", "copy", "--require-hashes", "--no-deps"),
            *("--python-version", PYTHON, "--python-platform", f"{machine}-manylinux_2_28"),
            *(word for name in _names_in(requirements) - FROM_SOURCE for word in ("--only-binary", name)),
            *("--target", site, "-r", requirements),
        ],
        what="installing the locked packages",
        cwd=REPOSITORY,
    )
    shutil.rmtree(site / "bin", ignore_errors=True)
    (site / ".lock").unlink(missing_ok=True)


def _shim(folder: Path) -> None:
    go_build(REPOSITORY / "images" / "shim", folder / "shim")


def _evidence(folder: Path) -> None:
    _locked(folder, "--prune", "pydantic", "--extra", "gateway")  # the recorder does without it
    _shim(folder)


def _tasks(folder: Path) -> None:
    _locked(folder, "--prune", "pydantic", "--prune", "zstandard", "--extra", "packs")  # the packs do without them


def _operator(folder: Path) -> None:
    _locked(folder, "--extra", "operator", "--extra", "cli")


def _trial(folder: Path) -> None:
    _locked(folder, "--only-group", "agents")
    shutil.copy2(programs.ensure(programs.S3) / "versitygw", folder / "versitygw")


def _kueue(folder: Path) -> None:
    shutil.copy2(programs.ensure(programs.KUEUE) / "kueue", folder / "kueue")


SDK = "tasks/casewarden_sdk"
IMAGES: dict[str, Image] = {
    image.name: image
    for image in (
        Image("base", prepare=_base, upstream=f"docker.io/library/debian:{DEBIAN}-slim"),
        Image("pause", prepare=_pause),
        Image("coredns", prepare=_coredns),
        Image("python", base="base"),
        Image(
            "evidence",
            base="python",
            sources=("operator/casewarden/__init__.py", "operator/casewarden/casepod", SDK),
            prepare=_evidence,
        ),
        Image("tasks", base="python", sources=(SDK, "tasks/casewarden_tasks"), prepare=_tasks),
        Image("mariadb", base="base"),
        Image("os-default", base="base"),
        Image("os-packages", base="os-default"),
        Image("os-ubuntu", base="base"),
        Image("operator", base="python", sources=("operator/casewarden", SDK), prepare=_operator),
        Image("trial", base="python", prepare=_trial),
        Image("kueue", prepare=_kueue),
    )
}
CLUSTER_ONLY = ("pause", "coredns")
"""Those that only a cluster made from source needs."""
PRODUCT = ("python", "evidence", "tasks", "mariadb", "os-default", "operator")


def chosen(names: Iterable[str]) -> list[Image]:
    """The named images and those that they stand on, bases first. Raises DevError for a name that is none."""
    ordered: dict[str, Image] = {}

    def add(name: str) -> None:
        image = IMAGES.get(name.removeprefix("docker.io/library/").removeprefix("casewarden-").removesuffix(f":{TAG}"))
        if image is None:
            raise DevError(f"no image {name!r}: it is one of {', '.join(IMAGES)}")
        if image.base is not None:
            add(image.base)
        ordered[image.name] = image

    for name in names:
        add(name)
    return list(ordered.values())


def folder_digest(folder: Path) -> str:
    """A hash over the names, modes and contents below a folder."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        relative = file.relative_to(folder).as_posix().encode()
        if file.is_symlink():
            content, mode = os.readlink(file).encode(), 0o777
        elif file.is_file():
            content, mode = file.read_bytes(), file.stat().st_mode & 0o111
        else:
            continue
        digest.update(b"%d %s %o %d\n" % (len(relative), relative, mode, len(content)) + content)
    return digest.hexdigest()


def stage(image: Image) -> Path:
    """Lay out what the image is made of, afresh; the folder."""
    folder = REPOSITORY / "build" / "images" / image.name
    shutil.rmtree(folder, ignore_errors=True)
    ignored = shutil.ignore_patterns(*LEFT_OUT)
    shutil.copytree(REPOSITORY / "images" / image.name, folder, ignore=ignored)
    for source in image.sources:
        origin, target = REPOSITORY / source, folder / source
        target.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, target, ignore=ignored)
        else:
            shutil.copy2(origin, target)
    if image.prepare is not None:
        image.prepare(folder)
    return folder


def complete(folder: Path) -> None:
    """Add to a staged folder what its hash need not cover, since it follows from what is in it."""
    if (folder / "requirements.txt").exists():
        _install_locked(folder)
    # Layers are found again by their content, times included.
    for path in [folder, *folder.rglob("*")]:
        os.utime(path, (EPOCH, EPOCH), follow_symlinks=False)


def key(image: Image, folder: Path, base_key: str, engine: str) -> str:
    """What an image's build is known by: its sources, its base and who builds it."""
    words = [image.name, folder_digest(folder), base_key, engine, platform.machine()]
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()[:16]
