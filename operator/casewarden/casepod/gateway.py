"""The model gateway: what a candidate finds at ``OPENAI_BASE_URL``, on the loopback address and nowhere else.

It has no key to lose. What passes through gets the run's model and parameters; everything is in the transcript.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from casewarden_sdk.errors import CandidateError, EnvironmentFailure

from .models import Models

__all__ = ["HOST", "Gateway", "gateway_environment"]

HOST = "127.0.0.1"
_REQUEST_BYTES = 8 << 20
_FINAL = {"x-should-retry": "false"}


def gateway_environment(dialect: str, model: str, port: int) -> dict[str, str]:
    """Return the variables by which unchanged clients find the gateway. The keys open nothing."""
    base = f"http://{HOST}:{port}"
    if dialect == "anthropic":
        return {"ANTHROPIC_BASE_URL": base, "ANTHROPIC_API_KEY": "unused", "CASEWARDEN_MODEL": model}
    return {"OPENAI_BASE_URL": f"{base}/v1", "OPENAI_API_KEY": "unused", "CASEWARDEN_MODEL": model}


class Gateway:
    """Serves between ``open`` and ``close``."""

    def __init__(self, models: Models, port: int) -> None:
        self._models = models
        self._port = port
        self._runner: web.AppRunner | None = None

    async def open(self) -> None:
        """Listen; ``EnvironmentFailure`` where the port cannot be had."""
        app = web.Application(client_max_size=_REQUEST_BYTES)
        app.add_routes([web.get("/v1/models", self._list), web.post("/v1/{path:.+}", self._call)])
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, HOST, self._port).start()
        except OSError as error:
            raise EnvironmentFailure(
                "EvidenceFailed", f"the gateway cannot listen on port {self._port}: {error}"
            ) from None

    async def close(self) -> None:
        """Stop serving."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _list(self, _: web.Request) -> web.Response:
        name = self._models.model.name
        return web.json_response(
            {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "casewarden"}]}
        )

    async def _call(self, request: web.Request) -> web.StreamResponse:
        try:
            document = json.loads(await request.read())
        except (ValueError, RecursionError):
            return _refusal(400, "BadRequest", "the body is no JSON")
        if not isinstance(document, dict):
            return _refusal(400, "BadRequest", "the body is no JSON object")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})

        async def piece(data: bytes) -> None:
            if not response.prepared:
                await response.prepare(request)
            await response.write(data)

        try:
            answer = await self._models.call(request.match_info["path"], document, piece)
        except (CandidateError, EnvironmentFailure) as error:
            if response.prepared:
                if request.transport is not None:
                    request.transport.abort()
                return response
            status = 503 if isinstance(error, EnvironmentFailure) else 400
            return _refusal(status, error.reason, error.message)
        if response.prepared:
            await response.write_eof()
            return response
        return web.Response(status=answer.status, body=answer.body, content_type=answer.content_type)


def _refusal(status: int, reason: str, message: str) -> web.Response:
    body: Mapping[str, Any] = {"error": {"message": message, "type": reason, "code": reason, "param": None}}
    return web.json_response(body, status=status, headers=_FINAL)
