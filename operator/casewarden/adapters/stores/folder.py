"""A store in a folder, on a volume or on a developer's disk.

A value is written to a file in the hidden folder ``.tmp``, synced, and then given its name: by ``link``, which fails
when the name is taken, or by ``rename``, which replaces. So no crash shows half a value, and of two one wins.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from casewarden.ports.store import BadKey, Body, Entry, NotFound, Put, StoreUnavailable, TooLarge, check_key

__all__ = ["FolderStore"]

_PIECE = 1 << 20
_TEMPORARY = ".tmp"
_LEFT_OVER_SECONDS = 3600.0
_T = TypeVar("_T")
# Not reasons of the caller's making: the disk is full, away, broken or read-only.
_AWAY = frozenset(
    {
        errno.EACCES,
        errno.EDQUOT,
        errno.EHOSTDOWN,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENODEV,
        errno.ENOENT,
        errno.ENOSPC,
        errno.ENOTCONN,
        errno.ENXIO,
        errno.EPERM,
        errno.EROFS,
        errno.ESTALE,
        errno.ETIMEDOUT,
    }
)


class FolderStore:
    """Keys are paths below ``root``, which is made when it is missing. Blocking calls run in threads.

    A key must not lie below another key (``a`` and ``a/b``); such a put is refused with ``BadKey``. Uploads that a
    crash left unfinished are removed when the folder is opened an hour later or more.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._temporary = root / _TEMPORARY
        try:
            self._temporary.mkdir(parents=True, exist_ok=True)
            for left in self._temporary.iterdir():
                if left.stat().st_mtime < time.time() - _LEFT_OVER_SECONDS:
                    left.unlink(missing_ok=True)
        except OSError as error:
            raise StoreUnavailable(f"{root}: {error.strerror}; give a folder that can be written") from error

    async def put_if_absent(self, key: str, body: Body, *, limit: int) -> Put:
        """Make the value if the key has none."""
        return await self._write(key, body, limit, _commit_first)

    async def put(self, key: str, body: Body, *, limit: int) -> Put:
        """Make or replace the value."""
        return await self._write(key, body, limit, _commit_last)

    async def get(self, key: str, *, limit: int) -> bytes:
        """Return the whole value."""
        path = self._path(key)

        def read() -> bytes:
            with self._open(key, path) as file:
                data = file.read(limit + 1)
            if len(data) > limit:
                raise TooLarge(f"{key} has more than {limit} bytes")
            return data

        return await self._run(read)

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        """Return the value in pieces."""
        path = self._path(key)
        file = await self._run(lambda: self._open(key, path))

        async def pieces() -> AsyncIterator[bytes]:
            with file:
                while piece := await self._run(lambda: file.read(_PIECE)):
                    yield piece

        return pieces()

    async def list(self, prefix: str, *, deep: bool = True) -> AsyncIterator[Entry]:
        """Yield what is below a prefix."""
        base = self._path(prefix.removesuffix("/")) if prefix else self.root
        if prefix and not prefix.endswith("/"):
            raise BadKey(f"prefix {prefix!r} must be empty or end in '/'")
        found = _entries(base, prefix, deep)
        # Folders are walked a few hundred entries per thread hop, so that a listing holds neither the loop nor memory.
        while batch := await self._run(lambda: [entry for _, entry in zip(range(500), found, strict=False)]):
            for entry in batch:
                yield entry

    async def delete(self, key: str) -> None:
        """Remove the value."""
        path = self._path(key)

        def remove() -> None:
            path.unlink(missing_ok=True)
            for parent in path.parents:
                if parent == self.root:
                    return
                try:
                    parent.rmdir()
                except OSError:
                    return

        await self._run(remove)

    async def close(self) -> None:
        """Nothing is held."""

    def _path(self, key: str) -> Path:
        return self.root / check_key(key)

    def _open(self, key: str, path: Path) -> BinaryIO:
        try:
            return open(path, "rb", opener=_open_regular)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            if not self._temporary.is_dir():
                raise StoreUnavailable(f"{self.root} is gone") from None
            raise NotFound(f"{key} is not in the store") from None

    async def _run(self, call: Callable[[], _T]) -> _T:
        try:
            return await asyncio.to_thread(call)
        except OSError as error:
            if error.errno in _AWAY:
                raise StoreUnavailable(f"{self.root}: {error.strerror}") from error
            raise

    async def _write(self, key: str, body: Body, limit: int, commit: Callable[[Path, Path], bool]) -> Put:
        path = self._path(key)
        temporary = self._temporary / secrets.token_hex(16)

        def name_it() -> bool:
            for _ in range(10):  # `delete` may remove a folder that was just made
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    created = commit(temporary, path)
                    self._sync_folders(path)
                    return created
                except FileNotFoundError:
                    continue
                except (FileExistsError, NotADirectoryError, IsADirectoryError):
                    raise BadKey(f"{key} lies below or above another key of this store") from None
            raise StoreUnavailable(f"{path.parent} is removed again and again")

        file = await self._run(lambda: open(temporary, "xb"))  # noqa: SIM115
        try:
            with file:
                digest, size = await self._fill(key, file, body, limit)
            created = await self._run(name_it)
        finally:
            await self._run(lambda: temporary.unlink(missing_ok=True))
        return Put(created, digest, size)

    def _sync_folders(self, path: Path) -> None:
        """Make the name durable, and those of the folders above it, which may be new."""
        for folder in path.parents:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
            if folder == self.root:
                return

    async def _fill(self, key: str, file: BinaryIO, body: Body, limit: int) -> tuple[str, int]:
        digest, size, waiting = hashlib.sha256(), 0, bytearray()

        def flush() -> None:
            digest.update(waiting)
            file.write(waiting)
            waiting.clear()

        async def pieces() -> AsyncIterator[bytes]:
            if isinstance(body, bytes):
                yield body
            else:
                async for piece in body:
                    yield piece

        async for piece in pieces():
            size += len(piece)
            if size > limit:
                raise TooLarge(f"{key}: more than {limit} bytes")
            waiting += piece
            if len(waiting) >= _PIECE:
                await self._run(flush)

        def finish() -> None:
            flush()
            file.flush()
            os.fsync(file.fileno())

        await self._run(finish)
        return digest.hexdigest(), size


def _open_regular(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)


def _commit_first(temporary: Path, path: Path) -> bool:
    try:
        os.link(temporary, path)
    except FileExistsError:
        if path.is_dir():
            raise
        return False
    return True


def _commit_last(temporary: Path, path: Path) -> bool:
    os.replace(temporary, path)
    return True


def _entries(folder: Path, prefix: str, deep: bool) -> Iterator[Entry]:
    try:
        items = sorted(os.scandir(folder), key=lambda item: item.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    for item in items:
        if item.name.startswith("."):
            continue
        if item.is_dir(follow_symlinks=False):
            if deep:
                yield from _entries(Path(item.path), f"{prefix}{item.name}/", deep)
            else:
                yield Entry(f"{prefix}{item.name}/", 0)
        elif item.is_file(follow_symlinks=False):
            yield Entry(prefix + item.name, item.stat(follow_symlinks=False).st_size)
