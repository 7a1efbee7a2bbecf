"""A candidate's folder: what of it counts, its digest, and its way into a case pod.

Walking, packing and unpacking refuse the same things, so that a folder, its archive and what a pod unpacks have one
digest: links, special files, names that leave the folder, more than ``MAX_FILES`` or ``MAX_BYTES``, and nothing at all.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tarfile
from pathlib import Path
from typing import Callable, Dict, Iterable, List, NamedTuple, Tuple

__all__ = [
    "IGNORED",
    "MAX_BYTES",
    "MAX_FILES",
    "WorkspaceError",
    "WorkspaceFile",
    "digest_workspace",
    "pack_workspace",
    "read_workspace",
    "unpack_workspace",
    "workspace_of",
    "write_workspace",
]

MAX_BYTES = 10 << 20
MAX_FILES = 1000
IGNORED = frozenset({".git", ".venv", "__pycache__"})
_MAX_NAME_BYTES = 4096
# Headers and padding of a tar archive, generously; an archive that unpacks to more is refused while it is read.
_MAX_ARCHIVE_BYTES = MAX_BYTES + MAX_FILES * (2 * _MAX_NAME_BYTES + 4096)

Compressor = Callable[[bytes], bytes]
Decompressor = Callable[[bytes, int], bytes]


class WorkspaceError(ValueError):
    """A workspace holds what it may not; the message names the file and the cure."""


class WorkspaceFile(NamedTuple):
    """One file: its POSIX path inside the folder, its mode (0755 or 0644) and its bytes."""

    name: str
    mode: int
    data: bytes


def read_workspace(folder: Path) -> List[WorkspaceFile]:
    """Read a folder, sorted by POSIX path; ``WorkspaceError`` for what may not be in it."""
    if not folder.is_dir():
        raise WorkspaceError(f"{folder}: no such folder; give the folder that holds the program")
    files: List[WorkspaceFile] = []
    total = 0
    for path in _walk(folder, ""):
        full = folder / path
        facts = full.lstat()
        if not stat.S_ISREG(facts.st_mode):
            kind = "a link" if stat.S_ISLNK(facts.st_mode) else "no regular file"
            raise WorkspaceError(f"{path}: is {kind}; replace it by a copy of the file or remove it")
        total += facts.st_size
        _check_size(len(files) + 1, total)
        files.append(WorkspaceFile(path, _mode(facts.st_mode), full.read_bytes()))
    return _checked(files)


def workspace_of(texts: Iterable[Tuple[str, bytes]]) -> List[WorkspaceFile]:
    """Make the workspace of flat names and contents (a ConfigMap, a control), none executable."""
    return _checked([WorkspaceFile(name, 0o644, data) for name, data in texts])


def digest_workspace(files: Iterable[WorkspaceFile]) -> str:
    """Return the SHA-256 over names, modes and contents, each framed by its length, sorted by name."""
    digest = hashlib.sha256()
    for file in sorted(files, key=_order):
        name = file.name.encode("utf-8")
        digest.update(len(name).to_bytes(8, "big") + name)
        digest.update(file.mode.to_bytes(2, "big"))
        digest.update(len(file.data).to_bytes(8, "big") + file.data)
    return digest.hexdigest()


def pack_workspace(files: Iterable[WorkspaceFile], compress: Compressor) -> bytes:
    """Return the compressed tar archive; equal files give equal bytes for one compressor."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for file in sorted(files, key=_order):
            entry = tarfile.TarInfo(file.name)
            entry.size, entry.mode = len(file.data), file.mode
            archive.addfile(entry, io.BytesIO(file.data))
    return compress(buffer.getvalue())


def unpack_workspace(data: bytes, decompress: Decompressor) -> List[WorkspaceFile]:
    """Read an archive of ``pack_workspace``; ``WorkspaceError`` for anything else.

    ``decompress`` gets the bytes and the largest size that it may return, and raises ``ValueError`` beyond it.
    """
    try:
        raw = decompress(data, _MAX_ARCHIVE_BYTES)
    except ValueError as error:
        raise WorkspaceError(f"the archive cannot be decompressed: {error}") from None
    files: List[WorkspaceFile] = []
    total = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(raw), mode="r:") as archive:
            for entry in archive:
                if not entry.isreg():
                    raise WorkspaceError(f"{entry.name}: is no regular file; pack files only")
                total += entry.size
                _check_size(len(files) + 1, total)
                content = archive.extractfile(entry)
                files.append(WorkspaceFile(entry.name, _mode(entry.mode), content.read() if content else b""))
    except (tarfile.TarError, UnicodeError, OSError) as error:
        raise WorkspaceError(f"the archive is no tar archive: {error}") from None
    return _checked(files)


def write_workspace(files: Iterable[WorkspaceFile], folder: Path) -> None:
    """Write files below ``folder``, which must be empty, readable by every user."""
    for file in files:
        target = folder / file.name
        for parent in reversed(target.relative_to(folder).parents[:-1]):
            (folder / parent).mkdir(exist_ok=True)
            (folder / parent).chmod(0o755)
        target.write_bytes(file.data)
        target.chmod(file.mode)


def _walk(folder: Path, prefix: str) -> Iterable[str]:
    for entry in os.scandir(folder):
        if entry.name in IGNORED:
            continue
        name = prefix + entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(folder / entry.name, name + "/")
        else:
            yield name


def _mode(mode: int) -> int:
    return 0o755 if mode & 0o111 else 0o644


def _order(file: WorkspaceFile) -> bytes:
    return file.name.encode("utf-8", "surrogateescape")


def _check_size(count: int, total: int) -> None:
    if count > MAX_FILES or total > MAX_BYTES:
        raise WorkspaceError(
            f"the workspace is over {MAX_FILES} files or {MAX_BYTES >> 20} MiB; put what it needs into the image"
        )


def _checked(files: List[WorkspaceFile]) -> List[WorkspaceFile]:
    seen: Dict[str, None] = {}
    _check_size(len(files), sum(len(file.data) for file in files))
    for file in files:
        _check_name(file.name)
        if file.name in seen:
            raise WorkspaceError(f"{file.name}: is there twice; keep one")
        seen[file.name] = None
    for name in seen:
        parts = name.split("/")
        for depth in range(1, len(parts)):
            if "/".join(parts[:depth]) in seen:
                raise WorkspaceError(f"{name}: lies below a file; rename one of the two")
    if not files:
        raise WorkspaceError("the workspace has no file; give at least one")
    return sorted(files, key=_order)


def _check_name(name: str) -> None:
    try:
        size = len(name.encode("utf-8"))
    except UnicodeError:
        raise WorkspaceError(f"{name!r}: the name is not UTF-8; rename the file") from None
    parts = name.split("/")
    if size > _MAX_NAME_BYTES or "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise WorkspaceError(f"{name!r}: is no plain path inside the folder; rename the file")
    if IGNORED.intersection(parts):
        raise WorkspaceError(f"{name!r}: {', '.join(sorted(IGNORED))} are never part of a workspace; leave it out")
