"""The way from one life of an operator to the fake API server and the fake relay, with all that can befall a request.

The operator's own client is used, retries, limiter and error handling included; only its sockets are not.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Self

import aiohttp
from support.fakeapi.parts import ApiError, address_of
from support.fakeapi.server import FakeApi

from casewarden.adapters.kube.client import KubeClient
from casewarden.adapters.kube.connection import Connection
from casewarden.adapters.kube.limiter import Limiter
from casewarden.ports.evidence import EvidenceUnavailable, MemoryEvidence

from .virtual import LoopClock

LATENCY = 0.004


@dataclass
class Fate:
    """What befalls the next ``times`` requests of a method to a kind.

    ``how``: ``busy`` (429), ``broken`` (500), ``conflict`` (409), ``cut`` (no effect, no answer), ``lost`` (effect, no
    answer), ``late`` (no answer, and the effect ``seconds`` later), ``slow`` (both after ``seconds``).
    """

    how: str
    method: str
    plural: str
    times: int
    seconds: float = 0.0

    def takes(self, method: str, plural: str) -> bool:
        if self.times > 0 and self.method in ("", method) and self.plural in ("", plural):
            self.times -= 1
            return True
        return False


@dataclass
class Call:
    """A request as the fake API server reads it."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    async def read(self) -> bytes:
        return self.body


@dataclass
class Answer:
    """A response as the client reads it."""

    status: int
    body: bytes = b""
    stream: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def content(self) -> Self:
        return self

    def iter_any(self) -> AsyncIterator[bytes]:
        found: AsyncIterator[bytes] = self.stream
        return found

    async def read(self) -> bytes:
        return self.body

    def release(self) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.stream is not None:
            await self.stream.aclose()


class Wire:
    """What one operator's requests go through; after ``die`` none has an answer."""

    def __init__(self, world: Any, kill_at: int | None, how: str, rng: Random) -> None:
        self.world, self._kill_at, self._how, self._rng = world, kill_at, how, rng
        self.sent = 0
        self.number: int = world.lives
        self.dead = asyncio.Event()

    async def die(self) -> None:
        self.dead.set()
        await asyncio.Event().wait()

    async def pass_through(self, effect: Callable[[], Any], fate: Fate | None, *, makes_a_pod: bool = False) -> Any:
        """Let ``effect`` happen, or not, before or after this life ends."""
        self.sent += 1
        await asyncio.sleep(LATENCY * self._rng.uniform(0.5, 2.0))
        if self.dead.is_set():
            await self.die()
        if self._kill_at is not None and self.sent > self._kill_at:
            if self._how == "after":
                effect()
            elif self._how == "late":
                self.world.later(self._rng.uniform(0.01, 20.0), effect, makes_a_pod=makes_a_pod)
            await self.die()
        if fate is not None and fate.how in ("late", "slow"):
            if fate.how == "late":
                self.world.later(fate.seconds, effect, makes_a_pod=makes_a_pod)
                await asyncio.sleep(min(fate.seconds, 2.0))
                raise TimeoutError("told to")
            await asyncio.sleep(fate.seconds)
            if self.dead.is_set():
                await self.die()
        answer = effect()
        await asyncio.sleep(LATENCY * self._rng.uniform(0.5, 2.0))
        if self.dead.is_set():
            await self.die()
        return answer


class WireClient(KubeClient):
    """The operator's client on a wire."""

    def __init__(self, wire: Wire, clock: LoopClock) -> None:
        super().__init__(Connection("http://fake"), clock=clock, limiter=Limiter(50, 100, 32, clock))
        self._wire = wire

    async def __aenter__(self) -> Self:
        return self

    async def _send(  # type: ignore[override]
        self, method: str, path: str, *, body: Any = None, query: dict[str, str] | None = None,
        content_type: str = "application/json", **_: Any,
    ) -> Answer:  # fmt: skip
        wire, api = self._wire, self._wire.world.api
        path = path.removeprefix("http://fake")
        call = Call(method, path, query or {}, {"Content-Type": content_type}, json.dumps(body or {}).encode())
        plural = address_of(path).plural
        fate = next((item for item in wire.world.fates if item.takes(method, plural)), None)
        if fate is not None and fate.how in ("busy", "broken", "conflict"):
            await asyncio.sleep(LATENCY)
            status = {"busy": 429, "broken": 500, "conflict": 409}[fate.how]
            return Answer(status, json.dumps(ApiError(status, "Conflict", "told to").body).encode())
        if wire.world.api_away or (fate is not None and fate.how == "cut"):
            await asyncio.sleep(LATENCY)
            raise aiohttp.ServerDisconnectedError
        if call.query.get("watch"):
            return await self._watch(api, call)
        wire.world.invariants.asked(method, address_of(path))
        wire.world.requests.append((wire.number, method, plural, address_of(path).name))
        makes_a_pod = (method, plural) == ("POST", "pods")
        answer: Answer = await wire.pass_through(lambda: _answer(api, call), fate, makes_a_pod=makes_a_pod)
        wire.world.answers[method, plural, answer.status] += 1
        if fate is not None and fate.how == "lost":
            raise aiohttp.ServerDisconnectedError
        return answer

    async def _watch(self, api: FakeApi, call: Call) -> Answer:
        stream = api.follow(address_of(call.path), call.query)
        try:
            await anext(stream)
        except ApiError as error:
            return Answer(error.status, json.dumps(error.body).encode())
        return Answer(200, stream=stream)


def _answer(api: FakeApi, call: Call) -> Answer:
    """Do what a request asks, at one moment."""
    address = address_of(call.path)
    try:
        if call.method == "GET" and address.sub == "log":
            key = (address.namespace, address.name, call.query["container"])
            return Answer(200, api.logs.get(key, b"")[: int(call.query["limitBytes"])])
        if call.method == "GET" and address.name:
            found = api._find(address)
        elif call.method == "GET":
            found = api._list(call, address)  # type: ignore[arg-type]
        elif call.method == "POST":
            found = api._create(address, json.loads(call.body))
        elif call.method == "PATCH":
            found = api._patch(address, json.loads(call.body), apply="apply-patch" in call.headers["Content-Type"])
        else:
            found = api._delete(address, json.loads(call.body))
    except ApiError as error:
        return Answer(error.status, json.dumps(error.body).encode())
    return Answer(200, json.dumps(found).encode())


class WireEvidence:
    """The operator's relay on a wire."""

    def __init__(self, wire: Wire, target: MemoryEvidence) -> None:
        self._wire, self._target = wire, target

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._target, name)

        async def call(*args: Any) -> Any:
            fate = next((item for item in self._wire.world.fates if item.takes("RELAY", name)), None)
            if fate is not None and fate.how not in ("slow", "lost", "late"):
                await asyncio.sleep(LATENCY)
                raise EvidenceUnavailable("told to")
            # The fake answers at once: its coroutines never wait.
            answer = await self._wire.pass_through(lambda: _at_once(function(*args)), fate)
            if isinstance(answer, Exception):
                raise answer
            if fate is not None and fate.how == "lost":
                raise EvidenceUnavailable("told to")
            return answer

        return call


def _at_once(work: Any) -> Any:
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    except Exception as error:
        return error
    raise AssertionError("the fake relay waited")
