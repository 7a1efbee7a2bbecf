"""From the API server's ``Status`` objects to the errors of the port."""

from __future__ import annotations

import json
from typing import Any

from casewarden.ports.kube import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    TooManyRequests,
    Unavailable,
)

__all__ = ["error_from"]

_BY_STATUS: dict[int, type[KubeError]] = {
    400: Invalid, 403: Forbidden, 404: NotFound, 409: Conflict, 410: Gone, 422: Invalid, 429: TooManyRequests,
}  # fmt: skip


def error_from(status: int, body: bytes | dict[str, Any]) -> KubeError:
    """Make the error of an answer; ``body`` is the answer's text, or the object of an ``ERROR`` event."""
    document = body if isinstance(body, dict) else _parse(body)
    reason = str(document.get("reason") or "")
    message = str(document.get("message") or "")[:2000]
    causes = tuple(str(cause.get("reason", "")) for cause in (document.get("details") or {}).get("causes") or ())
    kind = _BY_STATUS.get(status, Unavailable if status >= 500 or status == 408 else KubeError)
    if kind is Conflict and reason == "AlreadyExists":
        kind = AlreadyExists
    return kind(status, reason, message, causes)


def _parse(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except ValueError:
        return {"message": body[:500].decode("utf-8", "replace")}
    return document if isinstance(document, dict) else {"message": str(document)[:500]}
