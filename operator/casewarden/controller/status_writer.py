"""A run's status on its way to the API server: at most once a second, under a budget for all runs, never stale.

A write is a merge patch of what differs, guarded by the version that it was computed against. Where somebody was
faster, the object is read again and the write repeated over it: the operator is the only one that writes statuses.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from casewarden.api.conditions import ConditionType, is_true
from casewarden.api.reasons import RunReason
from casewarden.ports.clock import Clock
from casewarden.ports.kube import EVAL_RUNS, Conflict, Kind, KubeApi, Manifest, NotFound
from casewarden.ports.metrics import Metric, Metrics

__all__ = ["Overtaken", "RunGone", "StatusBudget", "StatusWriter", "difference"]

_TRIES = 6


class RunGone(Exception):
    """The run was deleted, or another has its name now: nothing of it may be written any more."""


class Overtaken(Exception):
    """Another operator has counted more, or ended the run: what this one knows is old, and must be read anew."""


class StatusBudget:
    """How many statuses all runs together may write: ``rate`` a second, ``burst`` at once."""

    def __init__(self, rate: float, burst: int, clock: Clock) -> None:
        self._rate, self._burst, self._clock = rate, float(burst), clock
        self._tokens, self._at = self._burst, clock.monotonic()

    def take(self, *, force: bool = False) -> float:
        """Spend one write and return 0, or return the seconds to wait for one. ``force`` runs into debt instead."""
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        if self._tokens >= 1 or force:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._rate


def difference(old: Any, new: Any) -> Any:
    """Return the merge patch (RFC 7386) that turns ``old`` into ``new``; an empty dictionary where they are equal."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if key not in old:
            patch[key] = value
        elif isinstance(value, dict) and isinstance(old[key], dict):
            if inner := difference(old[key], value):
                patch[key] = inner
        elif value != old[key]:
            patch[key] = value
    return patch


def _is_behind(status: Mapping[str, Any], written: Mapping[str, Any]) -> bool:
    """Tell whether a status was made without knowing the one that is there: other seeds, fewer rows, no end."""
    if written.get("seeds") not in (None, status.get("seeds")) and status.get("seeds"):
        return True
    rows, more = ((item.get("ledger") or {}).get("rows", 0) for item in (status, written))
    failed: Mapping[str, Any] = next(
        (item for item in status.get("conditions") or () if item["type"] == ConditionType.FAILED), {}
    )
    if rows < more and failed.get("reason") != RunReason.LEDGER_LOST:
        return True
    # The last word was spoken: what another operator would say otherwise comes of a view that is older, or of none.
    return is_true(written.get("conditions") or (), ConditionType.FINISHED)


class StatusWriter:
    """The status of one run or audit. ``observed`` is told of every newer object that a write brings back."""

    def __init__(
        self,
        api: KubeApi,
        body: Manifest,
        *,
        clock: Clock,
        budget: StatusBudget,
        metrics: Metrics,
        interval: float,
        observed: Callable[[Manifest], None],
        kind: Kind = EVAL_RUNS,
    ) -> None:
        self._kind = kind
        self._api, self._clock, self._budget, self._metrics = api, clock, budget, metrics
        self._interval, self._observed = interval, observed
        meta = body["metadata"]
        self._namespace, self._name, self._uid = meta["namespace"], meta["name"], meta["uid"]
        self._version: str = meta["resourceVersion"]
        self._written: dict[str, Any] = copy.deepcopy(body.get("status") or {})
        self._written_at = float("-inf")
        self.writes = 0

    @property
    def written(self) -> dict[str, Any]:
        """The status that the API server has."""
        return copy.deepcopy(self._written)

    def saw(self, body: Manifest) -> None:
        """Take over a newer object, so that the next write is not a conflict."""
        self._version = body["metadata"]["resourceVersion"]
        self._written = copy.deepcopy(body.get("status") or {})

    def wait(self) -> float:
        """Return the seconds until a status may be written again, 0 for now; the budget may make it later."""
        return max(0.0, self._written_at + self._interval - self._clock.monotonic())

    async def offer(self, status: dict[str, Any], *, force: bool = False) -> float | None:
        """Write ``status`` if it differs and may be written now.

        Returns None when the API server has it, else the seconds after which to offer it again. ``RunGone`` where
        there is nothing to write to, ``Overtaken`` where the API server has a later one.
        """
        if not difference(self._written, status):
            return None
        wait = 0.0 if force else self.wait()
        if wait > 0 or (wait := self._budget.take(force=force)) > 0:
            return wait
        for _ in range(_TRIES):
            if _is_behind(status, self._written):
                raise Overtaken(f"{self._namespace}/{self._name}")
            patch = {"metadata": {"resourceVersion": self._version}, "status": difference(self._written, status)}
            if not patch["status"]:
                return None
            try:
                body = await self._api.patch(self._kind, self._namespace, self._name, patch, subresource="status")
            except Conflict:
                self._metrics.add(Metric.STATUS_CONFLICTS)
                body = await self._read()
                self.saw(body)
                self._observed(body)
                continue
            except NotFound:
                raise RunGone(f"{self._namespace}/{self._name}") from None
            self.saw(body)
            self._written_at = self._clock.monotonic()
            self.writes += 1
            self._observed(body)
            return None
        return self._interval

    async def _read(self) -> Manifest:
        try:
            body = await self._api.get(self._kind, self._namespace, self._name)
        except NotFound:
            raise RunGone(f"{self._namespace}/{self._name}") from None
        if body["metadata"]["uid"] != self._uid:
            raise RunGone(f"{self._namespace}/{self._name} is another run now")
        return body
