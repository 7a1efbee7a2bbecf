"""How the relay says no: an HTTP status, a word and a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

__all__ = ["Refusal", "refusal_response"]


class Refusal(Exception):
    """Raised anywhere in a call; the caller gets ``status`` and ``{"error", "reason", **extra}``.

    ``retry_after`` (seconds) says that the same call may succeed later.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        retry_after: int | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        self.extra = dict(extra or {})


def refusal_response(refusal: Refusal) -> web.Response:
    """Write the answer that ``refusal`` stands for."""
    headers = {} if refusal.retry_after is None else {"Retry-After": str(refusal.retry_after)}
    body = {"error": refusal.message, "reason": refusal.reason, **refusal.extra}
    return web.json_response(body, status=refusal.status, headers=headers)
