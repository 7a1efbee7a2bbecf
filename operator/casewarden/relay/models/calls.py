"""The relay's way to models: ``POST …/{attempt}/models/{endpoint}/{path}`` of a case pod (wire.md, section 9).

A call that has left is finished and counted even when nobody waits for it any more: its slot is free when the endpoint
is done with it, not when the pod is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
import random
import re
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from aiohttp import web

from casewarden.api.endpoint import Endpoint, checked_headers
from casewarden.core.evidence import USAGE, EvidenceKey, json_file, run_key
from casewarden.relay.context import Context, attempt_key, read_body, run_uid_of
from casewarden.relay.models.events import event_data
from casewarden.relay.models.gate import Gate, WaitedTooLong
from casewarden.relay.models.spending import Spending, share
from casewarden.relay.models.tokens import Count, TokenizerUnreadable, counter_of
from casewarden.relay.models.upstream import Answer, NoUse, TryAgain, Upstream
from casewarden.relay.models.usage import (
    Budget,
    BudgetSpent,
    CallUsage,
    RunUsage,
    UsageReader,
    cost_of,
    estimated_tokens,
    said_bytes,
)
from casewarden.relay.refusal import Refusal, refusal_response

__all__ = ["ModelCalls"]

_LOG = logging.getLogger("casewarden.relay")
_REQUEST_BYTES = 8 << 20
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 20.0
_LONGEST_RETRY_AFTER = 300.0
# What an answer may come to where its request sets no bound.
_USUAL_COMPLETION = 1024
_ROLES = 4
_ROLE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_FLUSH_SECONDS = 1.0
_KEEP_SECONDS = 2.0
_SETTLE_SECONDS = 5.0
# A pod that went away is noticed this late where nothing is written to it.
_LOOK_SECONDS = 1.0
_PATHS: Mapping[str, tuple[str, ...]] = {
    "openai": ("chat/completions", "completions", "responses", "embeddings"),
    "anthropic": ("messages",),
}


@dataclass(slots=True)
class _Endpoint:
    """``count`` counts tokens as its model does; ``broken`` says why it cannot be used."""

    settings: Endpoint
    gate: Gate
    upstream: Upstream
    count: Count | None = None
    broken: str | None = None


@dataclass(frozen=True, slots=True)
class _Call:
    """What a pod asks for."""

    run_uid: str
    role: str | None
    name: str
    path: str
    body: bytes
    headers: Mapping[str, str]
    stream: bool
    usage_asked: bool
    prompt_bytes: int
    reserved: int
    cost: Decimal | None
    priority: int
    patience: float


class _Delivery:
    """Hands an answer from the exchange to the pod. ``gone`` is set when the pod no longer takes it."""

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[bytes | Answer | Refusal] = asyncio.Queue(maxsize=256)
        self.gone = False

    async def put(self, piece: bytes | Answer | Refusal) -> None:
        if not self.gone:
            await self.pieces.put(piece)

    def leave(self) -> None:
        self.gone = True
        while not self.pieces.empty():
            self.pieces.get_nowait()


class ModelCalls:
    """The endpoints of the catalogue behind one route. ``run`` it as long as the service runs."""

    def __init__(
        self, context: Context, endpoints: Mapping[str, Endpoint], keys: Path | Mapping[str, str] | None = None
    ) -> None:
        self._context = context
        self._settings = endpoints
        self._keys = keys
        self._endpoints: dict[str, _Endpoint] = {}
        self._usage: dict[str, RunUsage] = {}
        self._loading: dict[str, asyncio.Lock] = {}
        self._dirty: set[str] = set()
        self._spending = Spending()
        self._keeping: dict[str, asyncio.Lock] = {}
        self._under_way: set[asyncio.Task[None]] = set()
        self._random = random.Random()  # noqa: S311 - spreads retries, guards nothing

    def routes(self) -> list[web.RouteDef]:
        """Return the route; its name is the call's name in the metrics."""
        path = "/v1/runs/{uid}/cases/{seed}/{case}/{repeat}/{attempt}/models/{endpoint}/{path:.+}"
        return [
            web.post(path, self.call, name="model"),
            web.get("/v1/runs/{uid}/files/usage.json", self.usage, name="usage"),
        ]

    async def run(self, _: web.Application) -> AsyncIterator[None]:
        """Open the endpoints, keep usage as it grows, and at the end wait for calls under way."""
        for name, settings in self._settings.items():
            gate = Gate(settings.concurrency, settings.requests_per_minute, settings.tokens_per_minute)
            key: Path | str | None = None
            if isinstance(self._keys, Path) and settings.secret is not None:
                key = self._keys / name / settings.secret.key
            elif isinstance(self._keys, Mapping):
                key = self._keys.get(name)
            endpoint = self._endpoints[name] = _Endpoint(settings, gate, Upstream(settings, key))
            if settings.tokenizer is not None:
                try:
                    endpoint.count = await asyncio.to_thread(counter_of, settings.tokenizer)
                except TokenizerUnreadable as error:
                    endpoint.broken = str(error)
                    _LOG.error("endpoint %s cannot be used: %s", name, error)
            self._context.metrics.model_inside.labels(name).set_function(functools.partial(getattr, gate, "inside"))
            self._context.metrics.model_waiting.labels(name).set_function(functools.partial(getattr, gate, "waiting"))
            spent = functools.partial(self._spending.most, name)
            self._context.metrics.model_budget.labels(name).set_function(spent)
            if settings.price is not None:
                self._context.metrics.model_cost.labels(name)
        flushing = asyncio.create_task(self._keep_flushing())
        yield
        flushing.cancel()
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(flushing, *self._under_way, return_exceptions=True)
        await self._flush()
        for endpoint in self._endpoints.values():
            await endpoint.upstream.close()

    async def usage(self, request: web.Request) -> web.Response:
        """Return what a run's model calls used so far; 404 for a run that made none."""
        run_uid = run_uid_of(request)
        await self._context.require_reader(request, run_uid)
        usage = await self._usage_of(run_uid)
        # Calls of pods that are gone are still finished and counted.
        if under_way := [task for task in self._under_way if task.get_name() == run_uid]:
            await asyncio.wait(under_way, timeout=_SETTLE_SECONDS)
        if usage.calls == 0 and not any(item.calls for item in usage.models.values()):
            raise Refusal(404, "NotFound", f"run {run_uid} has made no model call")
        return web.json_response(usage.to_json())

    async def call(self, request: web.Request) -> web.StreamResponse:
        """Carry out one model call of an attempt's pod."""
        run_uid, key, name = run_uid_of(request), attempt_key(request), request.match_info["endpoint"]
        pod = await self._context.auth.require_attempt(await self._context.identify(request), run_uid, key)
        claim = await self._context.document(run_key(run_uid, EvidenceKey(key.case, "claim", key.attempt).path()))
        if claim is None or claim["pod_uid"] != pod.uid:
            raise Refusal(409, "claimed", f"attempt {key} is not claimed by this pod; claim it first")
        endpoint = self._endpoints.get(name)
        if endpoint is None:
            raise Refusal(404, "UnknownEndpoint", f"the catalogue has no endpoint {name!r}")
        if not endpoint.settings.allows(pod.namespace):
            raise Refusal(403, "EndpointNotAllowed", f"endpoint {name} is not for runs of namespace {pod.namespace}")
        call = self._read(request, run_uid, name, endpoint.settings, await self._document(request))
        whole, budget = await self._usage_of(run_uid), _budget(request)
        if call.role is not None and call.role not in whole.models and len(whole.models) >= _ROLES:
            raise Refusal(400, "BadRequest", f"the run has calls of {_ROLES} models of its task already")
        usage = whole.of(call.role)
        try:
            usage.reserve(budget, call.reserved, call.cost)
        except BudgetSpent as spent:
            self._spending.note(name, run_uid, 1.0)
            self._count(name, "budget")
            raise Refusal(403, "BudgetSpent", str(spent)) from None
        self._spending.note(name, run_uid, share(usage, budget))
        delivery = _Delivery()
        task = asyncio.create_task(self._exchange(endpoint, call, usage, delivery), name=run_uid)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        try:
            return await self._deliver(request, delivery)
        finally:
            delivery.leave()

    async def _document(self, request: web.Request) -> dict[str, Any]:
        data = await read_body(request, self._context.limits, _REQUEST_BYTES)
        try:
            document = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise Refusal(400, "BadRequest", f"the body is no JSON: {error}") from None
        if not isinstance(document, dict):
            raise Refusal(400, "BadRequest", "the body is no JSON object")
        return document

    def _read(
        self, request: web.Request, run_uid: str, name: str, settings: Endpoint, document: dict[str, Any]
    ) -> _Call:
        path = request.match_info["path"]
        if path not in _PATHS[settings.dialect]:
            known = ", ".join(_PATHS[settings.dialect])
            raise Refusal(404, "BadRequest", f"endpoint {name} has no {path!r}; it has {known}")
        stream, asked = document.get("stream") is True, True
        if stream and path in ("chat/completions", "completions"):
            options = document.get("stream_options")
            asked = isinstance(options, dict) and options.get("include_usage") is True
            document = {**document, "stream_options": {**(options or {}), "include_usage": True}}
        bounds = [document.get(word) for word in ("max_completion_tokens", "max_tokens", "max_output_tokens")]
        bound = next((item for item in bounds if type(item) is int and item >= 0), _USUAL_COMPLETION)
        prompt_bytes = said_bytes(document)
        prompt = estimated_tokens(prompt_bytes)
        price = settings.price
        return _Call(
            run_uid=run_uid, role=_role(request), name=name, path=path, body=json.dumps(document).encode(),
            headers=_headers(request), stream=stream, usage_asked=asked, prompt_bytes=prompt_bytes,
            reserved=prompt + bound,
            cost=None if price is None else cost_of(price, prompt, bound),
            priority=_whole(request, "Casewarden-Priority"),
            patience=_seconds(request, "Casewarden-Seconds", settings.call_seconds + settings.retry_seconds),
        )  # fmt: skip

    async def _exchange(self, endpoint: _Endpoint, call: _Call, usage: RunUsage, delivery: _Delivery) -> None:
        reader, reserved = UsageReader(call.prompt_bytes, call.body, endpoint.count), True
        try:
            outcome: Answer | Refusal
            if endpoint.broken is not None:
                outcome = _away(call.name, endpoint.broken)
            else:
                outcome = await self._with_retries(endpoint, call, reader, delivery)
            if isinstance(outcome, Answer) and outcome.status < 400:
                used = await _used(reader, endpoint)
                usage.add(used, endpoint.settings.price)
                if (price := endpoint.settings.price) is not None:
                    cost = cost_of(price, used.prompt, used.completion)
                    self._context.metrics.model_cost.labels(call.name).inc(float(cost))
                usage.release(call.reserved, call.cost)
                reserved = False
                await self._keep(call.run_uid)
                tokens = self._context.metrics.model_tokens
                tokens.labels(call.name, "prompt").inc(used.prompt)
                tokens.labels(call.name, "completion").inc(used.completion)
                await delivery.put(_told(used, call) if outcome.streamed else outcome)
                if outcome.streamed:
                    await delivery.put(outcome)
                else:
                    await delivery.put(_told(used, call))
            else:
                await delivery.put(outcome)
            self._count(call.name, _outcome_word(outcome))
        except Exception as error:
            _LOG.exception("a call of endpoint %s failed", call.name)
            await delivery.put(Refusal(502, "ModelUnavailable", f"the relay failed: {type(error).__name__}"))
        finally:
            if reserved:
                usage.release(call.reserved, call.cost)

    async def _with_retries(
        self, endpoint: _Endpoint, call: _Call, reader: UsageReader, delivery: _Delivery
    ) -> Answer | Refusal:
        until, pause = time.monotonic() + call.patience, _FIRST_PAUSE
        failing_since: float | None = None
        stream = _StreamFilter(call, delivery)
        while True:
            if delivery.gone:
                return Refusal(499, "Gone", "nobody waits for the answer any more")
            try:
                place = await endpoint.gate.enter(call.reserved, call.priority, until - time.monotonic())
            except WaitedTooLong:
                return _away(call.name, f"no slot was free within {call.patience:g} s")
            used = 0
            try:
                answer = await endpoint.upstream.attempt(
                    call.path, call.body, call.headers, stream=call.stream, reader=reader, begin=stream.event
                )
                used = (await _used(reader, endpoint)).total
            except NoUse as error:
                return _away(call.name, str(error))
            except TryAgain as error:
                why, after = str(error), error.after
                if error.pauses and after is not None:
                    endpoint.gate.pause(min(after, _LONGEST_RETRY_AFTER))
            else:
                return answer
            finally:
                place.settle(used)
                place.leave()
            now = time.monotonic()
            # Time in the queue is the endpoint's load, not its failure.
            failing_since = now if failing_since is None else failing_since
            wait = min(max(after or 0.0, pause * (0.5 + self._random.random())), _LONGEST_RETRY_AFTER)
            if now + wait > min(until, failing_since + endpoint.settings.retry_seconds):
                return _away(call.name, why)
            self._count(call.name, "retried")
            await asyncio.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _deliver(self, request: web.Request, delivery: _Delivery) -> web.StreamResponse:
        first = await _next(request, delivery)
        if isinstance(first, Refusal):
            return refusal_response(first)
        if isinstance(first, Answer):
            headers = {} if first.reason is None else {"Casewarden-Reason": first.reason}
            if first.status < 400:
                told = await _next(request, delivery)
                assert isinstance(told, bytes)
                headers["Casewarden-Usage"] = told.decode().removeprefix(": casewarden ").strip()
            return web.Response(status=first.status, body=first.body, content_type="application/json", headers=headers)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await response.prepare(request)
        piece: bytes | Answer | Refusal = first
        while isinstance(piece, bytes):
            await response.write(piece)
            piece = await _next(request, delivery)
        if isinstance(piece, Refusal) or piece.broken is not None:
            # The only way to say within a stream that it is not whole: cut it.
            if request.transport is not None:
                request.transport.abort()
            return response
        await response.write_eof()
        return response

    def _count(self, name: str, outcome: str) -> None:
        self._context.metrics.model_calls.labels(name, outcome).inc()

    async def _usage_of(self, run_uid: str) -> RunUsage:
        async with self._loading.setdefault(run_uid, asyncio.Lock()):
            if run_uid not in self._usage:
                kept = await self._context.document(run_key(run_uid, USAGE))
                self._usage[run_uid] = RunUsage() if kept is None else RunUsage.from_json(kept)
        return self._usage[run_uid]

    async def _keep_flushing(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            with contextlib.suppress(Exception):
                await self._flush()

    async def _keep(self, run_uid: str) -> None:
        """Have a run's sum in the store before anybody knows the answer; where the store is away or slow, later."""
        self._dirty.add(run_uid)
        # A store that hangs must not eat the time of the agent that waits for its answer.
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_KEEP_SECONDS), self._keeping.setdefault(run_uid, asyncio.Lock()):
                # Whoever was before has kept this sum too, unless it came later.
                if run_uid in self._dirty:
                    await self._put_usage(run_uid)

    async def _flush(self) -> None:
        for run_uid in list(self._dirty):
            async with self._keeping.setdefault(run_uid, asyncio.Lock()):
                await self._put_usage(run_uid)

    async def _put_usage(self, run_uid: str) -> None:
        self._dirty.discard(run_uid)
        try:
            data = json_file(self._usage[run_uid].to_json())
            await self._context.store.put(run_key(run_uid, USAGE), data, limit=self._context.limits.document_bytes)
        except BaseException:
            self._dirty.add(run_uid)
            raise


