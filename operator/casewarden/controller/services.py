"""What every run task works with: one of each, made once by the wiring."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from casewarden.api.catalogue import Catalogue
from casewarden.controller.events import Announcer
from casewarden.controller.pod_store import PodStore
from casewarden.controller.slots import Slots
from casewarden.controller.status_writer import StatusBudget
from casewarden.controller.timers import Timers
from casewarden.core.network import NetworkContext
from casewarden.ports.clock import Clock
from casewarden.ports.evidence import Evidence
from casewarden.ports.kube import KubeApi
from casewarden.ports.metrics import Metrics

__all__ = ["Services", "Tuning"]


@dataclass(frozen=True, slots=True)
class Tuning:
    """Times in seconds that tests shorten."""

    status_interval: float = 1.0
    heartbeat: float = 60.0
    alive_check: float = 300.0
    retry_ceiling: float = 30.0
    workspace_patience: float = 30.0
    store_patience: float = 900.0
    plan_tries: int = 3


@dataclass(frozen=True)
class Services:
    """Seams and shared state. ``poke`` asks the informer for a list of all pods, ``relay_address`` finds its IP."""

    api: KubeApi
    evidence: Evidence
    clock: Clock
    metrics: Metrics
    catalogue: Catalogue
    network: NetworkContext
    pods: PodStore
    synced: asyncio.Event
    poke: Callable[[], None]
    timers: Timers
    announcer: Announcer
    budget: StatusBudget
    slots: Slots
    tuning: Tuning = field(default_factory=Tuning)
    entropy: Callable[[int], bytes] = secrets.token_bytes
    relay_address: Callable[[], Awaitable[str | None]] = field(default=lambda: _nowhere())


async def _nowhere() -> str | None:
    return None
