"""One operator at a time, by a Lease: ``kubernetes.aio.leaderelection`` around whatever only the leader may do.

A Lease does not fence: a leader that lost its place may have requests on their way. Every write of the operator's is
guarded for that, and who lost its place ends.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration, V1Lease, V1ObjectMeta
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.leaderelection.electionconfig import Config
from kubernetes.aio.leaderelection.leaderelection import LeaderElection
from kubernetes.aio.leaderelection.resourcelock.leaselock import LeaseLock

from casewarden.adapters.proxies import proxy_for

from .connection import Connection

__all__ = ["LeaseLost", "LeaseTimes", "hold"]

log = logging.getLogger(__name__)
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError)


class LeaseLost(Exception):
    """The Lease could not be renewed in time: another may lead by now."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Seconds. A standby leads at most ``duration`` and ``retry`` after the leader's last sign of life.

    A leader that cannot renew gives up after ``renew``, before a standby may begin.
    """

    duration: int = 9
    renew: int = 6
    retry: int = 1


class _Lock(LeaseLock):
    """The library's, but an API server that is away is a failed try and not the end, and no try outlasts its turn.

    ``overtaken`` is set when another is seen to lead where ``is_ours``: the library would go on trying for a while.
    """

    def __init__(self, *args: Any, seconds: float) -> None:
        super().__init__(*args)
        self._seconds = seconds
        self.is_ours = False
        self.overtaken = asyncio.Event()

    async def get(self, name: str, namespace: str) -> tuple[bool, Any]:
        try:
            async with asyncio.timeout(self._seconds):
                found: tuple[bool, Any] = await super().get(name, namespace)
        except _BROKEN as error:
            return False, ApiException(status=0, reason=f"{type(error).__name__}: {error}")
        if found[0] and self.is_ours and found[1].holder_identity not in (None, "", self.identity):
            self.overtaken.set()
        return found

    async def create(self, name: str, namespace: str, election_record: Any) -> bool:
        return await self._try(self._create(name, namespace, election_record))

    async def _create(self, name: str, namespace: str, election_record: Any) -> bool:
        # Not the library's: in kubernetes 37 its own client refuses what it asks (pretty=True).
        body = V1Lease(metadata=V1ObjectMeta(name=name), spec=self.update_lease(election_record))
        try:
            self.lease_reference = await self.api_instance.create_namespaced_lease(namespace, body)
        except ApiException as error:
            log.info("the Lease is not created: %s", error.reason)
            return False
        return True

    async def update(self, name: str, namespace: str, updated_record: Any) -> bool:
        return await self._try(super().update(name, namespace, updated_record))

    async def _try(self, work: Awaitable[bool]) -> bool:
        try:
            async with asyncio.timeout(self._seconds):
                return await work
        except _BROKEN as error:
            log.warning("the Lease cannot be written: %s: %s", type(error).__name__, error)
            return False

    async def release(self) -> None:
        """Let a standby lead at once, where the Lease is still ours."""
        await self.get(self.name, self.namespace)
        lease = self.lease_reference
        if lease is None or lease.spec is None or lease.spec.holder_identity != self.identity:
            return
        lease.spec.holder_identity = ""
        try:
            async with asyncio.timeout(self._seconds):
                await self.api_instance.replace_namespaced_lease(self.name, self.namespace, lease)
        except (ApiException, *_BROKEN) as error:
            log.warning("the Lease is not given back: %s", error)


async def hold(
    connection: Connection,
    name: str,
    namespace: str,
    lead: Callable[[], Awaitable[None]],
    stop: asyncio.Event,
    *,
    times: LeaseTimes | None = None,
) -> None:
    """Wait for the Lease, then ``lead`` for as long as it is held; returns when ``lead`` does, or at ``stop``.

    Raises ``LeaseLost`` where it is lost, and whatever ``lead`` raises. A Lease that is no longer needed is given back.
    """
    times = times or LeaseTimes()
    ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def leading() -> None:
        log.info("this operator leads")
        lock.is_ours = True
        work = asyncio.ensure_future(lead())
        overtaken = asyncio.ensure_future(lock.overtaken.wait())
        try:
            await asyncio.wait((work, overtaken), return_when=asyncio.FIRST_COMPLETED)
        finally:
            by_itself = work.done()
            if not by_itself:
                log.error("the Lease %s/%s is another's or nobody's: this operator ends", namespace, name)
            for task in (work, overtaken):
                task.cancel()
            await asyncio.gather(work, overtaken, return_exceptions=True)
            error = work.exception() if by_itself and not work.cancelled() else LeaseLost(name)
            if error is None:
                ended.set_result(None)
            else:
                ended.set_exception(error)

    async def lost() -> None:
        log.error("the Lease %s/%s could not be renewed for %d s: this operator ends", namespace, name, times.renew)

    # Of this process and not of this pod: a container that starts again is another operator.
    identity = f"{socket.gethostname()}_{secrets.token_hex(4)}"
    async with ApiClient(_configuration(connection)) as client:
        lock = _Lock(name, namespace, identity, client, seconds=float(times.renew) / 2)
        election = LeaderElection(Config(lock, times.duration, times.renew, times.retry, leading, lost))
        log.info("%s waits for the Lease %s/%s", identity, namespace, name)
        electing = asyncio.create_task(election.run())
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((electing, stopping, ended), return_when=asyncio.FIRST_COMPLETED)
            if stopping.done() and election.observed_record is not None and _leads(election, identity):
                # It stops by itself; until then it goes on to lead.
                await asyncio.wait((electing, ended), return_when=asyncio.FIRST_COMPLETED)
            if electing.done():
                await electing
                await asyncio.wait((ended,), timeout=times.duration)
            if ended.done():
                ended.result()
        finally:
            for task in (electing, stopping):
                task.cancel()
            await asyncio.gather(electing, stopping, return_exceptions=True)
            if not isinstance(ended.exception() if ended.done() else None, LeaseLost):
                await lock.release()


def _leads(election: LeaderElection, identity: str) -> bool:
    record = election.observed_record
    return record is not None and record.holder_identity == identity


def _configuration(connection: Connection) -> Configuration:
    # The library has no types for what may be set.
    configuration: Any = Configuration(host=connection.server)
    configuration.ssl_ca_cert = connection.ca_file
    configuration.cert_file, configuration.key_file = connection.certificate_file, connection.key_file
    configuration.verify_ssl = not connection.insecure
    configuration.proxy = proxy_for(connection.server)

    async def refresh(target: Configuration) -> None:
        if connection.token is not None:
            target.api_key["authorization"] = await connection.token.header() or ""

    if connection.token is not None:
        # The library asks the hook only where there is a key already.
        configuration.api_key["authorization"] = ""
        configuration.refresh_api_key_hook = refresh
    made: Configuration = configuration
    return made
