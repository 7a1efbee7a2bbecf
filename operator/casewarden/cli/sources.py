"""The files of a run, wherever they are: a folder on this machine or a run of the cluster."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Protocol

from casewarden.cli.failure import Failure
from casewarden.cli.relay import RelayReader
from casewarden.core.agentbench import FILES as OWN_FILES
from casewarden.core.evidence import AUDIT, META, MUTANTS, PLAN, RUN, RUN_FILES, EvidenceKey, parse_evidence_key
from casewarden.core.model import CaseKey

__all__ = ["FolderFiles", "RelayFiles", "RunFiles", "audit_name", "find_folder", "list_files", "parse_object"]


class RunFiles(Protocol):
    """A run's files by their path below it."""

    async def read(self, path: str) -> bytes | None:
        """Return a file, or None."""

    async def paths(self) -> list[str]:
        """Return the path of every file that there is."""

    async def index(self) -> list[tuple[EvidenceKey, dict[str, Any] | None]]:
        """Return what there is of the run's cases, each seal with its content; all of it at once."""


class FolderFiles:
    """A run in a folder: of a local run, of a store, of an export."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def read(self, path: str) -> bytes | None:
        """Return a file, or None; nothing outside the folder, and no link, is ever read."""
        return await asyncio.to_thread(self._read, path)

    def _read(self, path: str) -> bytes | None:
        full = self.folder / path
        if full.is_symlink() or not full.resolve().is_relative_to(self.folder.resolve()):
            raise Failure(f"{full}: is a link out of the run's folder; a run has no links")
        try:
            return full.read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise Failure(f"{full}: {error.strerror}") from None

    async def paths(self) -> list[str]:
        """Return the path of every file that there is."""
        return await asyncio.to_thread(list_files, self.folder)

    async def index(self) -> list[tuple[EvidenceKey, dict[str, Any] | None]]:
        """Return what there is of the run's cases, each seal with its content."""
        found: list[tuple[EvidenceKey, dict[str, Any] | None]] = []
        for path in await self.paths():
            key = parse_evidence_key(path)
            if key is not None:
                found.append((key, parse_object(await self.read(path), path) if key.kind == "sealed" else None))
        return found


class RelayFiles:
    """A run whose evidence the relay has."""

    def __init__(self, relay: RelayReader, run_uid: str) -> None:
        self._relay = relay
        self._run_uid = run_uid

    async def read(self, path: str) -> bytes | None:
        """Return a file, or None."""
        return await self._relay.file(self._run_uid, path)

    async def paths(self) -> list[str]:
        """Return the path of every file of a case, and the run's own that a run can have."""
        if await self._relay.file(self._run_uid, AUDIT) is not None:
            return [AUDIT, META, PLAN, MUTANTS]
        return [*RUN_FILES, *OWN_FILES, *(key.path() for key, _ in await self.index())]

    async def index(self) -> list[tuple[EvidenceKey, dict[str, Any] | None]]:
        """Return what there is of the run's cases, each seal with its content."""
        found: list[tuple[EvidenceKey, dict[str, Any] | None]] = []
        for line in await self._relay.index(self._run_uid):
            case, is_seal = CaseKey(line["seed"], line["case_id"], line["repeat"]), line["kind"] == "sealed"
            key = EvidenceKey(case, line["kind"], None if is_seal else line["attempt"])
            found.append((key, line["sealed"] if is_seal else None))
        return found


def list_files(folder: Path) -> list[str]:
    """Return the path of every file and link below a folder, relative to it."""
    found = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    return sorted(path.relative_to(folder).as_posix() for path in found)


def audit_name(target: str) -> str | None:
    """Return the name of the audit that ``ar/NAME`` names, None where ``target`` is something else."""
    kind, _, name = target.partition("/")
    return name if kind in ("ar", "auditrun", "auditruns") and name and not Path(target).exists() else None


def find_folder(target: str) -> Path | None:
    """Return the folder of a run that ``target`` names: one with ``run.json``, or one that holds a single such folder.

    None where ``target`` is no path of this machine; then it is the name of a run.
    """
    folder = Path(target)
    if not folder.is_dir():
        if "/" in target or target.startswith("."):
            raise Failure(f"{target}: no such folder")
        return None
    if (folder / "meta.json").is_file() or (folder / RUN).is_file():
        return folder
    below = sorted(path.parent for path in [*folder.glob("*/meta.json"), *folder.glob("runs/*/meta.json")])
    if len(below) == 1:
        return below[0]
    if len(below) > 1:
        raise Failure(f"{target}: holds {len(below)} runs; give one of them, such as {below[0]}")
    if "/" in target or target.startswith("."):
        raise Failure(f"{target}: is no run's folder; it has neither meta.json nor run.json")
    return None


def parse_object(data: bytes | None, what: str) -> dict[str, Any]:
    """Parse a JSON object of a run; a ``Failure`` where it is missing or none."""
    try:
        value = json.loads(data or b"null")
    except (ValueError, RecursionError) as error:
        raise Failure(f"{what}: is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise Failure(f"{what}: is missing or no JSON object")
    return value