class _StreamFilter:
    """Hands on the events of a stream but for the count that only the relay asked for."""

    def __init__(self, call: _Call, delivery: _Delivery) -> None:
        self._call = call
        self._delivery = delivery

    async def event(self, data: bytes) -> None:
        if not self._call.usage_asked:
            document = event_data(data)
            if isinstance(document, dict) and document.get("usage") and not document.get("choices"):
                return
        await self._delivery.put(data)


async def _next(request: web.Request, delivery: _Delivery) -> bytes | Answer | Refusal:
    while True:
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                return await delivery.pieces.get()
        except TimeoutError:
            if request.transport is None or request.transport.is_closing():
                raise ConnectionResetError("the pod went away") from None


async def _used(reader: UsageReader, endpoint: _Endpoint) -> CallUsage:
    """Return what a call used; counting a long text takes the time of many other calls."""
    return reader.usage() if endpoint.count is None else await asyncio.to_thread(reader.usage)


def _told(used: CallUsage, call: _Call) -> bytes:
    """Return a comment of the stream, which clients pass over, with what the call used."""
    return b": casewarden %d %d %s\n\n" % (used.prompt, used.completion, used.source.encode())


def _away(name: str, why: str) -> Refusal:
    return Refusal(502, "ModelUnavailable", f"endpoint {name}: {why}")


