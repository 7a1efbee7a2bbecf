"""The few calls of the Kubernetes API that setting a cluster up takes."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Json = dict[str, Any]


class ApiError(Exception):
    """An answer that is no success, or none at all (status 0)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}" if status else message)
        self.status = status


class Api:
    """A client by certificate. Every call has a limit of `seconds`, and raises ApiError."""

    def __init__(self, url: str, pki: Path, *, seconds: float = 5) -> None:
        parts = urlsplit(url)
        self.host, self.port, self.seconds = parts.hostname or "", parts.port or 443, seconds
        self.context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        self.context.load_cert_chain(pki / "admin.crt", pki / "admin.key")

    def raw(self, method: str, path: str, body: Json | None = None, content: str = "application/json") -> str:
        """The text of a successful answer."""
        connection = http.client.HTTPSConnection(self.host, self.port, timeout=self.seconds, context=self.context)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": content, "Accept": "application/json, */*"})
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(0, f"no answer from {self.host}:{self.port}: {error}") from error
        finally:
            connection.close()
        if answer.status >= 300:
            raise ApiError(answer.status, text[:2000])
        return text

    def get(self, path: str) -> Json:
        found: Json = json.loads(self.raw("GET", path))
        return found

    def ready(self) -> bool:
        try:
            return self.raw("GET", "/readyz") == "ok"
        except ApiError:
            return False

    def create(self, path: str, body: Json) -> None:
        """Create an object; one of that name that is there already is left as it is."""
        try:
            self.raw("POST", path, body)
        except ApiError as error:
            if error.status != 409:
                raise

    def delete(self, path: str) -> None:
        """Delete an object without waiting; one that is gone is fine."""
        try:
            self.raw("DELETE", path, {"propagationPolicy": "Background", "gracePeriodSeconds": 0})
        except ApiError as error:
            if error.status != 404:
                raise
