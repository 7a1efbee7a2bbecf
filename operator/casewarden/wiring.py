"""Puts the operator together: the one place that knows adapters and controller alike.

``Operator`` has everything but the events of the two kinds, which kopf delivers (``handlers``); tests deliver them by
themselves.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import yaml
from aiohttp import web
from pydantic import ValidationError

from casewarden.adapters.kube.client import KubeClient
from casewarden.adapters.kube.connection import Connection, FileToken
from casewarden.adapters.kube.informer import Informer
from casewarden.adapters.kube.limiter import Limiter
from casewarden.adapters.metrics import PrometheusMetrics
from casewarden.adapters.relay_client import RelayClient
from casewarden.api.catalogue import Catalogue
from casewarden.api.names import LABEL_MANAGED_BY, MANAGER
from casewarden.controller.bootstrap import network_context
from casewarden.controller.events import Announcer
from casewarden.controller.health import Health, LoopLag, serve
from casewarden.controller.pod_store import PodStore
from casewarden.controller.registry import Registry
from casewarden.controller.services import Services, Tuning
from casewarden.controller.slots import Slots, pool_limits
from casewarden.controller.status_writer import StatusBudget
from casewarden.controller.timers import Timers
from casewarden.ports.clock import Clock, SystemClock
from casewarden.ports.evidence import Evidence
from casewarden.ports.kube import PODS, KubeApi
from casewarden.ports.metrics import Metric
from casewarden.settings import Settings

__all__ = ["CatalogueError", "Operator", "read_catalogue"]

log = logging.getLogger(__name__)


class CatalogueError(Exception):
    """The catalogue cannot be used; the message names the file, the field and what is wrong with it."""


def read_catalogue(path: str) -> Catalogue:
    """Read the administrator's catalogue."""
    try:
        document = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        catalogue = Catalogue.model_validate(document or {})
        network_context(catalogue.relay_url, dns=True)
        return catalogue
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        where = "".join(f"{part}." for part in detail["loc"])[:-1]
        raise CatalogueError(": ".join(filter(None, (path, where, detail["msg"])))) from None
    except (OSError, yaml.YAMLError, ValueError) as error:
        raise CatalogueError(f"{path}: {error}") from None


