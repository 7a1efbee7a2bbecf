"""As much of an API server as the command line uses: objects, TokenRequests and port-forwards to a real relay."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestServer

READER_TOKEN = "reader"
_SERVICE = {"spec": {"selector": {"app": "relay"}, "ports": [{"port": 8080, "targetPort": "http"}]}}
_RELAY_POD = {
    "metadata": {"name": "relay-0"},
    "spec": {"containers": [{"name": "relay", "ports": [{"name": "http", "containerPort": 8080}]}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


@dataclass
class ClusterApi:
    """Objects by ``plural/namespace/name``. ``relay_port`` is where a port-forward ends; ``calls`` are all requests."""

    relay_port: int = 0
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    accounts: set[str] = field(default_factory=lambda: {"evals"})
    may_make_accounts: bool = True
    calls: list[str] = field(default_factory=list)
    on_get: Callable[[str], Awaitable[None]] | None = None
    server: TestServer | None = None

    async def start(self) -> None:
        """Listen on a free port."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self.server = TestServer(app)
        await self.server.start_server()

    async def stop(self) -> None:
        """Stop listening."""
        assert self.server is not None
        await self.server.close()

    def kubeconfig(self, path: Path, namespace: str = "evals") -> Path:
        """Write a kubeconfig that leads here."""
        assert self.server is not None
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
            "clusters": [{"name": "c", "cluster": {"server": str(self.server.make_url("")).rstrip("/")}}],
            "users": [{"name": "u", "user": {"token": "me"}}],
        }
        path.write_text(yaml.safe_dump(config))
        return path

    def put(self, name: str, status: dict[str, Any] | None = None, uid: str = "run-1", **spec: Any) -> dict[str, Any]:
        """Put an EvalRun into namespace ``evals``."""
        meta = {"name": name, "namespace": "evals", "uid": uid, "creationTimestamp": "2026-11-30T12:00:00Z"}
        run = {"apiVersion": "casewarden.dev/v1alpha1", "kind": "EvalRun", "metadata": meta, "spec": spec}
        self.objects[f"evalruns/evals/{name}"] = {**run, **({} if status is None else {"status": status})}
        return self.objects[f"evalruns/evals/{name}"]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        self.calls.append(f"{request.method} {path}")
        if request.headers.get("Authorization") != "Bearer me":
            return _status(401, "Unauthorized", "Unauthorized")
        parts = path.split("/")[3:] if path.startswith("/api/") else path.split("/")[4:]
        namespace = parts[1] if parts[0] == "namespaces" else None
        rest = parts[2:] if namespace else parts
        if rest[-1] == "portforward":
            return await self._forward(request)
        if rest[0] == "serviceaccounts":
            return self._accounts(request, namespace or "", rest)
        if namespace == "casewarden-system":
            return web.json_response(_SERVICE if rest[0] == "services" else {"items": [_RELAY_POD], "metadata": {}})
        return await self._objects(request, namespace, rest)

    async def _objects(self, request: web.Request, namespace: str | None, rest: list[str]) -> web.Response:
        plural, name = rest[0], rest[1] if len(rest) > 1 else None
        if request.method == "POST":
            body = json.loads(await request.read())
            body["metadata"].setdefault("name", f"{body['metadata'].get('generateName', '')}xyz")
            name = body["metadata"]["name"]
            return self._stored(f"{plural}/{namespace}/{name}", namespace, body)
        if request.method == "PATCH":
            return self._stored(f"{plural}/{namespace}/{name}", namespace, json.loads(await request.read()))
        if name is None:
            found = [item for key, item in self.objects.items() if _fits(key, plural, namespace)]
            return web.json_response({"items": found, "metadata": {}})
        if self.on_get is not None:
            await self.on_get(name)
        item = self.objects.get(f"{plural}/{namespace}/{name}")
        if item is None:
            return _status(404, "NotFound", f'{plural} "{name}" not found')
        return web.json_response(item)

    def _stored(self, key: str, namespace: str | None, body: dict[str, Any]) -> web.Response:
        if body.get("spec", {}).get("parallelism") == 999:
            return _status(422, "Invalid", "EvalRun is invalid: spec: the spec cannot be changed")
        body["metadata"] = {"uid": "run-1", **body["metadata"], "namespace": namespace}
        self.objects[key] = body
        return web.json_response(body)

    def _accounts(self, request: web.Request, namespace: str, rest: list[str]) -> web.Response:
        if rest[-1] == "token":
            if namespace not in self.accounts:
                return _status(404, "NotFound", 'serviceaccounts "casewarden-reader" not found')
            return web.json_response({"status": {"token": READER_TOKEN}})
        if not self.may_make_accounts:
            return _status(403, "Forbidden", 'User "u" cannot create resource "serviceaccounts"')
        self.accounts.add(namespace)
        return web.json_response({})

    async def _forward(self, request: web.Request) -> web.WebSocketResponse:
        """Speak the port-forward protocol as the kubelet does."""
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        for channel in (0, 1):
            await socket.send_bytes(bytes([channel]) + int(request.query["ports"]).to_bytes(2, "little"))
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.relay_port)
        except OSError as error:
            await socket.send_bytes(b"\x01" + f"connection refused: {error.strerror}".encode())
            await socket.close()
            return socket

        async def back() -> None:
            while data := await reader.read(4096):
                await socket.send_bytes(b"\x00" + data)
            await socket.close()

        returning = asyncio.create_task(back())
        async for message in socket:
            if message.type is WSMsgType.BINARY and message.data[0] == 0:
                writer.write(message.data[1:])
                await writer.drain()
        returning.cancel()
        writer.close()
        return socket


def _fits(key: str, plural: str, namespace: str | None) -> bool:
    kind, where, _ = key.split("/")
    return kind == plural and namespace in (None, where)


def _status(code: int, reason: str, message: str) -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "reason": reason, "message": message}, status=code)
