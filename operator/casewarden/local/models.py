"""The way to models in a local run: the relay itself, on the loopback address, before the run's own store."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any, Self

from aiohttp import web

from casewarden.api.endpoint import Endpoint
from casewarden.core.evidence import USAGE, run_key
from casewarden.core.model import AttemptKey
from casewarden.ports.store import NotFound, Store
from casewarden.relay.app import make_app
from casewarden.relay.auth import StaticReviewer

__all__ = ["LocalModels"]

_USAGE_BYTES = 64 << 10
_LAST_CALLS_SECONDS = 5.0


class LocalModels:
    """Serves while it is entered, so that limits, retries and counts are those of a cluster; ``keys`` by endpoint."""

    def __init__(
        self,
        store: Store,
        endpoints: Mapping[str, Endpoint],
        keys: Mapping[str, str],
        namespace: str,
        run: str,
        uid: str,
    ) -> None:
        self.url = ""
        self._store = store
        self._reviewer = StaticReviewer()
        self._run = (namespace, run, uid)
        # Nobody is the operator here: evidence goes to the store directly.
        app = make_app(store, self._reviewer, operator_user="nobody", endpoints=endpoints, keys=keys)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_LAST_CALLS_SECONDS)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def admit(self, key: AttemptKey, pod_uid: str) -> str:
        """Return the token by which an attempt's recorder may call."""
        token = secrets.token_urlsafe(24)
        self._reviewer.admit_pod(token, *self._run, key, pod_uid)
        return token

    async def usage(self) -> Mapping[str, Any] | None:
        """Return what the run used, once this is no longer entered; None where no call was answered."""
        try:
            document = json.loads(await self._store.get(run_key(self._run[2], USAGE), limit=_USAGE_BYTES))
        except NotFound:
            return None
        return document if isinstance(document, dict) else None
