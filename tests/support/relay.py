"""A relay on a real socket and the pods that call it, for tests."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Protocol

from aiohttp import ClientResponse, ClientSession
from aiohttp.test_utils import TestServer

from casewarden.adapters.stores.memory import MemoryStore
from casewarden.core.evidence import json_file
from casewarden.core.model import AttemptKey
from casewarden.relay.auth import StaticReviewer
from casewarden.relay.context import Limits
from casewarden.relay.metrics import RelayMetrics
from casewarden_sdk.bundle import sealed_document

OPERATOR = "system:serviceaccount:casewarden-system:casewarden-operator"
SMALL = Limits(bundle_bytes=1 << 20, uploads=8, wait_seconds=0.3, idle_seconds=0.3, upload_seconds=5.0)


@dataclass
class Relay:
    """A relay on a real socket, with one client for everybody; tokens say who is calling."""

    server: TestServer
    session: ClientSession
    store: MemoryStore
    metrics: RelayMetrics
    reviewer: StaticReviewer = field(default_factory=StaticReviewer)

    async def call(self, method: str, path: str, token: str | None = "operator", **rest: Any) -> ClientResponse:
        headers = {**({"Authorization": f"Bearer {token}"} if token else {}), **rest.pop("headers", {})}
        response = await self.session.request(method, self.server.make_url(path), headers=headers, **rest)
        await response.read()
        return response

    async def said(self, method: str, path: str, token: str | None = "operator", **rest: Any) -> tuple[int, str | None]:
        """Call and return the status and the word of a refusal."""
        response = await self.call(method, path, token, **rest)
        return response.status, (await response.json()).get("reason")


@dataclass
class Attempt:
    """The pod of an attempt, as the relay meets it."""

    relay: Relay
    token: str
    key: AttemptKey
    run_uid: str = "run-1"
    pod_uid: str = "pod-1"
    bundle: bytes = b"the bundle"

    @property
    def case_path(self) -> str:
        return f"/v1/runs/{self.run_uid}/cases/{self.key.case}"

    @property
    def path(self) -> str:
        return f"{self.case_path}/{self.key.attempt}"

    async def claim(self) -> tuple[int, str | None]:
        return await self.relay.said("POST", f"{self.path}/claim", self.token)

    async def upload(self, data: bytes | None = None, **rest: Any) -> tuple[int, str | None]:
        return await self.relay.said("PUT", f"{self.path}/bundle", self.token, data=data or self.bundle, **rest)

    def sealed(self, **changes: Any) -> dict[str, Any]:
        case = self.key.case
        digest = hashlib.sha256(self.bundle).hexdigest()
        document = sealed_document(
            self.run_uid, case.seed, case.case_id, case.repeat, self.key.attempt, self.pod_uid, digest,
            "passed", "1", None, None, 1.5,
        )  # fmt: skip
        return {**document, **changes}

    async def seal(self, **changes: Any) -> tuple[int, str | None]:
        return await self.relay.said(
            "PUT", f"{self.case_path}/sealed", self.token, data=json_file(self.sealed(**changes))
        )


class MakeAttempt(Protocol):
    """Makes the pod of an attempt and lets its token in."""

    def __call__(
        self,
        number: int = 1,
        case_id: str = "a",
        pod_uid: str | None = None,
        run_uid: str = "run-1",
        namespace: str = "evals",
    ) -> Attempt: ...
