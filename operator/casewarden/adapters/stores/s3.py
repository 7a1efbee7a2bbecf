"""A store in a bucket of S3 or of a server that speaks S3, on obstore.

``put_if_absent`` is a conditional write (``If-None-Match: *``): the server decides who was first. Every object carries
a random mark of the call that wrote it, so that a call whose answer was lost, and which is then told that somebody was
first, can see that it was itself.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import tempfile
from collections.abc import AsyncIterator, Awaitable, Mapping
from datetime import timedelta
from typing import IO, Any, Final, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import S3Store as Bucket

from casewarden.ports.store import BadKey, Body, Entry, NotFound, Put, StoreUnavailable, TooLarge, check_key

__all__ = ["S3Store"]

_PIECE: Final = 1 << 20
# A body up to this size stays in memory while it comes in; what is larger waits on disk for its turn to be sent.
_IN_MEMORY: Final = 1 << 20
_LARGE_AT_ONCE: Final = 3
_MARK: Final = "casewarden-writer"
_SECONDS: Final = 60
_UNDECIDED_TRIES: Final = 6
_UNDECIDED_WAIT: Final = 0.1
_T = TypeVar("_T")


class S3Store:
    """Keys are object names below ``prefix``. Every failure that is not one of the port's own is ``StoreUnavailable``.

    ``options`` are obstore's; credentials that are not among them come from the environment: ``AWS_ACCESS_KEY_ID`` and
    ``AWS_SECRET_ACCESS_KEY``, or the identity of the workload (web identity token, container or instance credentials).
    """

    def __init__(self, bucket: str, prefix: str = "", **options: Any) -> None:
        self.address = f"s3://{bucket}/{prefix}"
        self._prefix = f"{prefix}/" if prefix else ""
        self._bucket = Bucket(
            bucket,
            client_options={
                "allow_http": str(options.get("endpoint", "")).startswith("http:"),
                "timeout": timedelta(seconds=_SECONDS),
                "connect_timeout": timedelta(seconds=10),
            },
            **{"retry_config": {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}, **options},
        )
        self._large = asyncio.Semaphore(_LARGE_AT_ONCE)

    @classmethod
    def at(cls, address: str) -> S3Store:
        """Open ``s3://bucket/prefix?endpoint=https://host&region=eu-1``; ``ValueError`` says what is wrong with it."""
        parts, known = urlsplit(address), {"endpoint", "region", "path_style"}
        if not parts.hostname or parts.username or parts.password:
            raise ValueError(f"store {address!r}: give s3://BUCKET/PREFIX; credentials come from the environment")
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        if unknown := sorted(query.keys() - known):
            raise ValueError(f"store {address!r}: {unknown[0]} is none of {', '.join(sorted(known))}")
        prefix = unquote(parts.path).strip("/")
        try:
            if prefix:
                check_key(prefix)
        except BadKey as error:
            raise ValueError(f"store {address!r}: the prefix {error}") from None
        try:
            return cls(parts.netloc, prefix, **_options(address, query))
        except BaseError as error:
            raise ValueError(f"store {address!r}: {_first_line(error)}") from None

    async def put_if_absent(self, key: str, body: Body, *, limit: int) -> Put:
        """Make the value if the key has none."""
        return await self._put(key, body, limit, only_first=True)

    async def put(self, key: str, body: Body, *, limit: int) -> Put:
        """Make or replace the value."""
        return await self._put(key, body, limit, only_first=False)

    async def get(self, key: str, *, limit: int) -> bytes:
        """Return the whole value."""
        answer = await self._call(key, obstore.get_async(self._bucket, self._name(key)))
        if answer.meta["size"] > limit:
            raise TooLarge(f"{key} has {answer.meta['size']} bytes, over {limit}")
        return bytes(await self._call(key, answer.bytes_async()))

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        """Return the value in pieces."""
        answer = await self._call(key, obstore.get_async(self._bucket, self._name(key)))

        async def pieces() -> AsyncIterator[bytes]:
            try:
                async for piece in answer.stream(min_chunk_size=_PIECE):
                    yield bytes(piece)
            except (BaseError, OSError) as error:
                raise self._away(error) from error

        return pieces()

    async def list(self, prefix: str, *, deep: bool = True) -> AsyncIterator[Entry]:
        """Yield what is below a prefix."""
        if prefix and not prefix.endswith("/"):
            raise BadKey(f"prefix {prefix!r} must be empty or end in '/'")
        below = self._prefix + (check_key(prefix.removesuffix("/")) + "/" if prefix else "")
        try:
            if deep:
                async for page in obstore.list(self._bucket, below or None, chunk_size=500):
                    for item in page:
                        yield Entry(item["path"][len(self._prefix) :], item["size"])
                return
            found = await obstore.list_with_delimiter_async(self._bucket, below or None)
        except (BaseError, OSError) as error:
            raise self._away(error) from error
        entries = [Entry(f"{folder.rstrip('/')}/", 0) for folder in found["common_prefixes"]]
        entries += [Entry(item["path"], item["size"]) for item in found["objects"]]
        for entry in sorted(entries, key=lambda entry: entry.key):
            yield Entry(entry.key[len(self._prefix) :], entry.size)

    async def delete(self, key: str) -> None:
        """Remove the value."""
        try:
            await self._call(key, obstore.delete_async(self._bucket, self._name(key)))
        except NotFound:
            return

    async def close(self) -> None:
        """Nothing is held."""

    def _name(self, key: str) -> str:
        return self._prefix + check_key(key)

    def _away(self, error: Exception) -> StoreUnavailable:
        return StoreUnavailable(f"{self.address}: {_first_line(error)}")

    async def _call(self, key: str, asked: Awaitable[_T]) -> _T:
        try:
            return await asked
        except (NotFoundError, FileNotFoundError):
            raise NotFound(f"{key} is not in the store") from None
        except (BaseError, OSError) as error:
            raise self._away(error) from error

    async def _put(self, key: str, body: Body, limit: int, *, only_first: bool) -> Put:
        name = self._name(key)
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as spool:
            digest, size = await _gather(key, body, limit, spool)
            if size <= _IN_MEMORY:
                created = await self._send(key, name, _content(spool), only_first)
            else:
                # A conditional write goes out in one piece, which has to be in memory for it.
                async with self._large:
                    created = await self._send(key, name, await asyncio.to_thread(_content, spool), only_first)
        return Put(created, digest, size)

    async def _send(self, key: str, name: str, data: bytes, only_first: bool) -> bool:
        mark = secrets.token_hex(16)
        mode: Any = "create" if only_first else "overwrite"
        for attempt in range(_UNDECIDED_TRIES):
            try:
                await obstore.put_async(
                    self._bucket, name, data, attributes={_MARK: mark}, mode=mode, use_multipart=False
                )
                return True
            except AlreadyExistsError:
                first = await self._first(key, name)
            except (BaseError, OSError) as error:
                raise self._away(error) from error
            if first is not None:
                return first == mark
            await asyncio.sleep(_UNDECIDED_WAIT * (attempt + 1))
        raise StoreUnavailable(f"{self.address}: writes of {key} refused one another {_UNDECIDED_TRIES} times")

    async def _first(self, key: str, name: str) -> str | None:
        """Return the mark of the call that was first, or None while several are under way: S3 refuses some of them
        (409) before any has made the object.
        """
        try:
            answer = await self._call(key, obstore.get_async(self._bucket, name, options={"head": True}))
        except NotFound:
            return None
        return str(answer.attributes.get(_MARK, ""))


