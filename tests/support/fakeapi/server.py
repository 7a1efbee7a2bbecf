"""Lists with pages and label selectors, watches from a log of versions, guarded patches, graceful deletion, owners.

What it does not do: schemas, admission, server-side apply's ownership of fields (an apply merges). Faults: ``fail`` and
``away`` for requests, ``lose`` for events, ``compact`` for versions, ``delay`` for everything.
"""

from __future__ import annotations

import asyncio
import copy
import json
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager

from aiohttp import web

from casewarden.ports.memory_kube import merge_patch

from .parts import Address, ApiError, Fault, Object, Watcher, address_of, discovery, selector, stamp


class FakeApi:
    """Use as an async context manager; ``url`` is where it listens. Times of grace and bookmarks are in seconds."""

    def __init__(
        self, *, grace: float = 0.02, bookmarks: float = 5.0, delay: float = 0.0,
        clock: Callable[[], float] = time.time, new_uid: Callable[[], str] = lambda: str(uuid.uuid4()),
    ) -> None:  # fmt: skip
        self.grace, self.bookmarks, self.delay = grace, bookmarks, delay
        self.clock, self.new_uid = clock, new_uid
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.log: list[tuple[int, str, str, Object]] = []
        self.version, self.oldest = 1, 0
        self.watchers: dict[Watcher, None] = {}
        self.requests: list[tuple[str, str]] = []
        self.created: list[Object] = []
        self.logs: dict[tuple[str, str, str], bytes] = {}
        self.terminating_namespaces: set[str] = set()
        # By role of a pod: what an admission says that lets none of it in.
        self.refused_roles: dict[str, str] = {}
        self.hooks: list[Callable[[str, str, Object], None]] = []
        self._faults: list[Fault] = []
        self._losses: dict[str, int] = {}
        self._away = False
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""

    async def __aenter__(self) -> FakeApi:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.05)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in list(self._tasks):
            task.cancel()
        self._break_watches()
        await self._runner.cleanup()

    # What tests do to it.

    def fail(
        self, times: int, status: int, *, method: str = "", path: str = "", reason: str = "Failed",
        message: str = "told to", retry_after: str = "", causes: tuple[str, ...] = (), after: bool = False,
    ) -> None:  # fmt: skip
        """Answer so; with ``after`` the request takes effect and only its answer is lost."""
        headers = {"Retry-After": retry_after} if retry_after else {}
        self._faults.append(
            Fault(lambda m, p: method in m and path in p, times, status, reason, message, headers, causes, after)
        )

    @contextmanager
    def away(self) -> Iterator[None]:
        """Break every connection until the block ends."""
        self._away = True
        self._break_watches()
        try:
            yield
        finally:
            self._away = False

    def lose(self, plural: str, events: int) -> None:
        """Let no watcher hear of the next events of this kind."""
        self._losses[plural] = events

    def compact(self) -> None:
        """Forget old versions: every watch gets 410, and so does whoever comes with an old version."""
        self.oldest = self.version
        for watcher in list(self.watchers):
            watcher.queue.put_nowait(("ERROR", ApiError(410, "Expired", "too old resource version").body))
            watcher.queue.put_nowait(None)

    def repeat(self, plural: str, events: int) -> None:
        """Send every watcher the last events of this kind again."""
        for _, type_, kind, item in [entry for entry in self.log if entry[2] == plural][-events:]:
            for watcher in self.watchers:
                if type_ != "DELETED" and self._concerns(watcher, kind, item):
                    watcher.queue.put_nowait((type_, item))

    def put(self, plural: str, body: Object) -> Object:
        """Create an object, as a user would."""
        return self._create(Address(plural, body["metadata"]["namespace"], "", ""), body)

    def all(self, plural: str, namespace: str | None = None) -> list[Object]:
        return [o for (p, n, _), o in self.objects.items() if p == plural and namespace in (None, n)]

    def get(self, plural: str, namespace: str, name: str) -> Object:
        return self.objects[plural, namespace, name]

    def update(self, plural: str, namespace: str, name: str, patch: Object) -> Object:
        """Merge a patch into an object, status included, as kubelets and users do."""
        old = self.objects[plural, namespace, name]
        return self._store(plural, "MODIFIED", merge_patch(old, patch))

    def delete(self, plural: str, namespace: str, name: str, *, now_: bool = False) -> None:
        self._delete(Address(plural, namespace, name, ""), {"gracePeriodSeconds": 0} if now_ else {})

    def delete_namespace(self, namespace: str) -> None:
        """Refuse creates from now on and delete pods first, everything else after."""
        self.terminating_namespaces.add(namespace)
        for plural, found, name in sorted(self.objects, key=lambda key: key[0] != "pods"):
            if found == namespace:
                self._delete(Address(plural, namespace, name, ""), {"gracePeriodSeconds": 0}, missing_ok=True)

    # Requests.

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if self._away:
            if request.transport:
                request.transport.abort()
            raise web.HTTPServiceUnavailable
        self.requests.append((request.method, request.path))
        if self.delay:
            await asyncio.sleep(self.delay)
        fault = next((f for f in self._faults if f.times > 0 and f.matches(request.method, request.path)), None)
        try:
            if fault:
                fault.times -= 1
                if fault.after:
                    await self._route(request)
                error = ApiError(fault.status, fault.reason, fault.message, fault.causes)
                return web.json_response(error.body, status=fault.status, headers=fault.headers)
            return await self._route(request)
        except ApiError as error:
            return web.json_response(error.body, status=error.status)

    async def _route(self, request: web.Request) -> web.StreamResponse:
        if (found := discovery(request.path)) is not None:
            return web.json_response(found)
        address = address_of(request.path)
        if request.method == "GET" and address.sub == "log":
            key = (address.namespace, address.name, request.query["container"])
            return web.Response(body=self.logs.get(key, b"")[: int(request.query["limitBytes"])])
        if request.method == "GET" and address.name:
            return web.json_response(self._find(address))
        if request.method == "GET" and request.query.get("watch"):
            return await self._watch(request, address)
        if request.method == "GET":
            return web.json_response(self._list(request, address))
        body = json.loads(await request.read() or b"{}")
        if request.method == "POST":
            return web.json_response(self._create(address, body), status=201)
        if request.method == "PATCH":
            apply = "apply-patch" in request.headers["Content-Type"]
            return web.json_response(self._patch(address, body, apply=apply))
        if request.method == "PUT":
            return web.json_response(self._replace(address, body))
        return web.json_response(self._delete(address, body))

    def _find(self, address: Address) -> Object:
        try:
            return self.objects[address.plural, address.namespace, address.name]
        except KeyError:
            raise ApiError(404, "NotFound", f'{address.plural} "{address.name}" not found') from None

    def _list(self, request: web.Request, address: Address) -> Object:
        wants = selector(request.query.get("labelSelector", ""))
        version, start = self.version, 0
        if token := request.query.get("continue"):
            version, start = (int(part) for part in token.split(":"))
            if version < self.oldest:
                raise ApiError(410, "Expired", "the continue token is too old")
        found = [o for o in self.all(address.plural, address.namespace or None) if wants(o)]
        limit = int(request.query.get("limit", "0")) or len(found) or 1
        meta: Object = {"resourceVersion": str(version)}
        if start + limit < len(found):
            meta["continue"] = f"{version}:{start + limit}"
        return {"kind": "List", "metadata": meta, "items": found[start : start + limit]}

    async def _watch(self, request: web.Request, address: Address) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        stream = self.follow(address, request.query)
        first = await anext(stream)
        await response.prepare(request)
        try:
            await response.write(first)
            async for line in stream:
                await response.write(line)
        except ConnectionError:
            pass
        finally:
            await stream.aclose()
        return response

    async def follow(self, address: Address, query: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
        """Yield a watch's lines, an empty one first as soon as it is accepted."""
        since = int(query.get("resourceVersion") or self.version)
        if since < self.oldest:
            raise ApiError(410, "Expired", "too old resource version")
        watcher = Watcher(address, selector(query.get("labelSelector", "")))
        for version, type_, plural, item in self.log:
            if version > since and self._concerns(watcher, plural, item):
                watcher.queue.put_nowait((type_, item))
        self.watchers[watcher] = None
        try:
            yield b"\n"
            end = asyncio.get_running_loop().time() + float(query.get("timeoutSeconds", "300"))
            while (left := end - asyncio.get_running_loop().time()) > 0:
                try:
                    # Not wait_for, which in Python 3.11 swallows a cancellation that comes together with an event.
                    async with asyncio.timeout(min(left, self.bookmarks)):
                        event = await watcher.queue.get()
                except TimeoutError:
                    event = ("BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}})
                if event is None:
                    break
                yield json.dumps({"type": event[0], "object": event[1]}).encode() + b"\n"
        finally:
            self.watchers.pop(watcher, None)

    def _create(self, address: Address, body: Object) -> Object:
        meta = body["metadata"]
        name = meta.get("name") or f"{meta['generateName']}{self.new_uid()[-6:]}"
        if address.namespace in self.terminating_namespaces:
            raise ApiError(
                403, "Forbidden", f"namespace {address.namespace} is being terminated", ("NamespaceTerminating",)
            )
        refusal = self.refused_roles.get(meta.get("labels", {}).get("casewarden.dev/role", ""))
        if refusal is not None and address.plural == "pods":
            raise ApiError(403, "Forbidden", refusal)
        old = self.objects.get((address.plural, address.namespace, name))
        if old is not None:
            what = "object is being deleted: " if "deletionTimestamp" in old["metadata"] else ""
            raise ApiError(409, "AlreadyExists", f'{what}{address.plural} "{name}" already exists')
        item = copy.deepcopy(body)
        item["metadata"] |= {
            "name": name,
            "namespace": address.namespace,
            "uid": self.new_uid(),
            "creationTimestamp": stamp(self.clock()),
        }
        item["metadata"].setdefault("generation", 1)
        if address.plural == "pods":
            item["status"] = {"phase": "Pending"}
        elif address.plural.endswith("runs"):
            item.pop("status", None)
        stored = self._store(address.plural, "ADDED", item)
        owners = {owner["uid"] for owner in meta.get("ownerReferences") or ()}
        if owners and owners.isdisjoint(found["metadata"]["uid"] for found in self.objects.values()):
            self._later(0.05, lambda: self._remove(stored, plural=address.plural))
        self.created.append(stored)
        return stored

    def _patch(self, address: Address, body: Object, *, apply: bool) -> Object:
        try:
            old = self._find(address)
        except ApiError:
            if not apply:
                raise
            return self._create(address, body)
        version = (body.get("metadata") or {}).get("resourceVersion")
        if version not in (None, old["metadata"]["resourceVersion"]):
            raise ApiError(409, "Conflict", "the object has been modified")
        if old.get("immutable") and {"data", "binaryData"} & set(body):
            raise ApiError(422, "Invalid", "field is immutable when `immutable` is set")
        patch = {key: value for key, value in body.items() if key not in ("metadata", "apiVersion", "kind")}
        kept = {"labels", "annotations", "ownerReferences"}
        patch["metadata"] = {key: value for key, value in (body.get("metadata") or {}).items() if key in kept}
        if address.sub == "status":
            patch = {"status": body.get("status")}
        elif address.plural.endswith("runs"):
            patch.pop("status", None)
        new = merge_patch(old, patch)
        if new == old:
            return old
        return self._store(address.plural, "MODIFIED", new)

    def _replace(self, address: Address, body: Object) -> Object:
        old = self._find(address)
        if body["metadata"].get("resourceVersion") not in (None, old["metadata"]["resourceVersion"]):
            raise ApiError(409, "Conflict", "the object has been modified")
        return self._store(address.plural, "MODIFIED", {**body, "metadata": {**old["metadata"], **body["metadata"]}})

    def _delete(self, address: Address, options: Object, *, missing_ok: bool = False) -> Object:
        try:
            item = self._find(address)
        except ApiError:
            if missing_ok:
                return {}
            raise
        uid = (options.get("preconditions") or {}).get("uid")
        if uid not in (None, item["metadata"]["uid"]):
            raise ApiError(409, "Conflict", "the UID in the precondition does not match")
        graceful = address.plural == "pods" and options.get("gracePeriodSeconds") != 0 and self.grace > 0
        if graceful and "deletionTimestamp" not in item["metadata"]:
            marked = merge_patch(
                item, {"metadata": {"deletionTimestamp": stamp(self.clock()), "deletionGracePeriodSeconds": 0}}
            )
            item = self._store("pods", "MODIFIED", marked)
            self._later(self.grace, lambda: self._remove(item))
        elif not graceful:
            self._remove(item, plural=address.plural)
        return item

    def _remove(self, item: Object, plural: str = "pods") -> None:
        meta = item["metadata"]
        current = self.objects.get((plural, meta["namespace"], meta["name"]))
        if current is None or current["metadata"]["uid"] != meta["uid"]:
            return
        self._store(plural, "DELETED", copy.deepcopy(current))
        for kind, namespace, name in list(self.objects):
            child = self.objects.get((kind, namespace, name))
            owners = ((child or {}).get("metadata") or {}).get("ownerReferences") or ()
            if owners and all(owner["uid"] == meta["uid"] for owner in owners):
                self._delete(Address(kind, namespace, name, ""), {}, missing_ok=True)

    def _store(self, plural: str, type_: str, item: Object) -> Object:
        self.version += 1
        item = {**item, "metadata": {**item["metadata"], "resourceVersion": str(self.version)}}
        key = (plural, item["metadata"]["namespace"], item["metadata"]["name"])
        old = self.objects.get(key)
        if old is not None and old.get("spec") != item.get("spec"):
            item["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
        if type_ == "DELETED":
            self.objects.pop(key, None)
        else:
            self.objects[key] = item
        if self._losses.get(plural, 0) > 0:
            self._losses[plural] -= 1
        else:
            self.log.append((self.version, type_, plural, item))
            for watcher in self.watchers:
                if self._concerns(watcher, plural, item):
                    watcher.queue.put_nowait((type_, item))
        for hook in self.hooks:
            hook(type_, plural, item)
        return item

    def _concerns(self, watcher: Watcher, plural: str, item: Object) -> bool:
        address = watcher.address
        return (
            plural == address.plural
            and address.namespace in ("", item["metadata"]["namespace"])
            and watcher.wants(item)
        )

    def _break_watches(self) -> None:
        for watcher in list(self.watchers):
            watcher.queue.put_nowait(None)

    def _later(self, seconds: float, call: Callable[[], object]) -> None:
        async def wait() -> None:
            await asyncio.sleep(seconds)
            call()

        task = asyncio.ensure_future(wait())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
