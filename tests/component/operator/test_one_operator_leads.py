"""The Lease: one leads, a standby takes over, and who cannot renew ends before another begins."""

from __future__ import annotations

import asyncio
import time

import pytest
from support.fakeapi import FakeApi

from casewarden.adapters.kube.connection import Connection
from casewarden.adapters.kube.lease import LeaseLost, LeaseTimes, hold

TIMES = LeaseTimes(duration=4, renew=2, retry=1)


class Candidate:
    """An operator that does nothing but lead."""

    def __init__(self, api: FakeApi, times: LeaseTimes = TIMES) -> None:
        self.stop, self.leads, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.since = float("inf")
        connection = Connection(api.url)
        self.task = asyncio.create_task(hold(connection, "lease", "system", self._lead, self.stop, times=times))

    async def _lead(self) -> None:
        self.since = time.monotonic()
        self.leads.set()
        try:
            await self.stop.wait()
        finally:
            self.ended.set()

    async def leading(self, seconds: float = 20.0) -> None:
        async with asyncio.timeout(seconds):
            await self.leads.wait()

    async def kill(self) -> None:
        """End it so that it cannot give the Lease back."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def test_a_leader_that_stops_gives_the_lease_back_at_once() -> None:
    async with FakeApi() as api:
        first = Candidate(api)
        await first.leading()
        second = Candidate(api)
        await asyncio.sleep(TIMES.duration + 1.5)
        assert not second.leads.is_set(), "the first renews, and the second waits"
        first.stop.set()
        await first.task
        stopped = time.monotonic()
        await second.leading()
        assert second.since - stopped < TIMES.duration, "without waiting for the Lease to run out"
        second.stop.set()
        await second.task


async def test_a_leader_that_cannot_renew_ends_before_another_leads() -> None:
    async with FakeApi() as api:
        first = Candidate(api)
        await first.leading()
        second = Candidate(api)
        with api.away():
            with pytest.raises(LeaseLost):
                async with asyncio.timeout(20):
                    await first.task
            assert first.ended.is_set()
            assert not second.leads.is_set()
        await second.leading()
        second.stop.set()
        await second.task


async def test_a_standby_that_is_told_to_stop_stops() -> None:
    async with FakeApi() as api:
        first = Candidate(api)
        await first.leading()
        second = Candidate(api)
        await asyncio.sleep(0.2)
        second.stop.set()
        async with asyncio.timeout(5):
            await second.task
        assert not second.leads.is_set()
        await first.kill()


async def test_an_operator_that_fails_ends_with_its_own_error() -> None:
    async def fail() -> None:
        raise ValueError("told to")

    async with FakeApi() as api:
        with pytest.raises(ValueError, match="told to"):
            async with asyncio.timeout(10):
                await hold(Connection(api.url), "lease", "system", fail, asyncio.Event(), times=TIMES)


async def test_a_leader_that_sees_another_in_its_place_ends_at_once() -> None:
    """One that was frozen for a while has the whole time to renew before it; it must not lead meanwhile."""
    async with FakeApi() as api:
        first = Candidate(api, LeaseTimes(duration=60, renew=40, retry=1))
        await first.leading()
        api.update("leases", "system", "lease", {"spec": {"holderIdentity": "another"}})
        with pytest.raises(LeaseLost):
            async with asyncio.timeout(20):
                await first.task
        assert first.ended.is_set()
        assert api.get("leases", "system", "lease")["spec"]["holderIdentity"] == "another", "it is not given back"