def _options(address: str, query: Mapping[str, str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if "endpoint" in query:
        if not query["endpoint"].startswith(("https://", "http://")):
            raise ValueError(f"store {address!r}: endpoint must be an address as https://host:port")
        options["endpoint"] = query["endpoint"]
    if query.get("region"):
        options["region"] = query["region"]
    if "path_style" in query:
        if query["path_style"] not in ("true", "false"):
            raise ValueError(f"store {address!r}: path_style must be true or false")
        options["virtual_hosted_style_request"] = query["path_style"] == "false"
    return options


async def _gather(key: str, body: Body, limit: int, spool: IO[bytes]) -> tuple[str, int]:
    """Take a body in, whole or not at all."""
    digest, size = hashlib.sha256(), 0
    async for piece in _pieces(body):
        size += len(piece)
        if size > limit:
            raise TooLarge(f"{key}: more than {limit} bytes")
        digest.update(piece)
        if size <= _IN_MEMORY:
            spool.write(piece)
        else:
            await asyncio.to_thread(spool.write, piece)
    return digest.hexdigest(), size


async def _pieces(body: Body) -> AsyncIterator[bytes]:
    if isinstance(body, bytes):
        yield body
        return
    async for piece in body:
        yield piece


def _content(spool: IO[bytes]) -> bytes:
    spool.seek(0)
    return spool.read()


def _first_line(error: Exception) -> str:
    """Return what happened, in the server's own words where it has some, without the client's inner workings."""
    text = str(error).strip()
    first = text.partition("\n")[0].partition("<?xml")[0].rstrip(": ")
    words = [found for name in ("Code", "Message") for found in re.findall(f"<{name}>([^<]*)</{name}>", text)[:1]]
    return ": ".join([first[:300], *words])[:500]