def _outcome_word(outcome: Answer | Refusal) -> str:
    if isinstance(outcome, Refusal):
        return "gone" if outcome.reason == "Gone" else "unavailable"
    if outcome.broken is not None:
        return "broken"
    return "answered" if outcome.status < 400 else "refused"


def _role(request: web.Request) -> str | None:
    text = request.headers.get("Casewarden-Role")
    if text is not None and _ROLE.fullmatch(text) is None:
        raise Refusal(400, "BadRequest", f"Casewarden-Role {text!r} is no name of a role")
    return text


def _headers(request: web.Request) -> Mapping[str, str]:
    text = request.headers.get("Casewarden-Headers", "{}")
    try:
        return checked_headers(json.loads(text))
    except ValueError as error:
        raise Refusal(400, "BadRequest", f"Casewarden-Headers: {error}") from None


def _whole(request: web.Request, name: str) -> int:
    text = request.headers.get(name, "0")
    try:
        return max(-1_000_000, min(1_000_000, int(text)))
    except ValueError:
        raise Refusal(400, "BadRequest", f"{name} {text!r} is no whole number") from None


def _seconds(request: web.Request, name: str, default: float) -> float:
    text = request.headers.get(name)
    try:
        return default if text is None else max(0.0, min(default, float(text)))
    except ValueError:
        raise Refusal(400, "BadRequest", f"{name} {text!r} is no number of seconds") from None


def _budget(request: web.Request) -> Budget:
    text = request.headers.get("Casewarden-Budget")
    if text is None:
        return Budget()
    try:
        document = json.loads(text)
        tokens, calls, cost = document.get("tokens"), document.get("calls"), document.get("cost")
        return Budget(
            None if tokens is None else int(tokens),
            None if calls is None else int(calls),
            None if cost is None else Decimal(cost),
        )
    except (ValueError, TypeError, AttributeError, InvalidOperation):
        raise Refusal(400, "BadRequest", f"Casewarden-Budget {text!r} is no budget") from None
