"""The assigner's hands: what every run has and wants, solved anew when any of it changes.

A slot is given back when its pod's task is over and the run looks next, before the run may start another pod: so the
longest-waiting gets it, not the quickest. Nothing is polled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from casewarden.api.catalogue import CataloguePools
from casewarden.controller.identity import RunIdentity
from casewarden.controller.pod_store import PodStore
from casewarden.core import facts
from casewarden.core.assigner import Demand, Pool, assign
from casewarden.ports.clock import Clock
from casewarden.ports.kube import Manifest
from casewarden.ports.metrics import Metric, Metrics, Sample

__all__ = ["Slots", "pool_limits"]

# Pods of runs that were not seen yet hold slots that nobody can count: nothing is given out for this long at most.
_STRANGERS_SECONDS: Final = 30.0


def pool_limits(pools: CataloguePools) -> dict[Pool, int]:
    """Return the catalogue's pools as the assigner has them."""
    return {
        **{Pool("agents", name): pool.concurrency for name, pool in pools.agents.items()},
        **{Pool("tasks", name): pool.concurrency for name, pool in pools.tasks.items()},
    }


@dataclass
class _Member:
    run: RunIdentity
    agents: str | None
    tasks: str | None
    since: float
    priority: int = 0
    used: int = 0
    granted: int = 0
    wanted: int = 0
    phase: Literal["coming", "playing", "gone"] = "coming"

    @property
    def demand(self) -> Demand:
        return Demand(
            self.run.uid, self.agents, self.tasks, self.wanted, self.used, self.granted, self.priority, self.since
        )


