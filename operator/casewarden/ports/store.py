"""What keeps evidence: a flat space of keys with an atomic put-if-absent.

Keys look like ``runs/<uid>/17/read-write-delete/0/sealed.json``: 1 to 12 parts of ``[A-Za-z0-9._-]`` joined by ``/``,
none of them starting with a dot. A store never shows half of a value. ``put_if_absent`` is what commits a verdict:
of any number of concurrent calls for one key exactly one is told ``created``.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from typing import Protocol

__all__ = [
    "BadKey",
    "Body",
    "Entry",
    "NotFound",
    "Put",
    "Store",
    "StoreError",
    "StoreUnavailable",
    "TooLarge",
    "check_key",
]

Body = bytes | AsyncIterable[bytes]
_KEY = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}/){0,11}[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}\Z")


class StoreError(Exception):
    """Anything that a store refuses or cannot do."""


class BadKey(StoreError):
    """The key is none; nothing was touched."""


class NotFound(StoreError):
    """No value has this key."""


class TooLarge(StoreError):
    """The value is over the caller's limit; nothing was kept."""


class StoreUnavailable(StoreError):
    """The store is full, away or read-only: the same call may succeed later."""


@dataclass(frozen=True, slots=True)
class Put:
    """What became of a put: whether this call made the value, and the SHA-256 and length of what was *sent*."""

    created: bool
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a listing. A key that ends in ``/`` stands for all keys below it (shallow listings), with size 0."""

    key: str
    size: int


def check_key(key: str) -> str:
    """Return ``key``; ``BadKey`` for what could leave the store or is not portable between stores."""
    if not _KEY.match(key):
        raise BadKey(f"{key!r} is no key: use parts of letters, digits, '.', '_', '-', none starting with a dot")
    return key


class Store(Protocol):
    """The seam. Every method may raise ``StoreUnavailable``; limits are in bytes."""

    async def put_if_absent(self, key: str, body: Body, *, limit: int) -> Put:
        """Make the value if the key has none. An iterable that raises leaves nothing behind and its error passes on."""

    async def put(self, key: str, body: Body, *, limit: int) -> Put:
        """Make or replace the value; readers see the old one or the new one."""

    async def get(self, key: str, *, limit: int) -> bytes:
        """Return the value; ``NotFound``, or ``TooLarge`` for a value over ``limit``."""

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        """Return the value in pieces; ``NotFound`` is raised here, not at the first piece."""

    def list(self, prefix: str, *, deep: bool = True) -> AsyncIterator[Entry]:
        """Yield what is below ``prefix`` (``""`` or ending in ``/``), sorted within each folder; nothing for none."""

    async def delete(self, key: str) -> None:
        """Remove the value; no error when there is none."""

    async def close(self) -> None:
        """Let go of what the store holds."""
