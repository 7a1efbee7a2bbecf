"""Claim, bundle, seal: the calls of a case pod, and their reading back.

The order is the guarantee: only the pod that claimed an attempt may upload for it, only an uploaded bundle can be
sealed, and of all seals of one case the first is the verdict.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from casewarden.core.evidence import META, EvidenceKey, json_file, parse_evidence_key, run_key
from casewarden.core.model import AttemptKey
from casewarden.relay.auth import PodFacts
from casewarden.relay.context import (
    Context,
    attempt_key,
    body_pieces,
    case_key,
    read_body,
    refuse_announced,
    run_uid_of,
)
from casewarden.relay.refusal import Refusal
from casewarden.relay.sealed import check_sealed

__all__ = ["EvidenceCalls"]


class EvidenceCalls:
    """The calls below ``/v1/runs/{uid}/cases`` and the run's index."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def routes(self) -> list[web.RouteDef]:
        """Return the routes; their names are the calls' names in the metrics."""
        case = "/v1/runs/{uid}/cases/{seed}/{case}/{repeat}"
        return [
            web.post(case + "/{attempt}/claim", self.claim, name="claim"),
            web.put(case + "/{attempt}/bundle", self.put_bundle, name="put_bundle"),
            web.get(case + "/{attempt}/bundle", self.get_bundle, name="get_bundle"),
            web.put(case + "/sealed", self.put_sealed, name="put_sealed"),
            web.get(case + "/sealed", self.get_sealed, name="get_sealed"),
            web.get("/v1/runs/{uid}/index", self.index, name="index"),
        ]

    async def claim(self, request: web.Request) -> web.Response:
        """Give the attempt to the first pod that asks, unless its case is sealed."""
        run_uid, key = run_uid_of(request), attempt_key(request)
        pod = await self._pod(request, run_uid, key)
        claims = self._context.metrics.claims
        if await self._context.document(self._key(run_uid, EvidenceKey(key.case, "sealed"))) is not None:
            claims.labels("sealed").inc()
            raise Refusal(409, "sealed", f"case {key.case} is sealed already")
        claim = {"v": 1, "pod_uid": pod.uid, "pod_name": pod.name, "at": round(time.time(), 3)}
        store_key = self._key(run_uid, EvidenceKey(key.case, "claim", key.attempt))
        put = await self._context.store.put_if_absent(
            store_key, json_file(claim), limit=self._context.limits.document_bytes
        )
        if not put.created and await self._claimant(run_uid, key) != pod.uid:
            claims.labels("claimed").inc()
            raise Refusal(409, "claimed", f"attempt {key} is claimed by another pod")
        claims.labels("won" if put.created else "repeated").inc()
        return web.json_response({})

    async def put_bundle(self, request: web.Request) -> web.Response:
        """Keep an attempt's bundle; the digest is of the bytes that arrived."""
        run_uid, key = run_uid_of(request), attempt_key(request)
        partial = request.query.get("partial", "0")
        if partial not in ("0", "1"):
            raise Refusal(400, "BadPath", f"partial is {partial!r}; give 0 or 1")
        limits = self._context.limits
        await self._require_claim(run_uid, key, await self._pod(request, run_uid, key))
        refuse_announced(request, limits.bundle_bytes)
        store_key = self._key(run_uid, EvidenceKey(key.case, "partial" if partial == "1" else "bundle", key.attempt))
        async with self._context.upload():
            put = await self._context.store.put_if_absent(
                store_key, body_pieces(request, limits), limit=limits.bundle_bytes
            )
        if not put.created and await self._context.digest(store_key) != put.sha256:
            raise Refusal(409, "exists", f"attempt {key} has a bundle of other content")
        if put.created:
            self._context.metrics.stored_bytes.labels("bundle").inc(put.size)
        return web.json_response({"digest": put.sha256}, status=201 if put.created else 200)

    async def put_sealed(self, request: web.Request) -> web.Response:
        """Commit a case's verdict; the first one counts, and a bundle of its digest must be there."""
        run_uid, case, limits = run_uid_of(request), case_key(request), self._context.limits
        identity = await self._context.identify(request)
        document = _json_object(await read_body(request, limits, limits.document_bytes))
        problem = check_sealed(document, run_uid, case)
        if problem is not None:
            raise Refusal(400, "BadSeal", f"sealed.json: {problem}")
        key = AttemptKey(case, document["attempt"])
        pod = await self._context.auth.require_attempt(identity, run_uid, key)
        if document["pod_uid"] != pod.uid:
            raise Refusal(
                403, "NotYours", f"sealed.json names pod {document['pod_uid']!r}; the caller is pod {pod.uid}"
            )
        await self._require_claim(run_uid, key, pod)
        digest = await self._context.digest(self._key(run_uid, EvidenceKey(case, "bundle", key.attempt)))
        if digest != document["digest"]:
            what = "has no bundle" if digest is None else f"has a bundle of digest {digest}"
            raise Refusal(409, "NoBundle", f"attempt {key} {what}; upload the bundle that the seal names first")
        data = json_file(document)
        store_key = self._key(run_uid, EvidenceKey(case, "sealed"))
        put = await self._context.store.put_if_absent(store_key, data, limit=2 * limits.document_bytes)
        if put.created:
            self._context.metrics.seals.labels("first").inc()
            return web.json_response({"digest": put.sha256}, status=201)
        first = await self._context.store.get(store_key, limit=2 * limits.document_bytes)
        if first != data:
            self._context.metrics.seals.labels("late").inc()
            raise Refusal(409, "sealed", f"case {case} is sealed already", extra={"sealed": json.loads(first)})
        self._context.metrics.seals.labels("repeated").inc()
        return web.json_response({"digest": put.sha256}, status=200)

    async def get_sealed(self, request: web.Request) -> web.Response:
        """Return ``sealed.json``."""
        run_uid, case = run_uid_of(request), case_key(request)
        await self._context.require_reader(request, run_uid)
        limit = 2 * self._context.limits.document_bytes
        data = await self._context.store.get(self._key(run_uid, EvidenceKey(case, "sealed")), limit=limit)
        return web.Response(body=data, content_type="application/json")

    async def get_bundle(self, request: web.Request) -> web.StreamResponse:
        """Return an attempt's bundle, or with ``partial=1`` what is left of one that never sealed."""
        run_uid, key = run_uid_of(request), attempt_key(request)
        await self._context.require_reader(request, run_uid)
        kind = EvidenceKey(key.case, "partial" if request.query.get("partial") == "1" else "bundle", key.attempt)
        pieces = await self._context.store.stream(self._key(run_uid, kind))
        return await self._context.send(request, pieces, "application/zstd")

    async def index(self, request: web.Request) -> web.StreamResponse:
        """Return a JSON line for every bundle, claim and seal of the run; a seal's line has its content too."""
        run_uid = run_uid_of(request)
        await self._context.require_reader(request, run_uid)
        return await self._context.send(request, self._index_lines(run_uid), "application/jsonl")

    async def _index_lines(self, run_uid: str) -> AsyncIterator[bytes]:
        prefix = run_key(run_uid, "")
        async for entry in self._context.store.list(prefix):
            found = parse_evidence_key(entry.key.removeprefix(prefix))
            if found is None:
                continue
            line: dict[str, Any] = {
                "kind": found.kind,
                "seed": found.case.seed,
                "case_id": found.case.case_id,
                "repeat": found.case.repeat,
                "attempt": found.attempt,
                "size": entry.size,
            }
            if found.kind == "sealed":
                line["sealed"] = await self._context.document(entry.key, 2 * self._context.limits.document_bytes)
                line["attempt"] = (line["sealed"] or {}).get("attempt")
            yield json_file(line)

    def _key(self, run_uid: str, what: EvidenceKey) -> str:
        return run_key(run_uid, what.path())

    async def _pod(self, request: web.Request, run_uid: str, key: AttemptKey) -> PodFacts:
        pod = await self._context.auth.require_attempt(await self._context.identify(request), run_uid, key)
        meta = await self._context.document(run_key(run_uid, META))
        if meta is not None and meta["namespace"] != pod.namespace:
            raise Refusal(403, "NotYours", f"run {run_uid} is not of namespace {pod.namespace}")
        return pod

    async def _claimant(self, run_uid: str, key: AttemptKey) -> str | None:
        claim = await self._context.document(self._key(run_uid, EvidenceKey(key.case, "claim", key.attempt)))
        return None if claim is None else str(claim["pod_uid"])

    async def _require_claim(self, run_uid: str, key: AttemptKey, pod: PodFacts) -> None:
        claimant = await self._claimant(run_uid, key)
        if claimant != pod.uid:
            who = "nobody" if claimant is None else "another pod"
            raise Refusal(409, "claimed", f"attempt {key} is claimed by {who}; claim it first")


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, "BadJSON", f"the body is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise Refusal(400, "BadJSON", "the body is no JSON object")
    return value