class Slots:
    """One for all runs. ``wake`` is called with the UID of a run that got more slots."""

    def __init__(
        self,
        limits: Mapping[Pool, int],
        pods: PodStore,
        *,
        clock: Clock,
        metrics: Metrics,
        wake: Callable[[str], None],
    ) -> None:
        self._limits, self._pods = dict(limits), pods
        self._clock, self._metrics, self._wake = clock, metrics, wake
        self._members: dict[str, _Member] = {}
        self._kept: Mapping[Pool, int] = {}
        self._scheduled: asyncio.Handle | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._strangers_until = clock.monotonic() + _STRANGERS_SECONDS

    def join(self, body: Manifest) -> None:
        """Take note of a run that is going on; its pods hold slots from now on."""
        run, spec = RunIdentity.of(body), body.get("spec") or {}
        task = (spec.get("task") or {}).get("name")
        endpoint = ((spec.get("candidate") or {}).get("model") or {}).get("endpoint")
        self._members[run.uid] = _Member(
            run,
            endpoint if Pool("agents", str(endpoint)) in self._limits else None,
            task if Pool("tasks", str(task)) in self._limits else None,
            since=self._clock.now(),
            priority=int(spec.get("priority") or 0),
        )
        self._changed()

    def leave(self, run_uid: str) -> None:
        """Take note of a run that is over or deleted; what is left of its pods still holds slots."""
        if (member := self._members.get(run_uid)) is not None:
            member.phase = "gone"
            self._changed()

    def pause(self, run_uid: str) -> None:
        """Take back what a run does not use: it was stopped by an error and goes on later."""
        if (member := self._members.get(run_uid)) is not None:
            member.wanted = member.used
            self._changed()

    def limits(self, run_uid: str) -> bool:
        """Tell whether a run is in a pool."""
        member = self._members.get(run_uid)
        return member is not None and _is_limited(member)

    def before(self, run_uid: str, used: int, priority: int) -> int | None:
        """Return how many slots a run has in all, None without a limit; it uses that many now, and is about to step."""
        member = self._members.get(run_uid)
        if member is None or not _is_limited(member):
            return None
        ended = max(0, member.used - used)
        moved = ended > 0 or (priority, used, "playing") != (member.priority, member.used, member.phase)
        member.granted = max(used, member.granted - ended)
        if ended and member.granted == 0:
            member.since = self._clock.now()
        member.used, member.priority, member.phase = used, priority, "playing"
        if moved:
            self._solve(but=run_uid)
        return member.granted

    def after(self, run_uid: str, used: int, wanted: int) -> None:
        """Take note of what a run uses after its step, creates included, and could use if it had slots enough."""
        member = self._members.get(run_uid)
        if member is None or not _is_limited(member):
            return
        before = (member.wanted, max(member.used, member.granted))
        if member.wanted <= member.granted == 0 < wanted:
            member.since = self._clock.now()
        member.used, member.wanted = used, wanted
        if before != (member.wanted, max(member.used, member.granted)):
            self._changed()

    def pods_changed(self) -> None:
        """Take note of a change of the pods of a run that nobody plays."""
        self._changed()

    def table(self) -> dict[str, Any]:
        """Return who has what, for people and programs."""
        now = self._clock.now()
        members = [member for member in self._members.values() if _is_limited(member)]
        return {
            "pools": [
                {"side": pool.side, "name": pool.name, "limit": limit, **self._figures(pool)}
                for pool, limit in sorted(self._limits.items())
            ],
            "runs": [
                {
                    "namespace": member.run.namespace,
                    "name": member.run.name,
                    "agents": member.agents,
                    "tasks": member.tasks,
                    "priority": member.priority,
                    "used": member.used,
                    "slots": member.granted,
                    "wanted": max(member.wanted, member.used),
                    "waitingSeconds": _waits(member, now),
                }
                for member in sorted(members, key=lambda item: (-item.priority, str(item.run)))
            ],
        }

    def close(self) -> None:
        """Give nothing out any more."""
        for handle in (self._scheduled, self._waiting):
            if handle is not None:
                handle.cancel()

    def measure(self) -> None:
        """Set the gauges."""
        samples: list[Sample] = []
        for pool, limit in sorted(self._limits.items()):
            for state, value in {"limit": limit, **self._figures(pool)}.items():
                samples.append(({"side": pool.side, "pool": pool.name, "state": state}, value))
        self._metrics.replace(Metric.SLOTS, samples)
        waits = [_waits(member, self._clock.now()) for member in self._members.values() if _is_limited(member)]
        self._metrics.set(Metric.SLOTS_LONGEST_WAIT, max(waits, default=0.0))

    def _figures(self, pool: Pool) -> dict[str, int]:
        members = [item for item in self._members.values() if pool in _pools(item)]
        return {
            "used": sum(item.used for item in members),
            "assigned": sum(max(item.granted, item.used) for item in members),
            "wanted": sum(max(item.wanted, item.used) for item in members),
            "kept": self._kept.get(pool, 0),
        }

    def _changed(self) -> None:
        """Solve soon, once for all that changes in this turn of the loop."""
        if self._limits and self._scheduled is None:
            self._scheduled = asyncio.get_running_loop().call_soon(self._solve_soon)

    def _solve_soon(self) -> None:
        self._scheduled = None
        self._solve()

    def _solve(self, but: str | None = None) -> None:
        """Give out what is free and wake whoever got something, but for the run that asks."""
        for uid, member in list(self._members.items()):
            if member.phase != "playing":
                member.used = member.wanted = member.granted = self._alive(uid)
                if member.phase == "gone" and member.used == 0:
                    del self._members[uid]
        if self._has_strangers():
            return
        started = self._clock.monotonic()
        demands = [member.demand for member in self._members.values() if _is_limited(member)]
        assignment = assign(self._limits, demands, self._clock.now())
        self._kept = assignment.kept
        self._metrics.observe(Metric.SLOTS_SOLVE, self._clock.monotonic() - started)
        for uid, slots in assignment.slots.items():
            member = self._members[uid]
            more, member.granted = slots > member.granted, slots
            if more and member.phase == "playing":
                member.since = self._clock.now()
                if uid != but:
                    self._wake(uid)

    def _alive(self, run_uid: str) -> int:
        now = self._clock.now()
        return sum(pod.role == "case" and not facts.has_ended(pod, now) for pod in self._pods.pods(run_uid))

    def _has_strangers(self) -> bool:
        """Tell whether there are pods of runs that were not seen yet, for as long as they are waited for."""
        left = self._strangers_until - self._clock.monotonic()
        if left <= 0 or not any(uid not in self._members and self._alive(uid) for uid in self._pods.run_uids()):
            return False
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().call_later(left, self._changed)
        return True


def _is_limited(member: _Member) -> bool:
    return member.agents is not None or member.tasks is not None


def _pools(member: _Member) -> set[Pool]:
    agents = {Pool("agents", member.agents)} if member.agents is not None else set()
    return agents | ({Pool("tasks", member.tasks)} if member.tasks is not None else set())


def _waits(member: _Member, now: float) -> float:
    """Return for how many seconds a run has had no slot that wants one."""
    return round(max(0.0, now - member.since), 1) if member.wanted > member.granted == 0 else 0.0
