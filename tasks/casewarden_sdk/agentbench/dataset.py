"""Data sets by reference: a run names one, the administrator says where it lies, the pack reads it.

``CASEWARDEN_DATASETS`` is JSON that maps names to ``{"path", "sha256"?}``: a folder, or an archive (``.tar``,
``.tar.gz``, ``.tar.xz``). In a cluster it is the catalogue's, locally ``--dataset NAME=PATH``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tarfile
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Dict, List, Mapping, Optional

from casewarden_sdk.canonical import digest_files
from casewarden_sdk.contract import JSON
from casewarden_sdk.errors import ContractError

__all__ = ["VARIABLE", "Dataset", "open_dataset"]

VARIABLE = "CASEWARDEN_DATASETS"
_FIELD = "spec.task.params.dataset"
_DIGEST_FIELD = "spec.task.params.datasetDigest"
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz")
_DIGEST = re.compile(r"(sha256:)?([0-9a-f]{64})\Z")
_ARCHIVE_BYTES = 1 << 30
_CHUNK = 1 << 20


class Dataset:
    """The files of a data set, by their POSIX paths below it; links and special files are not among them.

    Where everything lies in one folder at the top (``AgentBench/data/…``), paths are below that one.
    """

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self.path = path
        self._archived: Optional[Dict[str, bytes]] = None
        if not os.path.exists(path):
            raise ContractError(
                f"{_FIELD}: data set {name!r} lies at {path}, where nothing is; mount it, or name another"
            )
        if not os.path.isdir(path) and not path.endswith(_ARCHIVES):
            raise ContractError(
                f"{_FIELD}: data set {name!r} is {path}; give a folder, or one of {', '.join(_ARCHIVES)}"
            )

    def names(self, pattern: str = "*") -> List[str]:
        """Return the paths that match a pattern of the shell (``*`` matches ``/`` too), sorted."""
        return [name for name in self._names() if fnmatchcase(name, pattern)]

    def has(self, name: str) -> bool:
        """Tell whether there is such a file."""
        return name in self._members() if self._is_archive else os.path.isfile(self._at(name))

    def read(self, name: str) -> bytes:
        """Return a file's bytes; ``ContractError`` where there is none."""
        try:
            if self._is_archive:
                return self._members()[name]
            return Path(self._at(name)).read_bytes()
        except (KeyError, OSError):
            raise ContractError(f"{_FIELD}: data set {self.name!r} at {self.path} has no file {name!r}") from None

    def text(self, name: str) -> str:
        """Return a file's text, which must be UTF-8."""
        try:
            return self.read(name).decode("utf-8")
        except UnicodeDecodeError as error:
            raise ContractError(f"{_FIELD}: {name} of data set {self.name!r} is no UTF-8: {error}") from None

    def sha256(self) -> str:
        """Return the digest: of an archive its bytes', of a folder that of all its files, each framed by its name."""
        if self._is_archive:
            digest = hashlib.sha256()
            with open(self.path, "rb") as file:
                for chunk in iter(lambda: file.read(_CHUNK), b""):
                    digest.update(chunk)
            return digest.hexdigest()
        root = Path(self.path)
        return digest_files((name, (root / name).read_bytes()) for name in _files_below(root))

    def check(self, wanted: str, field: str = _DIGEST_FIELD) -> None:
        """Require a digest, 64 hexadecimal characters with or without ``sha256:`` before them."""
        match = _DIGEST.match(wanted)
        if match is None:
            raise ContractError(f"{field}: {wanted!r} is no digest; give sha256: and 64 hexadecimal characters")
        found = self.sha256()
        if found != match.group(2):
            raise ContractError(
                f"{field}: data set {self.name!r} at {self.path} has the digest sha256:{found}, "
                f"and sha256:{match.group(2)} is wanted; mount the right data, or correct the digest"
            )

    @property
    def _is_archive(self) -> bool:
        return not os.path.isdir(self.path)

    def _at(self, name: str) -> str:
        parts = name.split("/")
        if name.startswith("/") or ".." in parts:
            raise ContractError(f"{_FIELD}: {name!r} is no path below the data set")
        return os.path.join(self._top(), *parts)

    def _top(self) -> str:
        inside = sorted(name for name in os.listdir(self.path) if not name.startswith(".."))
        alone = os.path.join(self.path, inside[0]) if len(inside) == 1 else ""
        return alone if alone and os.path.isdir(alone) and inside[0] not in _KEPT_FOLDERS else self.path

    def _names(self) -> List[str]:
        return sorted(self._members()) if self._is_archive else _files_below(Path(self._top()))

    def _members(self) -> Dict[str, bytes]:
        if self._archived is None:
            self._archived = _below_one_folder(self._unpacked())
        return self._archived

    def _unpacked(self) -> Dict[str, bytes]:
        members: Dict[str, bytes] = {}
        size = 0
        try:
            with tarfile.open(self.path, "r:*") as archive:
                for member in archive:
                    if not member.isreg():
                        continue
                    size += member.size
                    if size > _ARCHIVE_BYTES:
                        raise ContractError(
                            f"{_FIELD}: {self.path} unpacks to over {_ARCHIVE_BYTES >> 20} MiB; unpack it"
                        )
                    file = archive.extractfile(member)
                    members[os.path.normpath(member.name)] = b"" if file is None else file.read()
        except ContractError:
            raise
        except Exception as error:  # each of the compressions has errors of its own
            raise ContractError(f"{_FIELD}: {self.path} is no whole archive: {error}") from None
        return members


