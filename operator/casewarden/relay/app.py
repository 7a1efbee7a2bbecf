"""The relay as an aiohttp application: all calls of ``docs/internals/wire.md`` section 5 over one store."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Middleware
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from casewarden.api.endpoint import Endpoint
from casewarden.ports.store import BadKey, NotFound, Store, StoreUnavailable, TooLarge
from casewarden.relay.auth import Authenticator, Reviewer
from casewarden.relay.context import Context, Limits
from casewarden.relay.evidence import EvidenceCalls
from casewarden.relay.files import FileCalls
from casewarden.relay.metrics import RelayMetrics
from casewarden.relay.models.calls import ModelCalls
from casewarden.relay.refusal import Refusal, refusal_response
from casewarden.relay.workspaces import WorkspaceCalls

__all__ = ["make_app"]

_LOG = logging.getLogger("casewarden.relay")
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_app(
    store: Store,
    reviewer: Reviewer,
    *,
    operator_user: str,
    limits: Limits | None = None,
    metrics: RelayMetrics | None = None,
    endpoints: Mapping[str, Endpoint] | None = None,
    keys: Path | Mapping[str, str] | None = None,
    unready: Callable[[], str | None] = lambda: None,
    monotonic: Callable[[], float] = time.monotonic,
) -> web.Application:
    """Put the service together. It needs a running loop only when it is served; the store stays the caller's.

    ``keys`` is a folder with a folder for each endpoint that has a Secret, or the keys themselves by endpoint;
    ``unready`` says why it cannot serve yet.
    """
    metrics = metrics or RelayMetrics()
    auth = Authenticator(reviewer, operator_user=operator_user, monotonic=monotonic)
    context = Context(store, auth, limits or Limits(), metrics)
    app = web.Application(middlewares=[_counted(metrics), _refused(metrics)])
    models = ModelCalls(context, endpoints or {}, keys)
    # Before the other files: usage is newer in memory than in the store.
    app.add_routes(models.routes())
    app.cleanup_ctx.append(models.run)
    for calls in (EvidenceCalls(context), FileCalls(context), WorkspaceCalls(context)):
        app.add_routes(calls.routes())

    async def healthz(request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(request: web.Request) -> web.Response:
        why = unready()
        return web.Response(text="ok\n" if why is None else f"{why}\n", status=200 if why is None else 503)

    async def exposition(request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    pages = {"healthz": healthz, "readyz": readyz, "metrics": exposition}
    app.add_routes([web.get(f"/{name}", page, name=name) for name, page in pages.items()])
    return app


def _counted(metrics: RelayMetrics) -> Middleware:
    @web.middleware
    async def middleware(request: web.Request, handler: _Handler) -> web.StreamResponse:
        started, code = time.monotonic(), 499
        # An unknown path has no name; it must not become a label of its own.
        call = request.match_info.route.name or "unknown"
        try:
            response = await handler(request)
            code = response.status
            return response
        except web.HTTPException as error:
            code = error.status
            raise
        finally:
            metrics.requests.labels(call, str(code)).inc()
            metrics.seconds.labels(call).observe(time.monotonic() - started)

    return middleware


def _refused(metrics: RelayMetrics) -> Middleware:
    @web.middleware
    async def middleware(request: web.Request, handler: _Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except Refusal as refusal:
            return refusal_response(refusal)
        except NotFound as error:
            return refusal_response(Refusal(404, "NotFound", str(error)))
        except TooLarge as error:
            return refusal_response(Refusal(413, "TooLarge", str(error)))
        except BadKey as error:
            return refusal_response(Refusal(400, "BadPath", str(error)))
        except StoreUnavailable as error:
            metrics.store_errors.inc()
            _LOG.warning("store unavailable: %s", error)
            return refusal_response(Refusal(503, "StoreUnavailable", str(error), retry_after=5))
        except web.HTTPException as error:
            reason = {404: "NotFound", 405: "BadMethod"}.get(error.status, "BadRequest")
            return refusal_response(Refusal(error.status, reason, f"{request.method} {request.path}: {error.reason}"))
        except ConnectionError:
            raise
        except Exception:
            _LOG.exception("call %s failed", request.match_info.route.name)
            return refusal_response(Refusal(500, "Internal", "the relay failed; its log has the cause"))

    return middleware
