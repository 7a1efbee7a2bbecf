"""Reading evidence as a person: a token for the namespace's reader, a port-forward, and the relay's calls."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import aiohttp

from casewarden.api.names import AUDIENCE, LABEL_MANAGED_BY, MANAGER, READER_ACCOUNT
from casewarden.cli.cluster import Cluster
from casewarden.cli.failure import Failure
from casewarden.cli.portforward import forwarded
from casewarden.ports.kube import (
    PODS,
    SERVICE_ACCOUNTS,
    AlreadyExists,
    Forbidden,
    Kind,
    Manifest,
    NotFound,
    list_all,
    selector,
)

__all__ = ["RelayReader", "open_relay", "relay_port", "relay_service"]

relay_service: Final = "casewarden-relay"
_SERVICES: Final = Kind("v1", "services", "Service")
_TOKEN_SECONDS: Final = 3600
_MAX_ANSWER: Final = 256 << 20


class RelayReader:
    """The relay's calls for readers of one namespace; every refusal is a ``Failure``."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def file(self, run_uid: str, path: str) -> bytes | None:
        """Return a file by its path below the run, as a store has it; None where there is none."""
        if "/" not in path:
            return await self._get(f"/v1/runs/{run_uid}/files/{path}")
        case, _, name = path.rpartition("/")
        if name == "sealed.json":
            return await self._get(f"/v1/runs/{run_uid}/cases/{case}/sealed")
        attempt, _, kind = name.partition(".")
        query = "?partial=1" if kind == "partial.tar.zst" else ""
        return await self._get(f"/v1/runs/{run_uid}/cases/{case}/{attempt}/bundle{query}")

    async def index(self, run_uid: str) -> list[dict[str, Any]]:
        """Return what the store has of the cases of a run."""
        data = await self._get(f"/v1/runs/{run_uid}/index")
        return [json.loads(line) for line in (data or b"").splitlines() if line]

    async def put_workspace(self, namespace: str, digest: str, data: bytes) -> None:
        """Upload a candidate's folder."""
        await self._call("PUT", f"/v1/workspaces/{namespace}/{digest}", data)

    async def _get(self, path: str) -> bytes | None:
        return await self._call("GET", path)

    async def _call(self, method: str, path: str, data: bytes | None = None) -> bytes | None:
        async with self._session.request(method, self._url + path, data=data, allow_redirects=False) as answer:
            body = await answer.content.read(_MAX_ANSWER + 1)
            while len(body) <= _MAX_ANSWER and (more := await answer.content.read(1 << 20)):
                body += more
        if answer.status < 300:
            if len(body) > _MAX_ANSWER:
                raise Failure(f"the relay's answer to {path} is over {_MAX_ANSWER >> 20} MiB")
            return body
        if answer.status == 404 and method == "GET":
            return None
        raise Failure(f"the relay refuses: {_message(body)} (HTTP {answer.status})")


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, TypeError, KeyError):
        return body[:200].decode("utf-8", "replace")


@asynccontextmanager
async def open_relay(cluster: Cluster) -> AsyncIterator[RelayReader]:
    """Connect to the relay as the reader of the cluster's namespace."""
    token = await _reader_token(cluster)
    pod, port = await _relay_pod(cluster)
    async with AsyncExitStack() as stack:
        local = await stack.enter_async_context(forwarded(cluster.api.connection, cluster.system_namespace, pod, port))
        session = await stack.enter_async_context(
            aiohttp.ClientSession(
                headers={"Authorization": f"Bearer {token}"},
                timeout=aiohttp.ClientTimeout(total=600, sock_read=60),
                connector=aiohttp.TCPConnector(limit=4),
            )
        )
        yield RelayReader(session, f"http://127.0.0.1:{local}")


async def _reader_token(cluster: Cluster) -> str:
    """Ask for a token of the reader's account, making the account where it is missing."""
    kind = Kind("v1", f"serviceaccounts/{READER_ACCOUNT}/token", "TokenRequest")
    body = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"audiences": [AUDIENCE], "expirationSeconds": _TOKEN_SECONDS},
    }
    try:
        try:
            answer = await cluster.api.create(kind, cluster.namespace, body)
        except NotFound:
            await _make_reader(cluster)
            answer = await cluster.api.create(kind, cluster.namespace, body)
    except Forbidden as error:
        raise Failure(
            f"evidence is read as {READER_ACCOUNT} of namespace {cluster.namespace}: {error.message}"
        ) from None
    return str(answer["status"]["token"])


async def _make_reader(cluster: Cluster) -> None:
    meta = {"name": READER_ACCOUNT, "labels": {LABEL_MANAGED_BY: MANAGER}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta, "automountServiceAccountToken": False}
    try:
        await cluster.api.create(SERVICE_ACCOUNTS, cluster.namespace, account)
    except AlreadyExists:
        return


async def _relay_pod(cluster: Cluster) -> tuple[str, int]:
    where = cluster.system_namespace
    try:
        service = await cluster.api.get(_SERVICES, where, relay_service)
    except NotFound:
        raise Failure(
            f"there is no service {relay_service} in namespace {where}; "
            "where is the release? give --system-namespace or set CASEWARDEN_SYSTEM_NAMESPACE"
        ) from None
    pods = await list_all(cluster.api, PODS, where, selector(service["spec"].get("selector") or {}))
    ready = [pod for pod in pods if _is_ready(pod)]
    if not ready:
        raise Failure(f"no pod of service {where}/{relay_service} is ready; see kubectl -n {where} get pods")
    return ready[0]["metadata"]["name"], relay_port(service, ready[0])


def _is_ready(pod: Manifest) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    ready = any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")


def relay_port(service: Manifest, pod: Manifest) -> int:
    """Return the pod's port behind the service's first one, which may be a name."""
    first = service["spec"]["ports"][0]
    target = first.get("targetPort", first["port"])
    if isinstance(target, int):
        return target
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or []:
            if port.get("name") == target:
                return int(port["containerPort"])
    raise Failure(f"service {relay_service} leads to the port {target!r}, which pod {pod['metadata']['name']} lacks")
