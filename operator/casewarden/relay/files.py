"""A run's own files, written by the operator and read by people."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web

from casewarden.core.agentbench import FILES as AGENTBENCH_FILES
from casewarden.core.evidence import AUDIT, META, MUTANTS, PLAN, RUN_FILES, run_key
from casewarden.relay.context import Context, body_pieces, namespace_of, read_body, refuse_announced, run_uid_of
from casewarden.relay.refusal import Refusal

__all__ = ["FileCalls"]

_ONCE = (META, PLAN)
_TYPES = {"jsonl": "application/jsonl", "json": "application/json"}


class FileCalls:
    """The calls below ``/v1/runs/{uid}/files`` and the list of runs."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def routes(self) -> list[web.RouteDef]:
        """Return the routes; their names are the calls' names in the metrics."""
        return [
            web.put("/v1/runs/{uid}/files/{name}", self.put, name="put_file"),
            web.get("/v1/runs/{uid}/files/{name}", self.get, name="get_file"),
            web.get("/v1/runs", self.runs, name="runs"),
        ]

    async def put(self, request: web.Request) -> web.Response:
        """Keep a file of a run. ``meta.json`` and ``plan.json`` are written once: other content is refused."""
        run_uid, name, limits = run_uid_of(request), _file_name(request), self._context.limits
        self._context.auth.require_operator(await self._context.identify(request))
        store_key = run_key(run_uid, name)
        async with self._context.upload():
            if name == META:
                data = await read_body(request, limits, limits.document_bytes)
                _check_meta(data, run_uid)
                put = await self._context.store.put_if_absent(store_key, data, limit=limits.document_bytes)
            else:
                refuse_announced(request, limits.file_bytes)
                keep = self._context.store.put_if_absent if name in _ONCE else self._context.store.put
                put = await keep(store_key, body_pieces(request, limits), limit=limits.file_bytes)
        if not put.created and await self._context.digest(store_key) != put.sha256:
            raise Refusal(409, "exists", f"{name} of run {run_uid} is there with other content")
        if put.created:
            self._context.metrics.stored_bytes.labels("file").inc(put.size)
        return web.json_response({"digest": put.sha256}, status=201 if put.created else 200)

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Return a file of a run."""
        run_uid, name = run_uid_of(request), _file_name(request)
        await self._context.require_reader(request, run_uid)
        content_type = _TYPES[name.rpartition(".")[2]]
        return await self._context.send(request, await self._context.store.stream(run_key(run_uid, name)), content_type)

    async def runs(self, request: web.Request) -> web.Response:
        """Return ``meta.json`` of every run of a namespace; the operator may leave the namespace out."""
        identity = await self._context.identify(request)
        asked = request.query.get("namespace") or identity.reader_of
        if asked is None:
            self._context.auth.require_operator(identity)
        else:
            self._context.auth.require_namespace(identity, namespace_of(asked))
        found: list[dict[str, Any]] = []
        async for entry in self._context.store.list("runs/", deep=False):
            meta = await self._context.document(f"{entry.key}{META}") if entry.key.endswith("/") else None
            if meta is not None and asked in (None, meta["namespace"]):
                found.append(meta)
        return web.json_response(found)


def _file_name(request: web.Request) -> str:
    name = request.match_info["name"]
    known = (*RUN_FILES, *AGENTBENCH_FILES, AUDIT, MUTANTS)
    if name not in known:
        raise Refusal(404, "NotFound", f"a run has no file {name!r}; there may be {', '.join(known)}")
    return name


def _check_meta(data: bytes, run_uid: str) -> None:
    try:
        meta = json.loads(data)
        good = meta["uid"] == run_uid and isinstance(meta["name"], str) and isinstance(meta["namespace"], str)
    except (ValueError, RecursionError, TypeError, KeyError):
        good = False
    if not good:
        raise Refusal(400, "BadMeta", f"meta.json must have namespace, name and uid {run_uid!r}")
    namespace_of(meta["namespace"])
