"""Candidate folders that people upload, addressed by the digest of their files."""

from __future__ import annotations

import asyncio
import re

from aiohttp import web

from casewarden.adapters.stores.zstd import decompress
from casewarden.core.evidence import workspace_key
from casewarden.relay.context import Context, namespace_of, read_body
from casewarden.relay.refusal import Refusal
from casewarden_sdk.workspace import WorkspaceError, digest_workspace, unpack_workspace

__all__ = ["WorkspaceCalls"]

_DIGEST = re.compile(r"[0-9a-f]{64}")


class WorkspaceCalls:
    """The calls below ``/v1/workspaces``. What a case pod gets has the digest that its run names, checked here."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def routes(self) -> list[web.RouteDef]:
        """Return the routes; their names are the calls' names in the metrics."""
        path = "/v1/workspaces/{namespace}/{digest}"
        return [
            web.put(path, self.put, name="put_workspace"),
            web.get(path, self.get, name="get_workspace"),
        ]

    async def put(self, request: web.Request) -> web.Response:
        """Keep a folder after unpacking it and taking its digest; an archive that is there stays as it is."""
        namespace, digest = _address(request)
        limits = self._context.limits
        self._context.auth.require_namespace(await self._context.identify(request), namespace)
        async with self._context.upload():
            data = await read_body(request, limits, limits.workspace_bytes)
            found = await asyncio.to_thread(_digest_of, data)
            if found != digest:
                raise Refusal(400, "WrongDigest", f"the folder's digest is {found}; upload it under that one")
            key = workspace_key(namespace, digest)
            put = await self._context.store.put_if_absent(key, data, limit=limits.workspace_bytes)
        if put.created:
            self._context.metrics.stored_bytes.labels("workspace").inc(put.size)
        return web.json_response({"digest": digest}, status=201 if put.created else 200)

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Return the archive to the operator, to readers of the namespace and to case pods in it."""
        namespace, digest = _address(request)
        auth, identity = self._context.auth, await self._context.identify(request)
        if not auth.is_operator(identity) and identity.reader_of != namespace:
            await auth.require_case_pod_in(identity, namespace)
        pieces = await self._context.store.stream(workspace_key(namespace, digest))
        return await self._context.send(request, pieces, "application/zstd")


def _address(request: web.Request) -> tuple[str, str]:
    digest = request.match_info["digest"]
    if not _DIGEST.fullmatch(digest):
        raise Refusal(400, "BadPath", f"digest {digest!r}: give 64 lower-case hexadecimal digits")
    return namespace_of(request.match_info["namespace"]), digest


def _digest_of(data: bytes) -> str:
    try:
        return digest_workspace(unpack_workspace(data, decompress))
    except WorkspaceError as error:
        raise Refusal(400, "BadWorkspace", str(error)) from None
