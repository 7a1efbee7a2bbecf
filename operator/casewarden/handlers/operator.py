"""The operator's life: kopf starts it, hands it events, and stops it."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from typing import Any

import kopf

from casewarden.adapters.kube.connection import Connection, connect
from casewarden.adapters.kube.lease import hold
from casewarden.api.catalogue import Catalogue
from casewarden.controller.health import serve_standby
from casewarden.handlers.configuration import kopf_settings, register_login
from casewarden.handlers.evalruns import register
from casewarden.settings import Settings
from casewarden.startup import definitions_known
from casewarden.wiring import Operator, read_catalogue

__all__ = ["main", "run"]

log = logging.getLogger(__name__)


async def run(
    connection: Connection,
    catalogue: Catalogue,
    settings: Settings,
    stop: asyncio.Event,
    ready: asyncio.Event | None = None,
    **parts: Any,
) -> None:
    """Run the operator until ``stop`` is set; raises where kopf or a part of the operator cannot go on.

    ``parts`` are those of ``Operator`` that stand in for the usual ones.
    """
    handlers = kopf.OperatorRegistry()
    register_login(handlers, connection)
    async with Operator(connection, catalogue, settings, **parts) as operator:

        async def wind_up() -> None:
            # kopf has a signal handler of its own; without this it would wait for the flag that we did not set.
            stop.set()
            await operator.stop()

        register(handlers, operator.registry, wind_up)
        # At its end kopf cancels tasks that began after it: the operator's own began before, and end after.
        await kopf.operator(
            registry=handlers,
            settings=kopf_settings(),
            # kopf's default asks for a user name, which a container's numeric user does not have.
            identity=f"casewarden@{socket.gethostname()}",  # type: ignore[arg-type]  # a NewType that is not public
            standalone=True,
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
            stop_flag=stop,
            ready_flag=ready,
        )


async def main(settings: Settings) -> None:
    """Find the cluster, read the catalogue, run until SIGTERM or SIGINT."""
    connection = await connect(settings.kubeconfig, settings.context)
    catalogue = read_catalogue(settings.catalogue)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await definitions_known(connection, settings.host, settings.port, stop)
    if stop.is_set():
        return
    if settings.lease:
        await _stand_by(connection, catalogue, settings, settings.lease, stop)
    else:
        await run(connection, catalogue, settings, stop)
    log.info("the operator has stopped")


async def _stand_by(
    connection: Connection, catalogue: Catalogue, settings: Settings, lease: str, stop: asyncio.Event
) -> None:
    """Run the operator while it holds the Lease; until then answer that it is well and waits."""
    pages = await serve_standby(settings.host, settings.port)

    async def lead() -> None:
        await pages.cleanup()
        await run(connection, catalogue, settings, stop)

    try:
        await hold(connection, lease, connection.namespace, lead, stop)
    finally:
        await pages.cleanup()
