"""Before the operator plays anything: wait until the API server knows this version's resources.

It waits and says why, in its log and at ``/readyz``, where ending would only make the kubelet start it again: CRDs that
come later are noticed within seconds.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from contextlib import suppress

from casewarden.adapters.kube.client import KubeClient
from casewarden.adapters.kube.connection import Connection
from casewarden.controller.health import serve_waiting
from casewarden.core.definitions import PUBLISHED, complaint
from casewarden.ports.kube import Forbidden, KubeError, NotFound

__all__ = ["definitions_known"]

log = logging.getLogger(__name__)

_LOUD_EVERY = 30


async def definitions_known(
    connection: Connection, host: str, port: int, stop: asyncio.Event, *, every_seconds: float = 2.0
) -> None:
    """Return when the CRDs are there and as new as this operator, or at ``stop``."""
    async with KubeClient(connection) as client:
        why = await _look(client)
        if why is None:
            return
        said = why
        pages = await serve_waiting(host, port, lambda: said)
        try:
            for count in itertools.count():
                if count % _LOUD_EVERY == 0 or why != said:
                    log.error("waiting: %s", why)
                said = why
                with suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), every_seconds)
                if stop.is_set():
                    return
                why = await _look(client)
                if why is None:
                    log.info("the CRDs are there")
                    return
        finally:
            await pages.cleanup()


async def _look(client: KubeClient) -> str | None:
    try:
        return complaint(await client.document(PUBLISHED))
    except NotFound:
        return complaint(None)
    except Forbidden as error:
        # Clusters may keep their schemas from accounts; then nobody can tell.
        log.warning("the CRDs are not checked: %s", error)
        return None
    except KubeError as error:
        return f"the API server cannot be asked for its CRDs: {error}"
