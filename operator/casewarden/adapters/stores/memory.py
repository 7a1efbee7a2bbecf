"""A store in memory: the fake that ships, for tests and for what need not be kept."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

from casewarden.ports.store import Body, Entry, NotFound, Put, StoreUnavailable, TooLarge, check_key

__all__ = ["MemoryStore"]


class MemoryStore:
    """Everything in a dictionary. Set ``unavailable`` to a message to make every call fail with it."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.unavailable: str | None = None

    async def put_if_absent(self, key: str, body: Body, *, limit: int) -> Put:
        """Make the value if the key has none."""
        data = await self._collect(key, body, limit)
        created = self.values.setdefault(key, data) is data
        return Put(created, hashlib.sha256(data).hexdigest(), len(data))

    async def put(self, key: str, body: Body, *, limit: int) -> Put:
        """Make or replace the value."""
        data = await self._collect(key, body, limit)
        self.values[key] = data
        return Put(True, hashlib.sha256(data).hexdigest(), len(data))

    async def get(self, key: str, *, limit: int) -> bytes:
        """Return the whole value."""
        data = self._find(key)
        if len(data) > limit:
            raise TooLarge(f"{key} has {len(data)} bytes, over {limit}")
        return data

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        """Return the value in pieces."""
        data = self._find(key)

        async def pieces() -> AsyncIterator[bytes]:
            for start in range(0, len(data), 1 << 16):
                yield data[start : start + (1 << 16)]

        return pieces()

    async def list(self, prefix: str, *, deep: bool = True) -> AsyncIterator[Entry]:
        """Yield what is below a prefix."""
        self._check_available()
        if prefix:
            check_key(prefix.removesuffix("/"))
        seen: dict[str, int] = {}
        for key in sorted(self.values):
            if key.startswith(prefix):
                head, slash, _ = key[len(prefix) :].partition("/")
                shallow = not deep and slash
                seen[prefix + head + "/" if shallow else key] = 0 if shallow else len(self.values[key])
        for key, size in seen.items():
            yield Entry(key, size)

    async def delete(self, key: str) -> None:
        """Remove the value."""
        self._check_available()
        self.values.pop(check_key(key), None)

    async def close(self) -> None:
        """Forget everything."""
        self.values.clear()

    def _check_available(self) -> None:
        if self.unavailable is not None:
            raise StoreUnavailable(self.unavailable)

    def _find(self, key: str) -> bytes:
        self._check_available()
        try:
            return self.values[check_key(key)]
        except KeyError:
            raise NotFound(f"{key} is not in the store") from None

    async def _collect(self, key: str, body: Body, limit: int) -> bytes:
        """Gather the body in a fresh object, so that identity tells who made the value."""
        check_key(key)
        self._check_available()
        data = bytearray()
        if isinstance(body, bytes):
            data += body
        else:
            async for piece in body:
                data += piece
                if len(data) > limit:
                    break
        if len(data) > limit:
            raise TooLarge(f"{key}: more than {limit} bytes")
        self._check_available()
        return bytes(data)