class Operator:
    """One operator without its event source. Use as an async context manager; ``registry`` takes the events.

    ``api`` and ``evidence`` stand in for the clients where they are given.
    """

    def __init__(
        self,
        connection: Connection,
        catalogue: Catalogue,
        settings: Settings,
        *,
        clock: Clock | None = None,
        tuning: Tuning | None = None,
        api: KubeApi | None = None,
        evidence: Evidence | None = None,
    ) -> None:
        self._connection, self._catalogue, self._settings = connection, catalogue, settings
        self._clock = clock or SystemClock()
        self._tuning = tuning or Tuning(status_interval=settings.status_interval)
        self._api, self._evidence = api, evidence
        self._stack = AsyncExitStack()
        self._parts: list[asyncio.Task[None]] = []
        self._informers: list[Informer] = []
        self._last_address: str | None = None
        self.metrics = PrometheusMetrics()
        self.address = ""

    async def __aenter__(self) -> Self:
        settings, clock = self._settings, self._clock
        api, evidence = await self._api_client(), await self._evidence_client()
        self._last_address = await self._relay_address()
        timers, lag, synced = Timers(clock), LoopLag(clock, self.metrics), asyncio.Event()
        pods = PodStore(lambda run_uid: self.registry.wake(run_uid))
        self._announcer = Announcer(api, clock)
        limits = pool_limits(self._catalogue.pools)
        self._slots = Slots(
            limits, pods, clock=clock, metrics=self.metrics, wake=lambda run_uid: self.registry.wake(run_uid)
        )
        self.services = Services(
            api=api,
            evidence=evidence,
            clock=clock,
            metrics=self.metrics,
            catalogue=self._catalogue,
            network=network_context(self._catalogue.relay_url, dns=self._last_address is None),
            pods=pods,
            synced=synced,
            poke=self._poke,
            timers=timers,
            announcer=self._announcer,
            budget=StatusBudget(settings.status_qps, max(1, int(settings.status_qps)), clock),
            slots=self._slots,
            tuning=self._tuning,
            wake_run=lambda run_uid: self.registry.wake(run_uid),
            audit_ended=lambda: self.registry.wake_all(),
            relay_address=self._relay_address,
        )
        self.registry = Registry(self.services)
        self._informers = [
            Informer(
                api,
                PODS,
                namespace,
                f"{LABEL_MANAGED_BY}={MANAGER}",
                pods,
                clock=clock,
                metrics=self.metrics,
                relist_seconds=settings.relist_seconds,
                retry_ceiling=self._tuning.retry_ceiling,
            )
            for namespace in settings.namespaces or (None,)
        ]
        self._parts = [
            asyncio.create_task(timers.run(), name="the heap of timers"),
            asyncio.create_task(lag.run(), name="the loop's watch"),
        ]
        self._parts += [asyncio.create_task(item.run(), name="an informer") for item in self._informers]
        self._syncing = asyncio.create_task(self._sync())
        health = Health(clock, lag, self._informer_turns, self.registry.turns, self._ended_parts, synced.is_set)
        runner = await serve(health, self._metrics_text, self._slots.table, settings.host, settings.port)
        self._stack.push_async_callback(runner.cleanup)
        self.address = _address(runner)
        self.metrics.set(Metric.LEADER, 1)
        log.info("health and metrics on %s, API server %s", self.address, self._connection.server)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        await self._stack.aclose()

    async def stop(self) -> None:
        """Stop everything but the pages; the runs go on when an operator sees them next."""
        await self.registry.close()
        self._slots.close()
        for part in (self._syncing, *self._parts):
            part.cancel()
        await asyncio.gather(self._syncing, *self._parts, return_exceptions=True)
        await self._announcer.close()

    async def _api_client(self) -> KubeApi:
        if self._api is not None:
            return self._api
        settings = self._settings
        limiter = Limiter(settings.qps, settings.burst, settings.in_flight, self._clock)
        client = KubeClient(self._connection, clock=self._clock, limiter=limiter, metrics=self.metrics)
        return await self._stack.enter_async_context(client)

    async def _evidence_client(self) -> Evidence:
        if self._evidence is not None:
            return self._evidence
        url = self._settings.relay_url or self._catalogue.relay_url
        token = FileToken(Path(self._settings.relay_token_file))
        return await self._stack.enter_async_context(RelayClient(url, token, clock=self._clock))

    def _poke(self) -> None:
        for informer in self._informers:
            informer.poke()

    async def _sync(self) -> None:
        await asyncio.gather(*(informer.synced.wait() for informer in self._informers))
        self.services.synced.set()
        log.info("all pods are listed")

    def _informer_turns(self) -> Sequence[tuple[str, float]]:
        names = self._settings.namespaces or ("all namespaces",)
        return [(f"pods in {name}", item.last_turn) for name, item in zip(names, self._informers, strict=True)]

    def _ended_parts(self) -> list[str]:
        return [part.get_name() for part in self._parts if part.done()]

    def _metrics_text(self) -> bytes:
        self.registry.measure()
        self._slots.measure()
        return self.metrics.text()

    async def _relay_address(self) -> str | None:
        """Find the relay's IP address, so that case pods need no DNS; None where its name does not resolve here."""
        if self._settings.relay_address:
            return self._settings.relay_address
        parts = urlsplit(self._catalogue.relay_url)
        look_up: Callable[..., Awaitable[list[Any]]] = asyncio.get_running_loop().getaddrinfo
        try:
            async with asyncio.timeout(5):
                found = await look_up(parts.hostname, parts.port, type=socket.SOCK_STREAM)
        except (OSError, TimeoutError):
            # The policies were made for pods that need no DNS, or that do: what was found first stays so.
            return self._last_address
        self._last_address = str(found[0][4][0])
        return self._last_address


def _address(runner: web.AppRunner) -> str:
    host, port = runner.addresses[0][:2]
    return f"http://{host}:{port}"