# A data set may consist of one folder that its paths start with.
_KEPT_FOLDERS = ("data", "configs", "src")


def open_dataset(
    params: Mapping[str, JSON], variables: Optional[Mapping[str, str]] = None, key: str = "dataset"
) -> Optional[Dataset]:
    """Return the data set that ``params[key]`` names, its digest checked; None where the run names none.

    The digest is the catalogue's, and the run's own where it has ``<key>Digest``. ``ContractError`` names the field of
    the run for a data set that is not there, is not what it should be, or cannot be read.
    """
    name = params.get(key)
    if name is None:
        return None
    if not isinstance(name, str) or not name:
        raise ContractError(f"spec.task.params.{key}: {name!r} is no name of a data set; give one as a text")
    known = json.loads((os.environ if variables is None else variables).get(VARIABLE) or "{}")
    if name not in known:
        there = ", ".join(sorted(known)) or "none"
        raise ContractError(
            f"spec.task.params.{key}: there is no data set {name!r} (there are: {there}); the administrator adds it to "
            "the task's datasets in the chart's values, a local run gives --dataset NAME=PATH"
        )
    place = known[name]
    found = Dataset(name, place["path"])
    for wanted, field in (
        (place.get("sha256"), f"spec.task.params.{key}"),
        (params.get(f"{key}Digest"), f"spec.task.params.{key}Digest"),
    ):
        if wanted is not None:
            found.check(str(wanted), field)
    return found


def _below_one_folder(members: Dict[str, bytes]) -> Dict[str, bytes]:
    tops = {name.split("/", 1)[0] for name in members}
    if len(tops) != 1 or any("/" not in name for name in members) or tops & set(_KEPT_FOLDERS):
        return members
    return {name.split("/", 1)[1]: data for name, data in members.items()}


def _files_below(root: Path) -> List[str]:
    found = []
    # Sorted as texts, wherever it is read: the order in which a file system lists is its own.
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not os.path.islink(os.path.join(folder, name))]
        # A ConfigMap or Secret as a volume is links into a hidden folder, which is to be seen as its files.
        folders[:] = [name for name in folders if not name.startswith("..")]
        for name in files:
            path = os.path.join(folder, name)
            if not name.startswith("..") and stat.S_ISREG(os.stat(path).st_mode):
                found.append(os.path.relpath(path, root).replace(os.sep, "/"))
    return sorted(found)
