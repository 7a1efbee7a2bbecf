"""Stores by address. A new one is a file here, a line in ``open_store`` and a line in the contract suite."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from casewarden.adapters.stores.folder import FolderStore
from casewarden.adapters.stores.memory import MemoryStore
from casewarden.ports.store import Store

__all__ = ["FolderStore", "MemoryStore", "open_store"]


def open_store(address: str) -> Store:
    """Open ``file:///path``, ``s3://bucket/prefix`` or ``memory:``; ``ValueError`` says what is wrong with another."""
    parts = urlsplit(address)
    if parts.scheme == "memory":
        return MemoryStore()
    if parts.scheme == "file":
        if parts.netloc or not parts.path.startswith("/"):
            raise ValueError(f"store {address!r}: give an absolute path, as in file:///var/lib/casewarden")
        return FolderStore(Path(unquote(parts.path)))
    if parts.scheme == "s3":
        # Imported when it is asked for: most releases keep evidence on a volume.
        from casewarden.adapters.stores.s3 import S3Store

        return S3Store.at(address)
    raise ValueError(f"store {address!r}: the scheme must be one of file, memory, s3")
