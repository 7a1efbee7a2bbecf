"""Who is where: a run's view sorted once, so that policies can ask in words.

An attempt is *recorded* when the ledger has its row. What is not recorded and was seen is *open*: its pod is there, or
vanished, or its create is in flight. A case has at most one open attempt unless somebody interferes. A pod with our
labels and a case that is not the run's is a *stranger*: it counts for nothing and goes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import dataclass
from functools import cached_property

from casewarden.core import facts
from casewarden.core.model import AttemptKey, CaseKey, FinishRun, LedgerRow, PodRecord, RunView, Sealed
from casewarden.core.policies.store import store_given_up
from casewarden.core.standings import Standings

__all__ = ["Situation"]


@dataclass(frozen=True)
class Situation:
    """A view at a moment, with the questions that policies have.

    ``counted`` is what the view's rows say, where that is known already; else it is made here, from all of them.
    """

    view: RunView
    now: float
    counted: Standings | None = None

    @cached_property
    def standings(self) -> Standings:
        """What the rows say of each case."""
        return self.counted or Standings.of(self.view.cases, self.view.rows, self.view.policy)

    @property
    def rows(self) -> Mapping[CaseKey, list[LedgerRow]]:
        """The rows of each case that has any."""
        return self.standings.rows

    def row_of(self, key: AttemptKey) -> LedgerRow | None:
        """Return the row of an attempt, or None where the ledger has none."""
        return next((row for row in self.rows.get(key.case, ()) if row.key.attempt == key.attempt), None)

    @property
    def _cases(self) -> frozenset[CaseKey]:
        return self.standings.cases

    @cached_property
    def strangers(self) -> tuple[PodRecord, ...]:
        """Pods of cases that the run does not have."""
        return tuple(pod for pod in self.view.pods if pod.attempt is None or pod.attempt.case not in self._cases)

    @cached_property
    def pods(self) -> dict[AttemptKey, PodRecord]:
        """Pods of open attempts."""
        return {
            pod.attempt: pod
            for pod in self.view.pods
            if pod.attempt is not None and pod.attempt.case in self._cases and self.row_of(pod.attempt) is None
        }

    @cached_property
    def recorded_pods(self) -> tuple[tuple[LedgerRow, PodRecord], ...]:
        """Pods of recorded attempts, with the row of each."""
        found = ((self.row_of(pod.attempt), pod) for pod in self.view.pods if pod.attempt is not None)
        return tuple((row, pod) for row, pod in found if row is not None)

    @cached_property
    def vanished(self) -> dict[AttemptKey, PodRecord]:
        """Open attempts whose pod was seen and is gone."""
        return {
            key: pod
            for key, pod in self.view.known.items()
            if key.case in self._cases and key not in self.pods and self.row_of(key) is None
        }

    @cached_property
    def in_flight(self) -> frozenset[AttemptKey]:
        """Creates that were sent, are not seen yet and still hold their place."""
        return frozenset(
            item.key
            for item in self.view.in_flight
            if item.until > self.now
            and item.key not in self.pods
            and item.key not in self.vanished
            and self.row_of(item.key) is None
        )

    @cached_property
    def open_cases(self) -> frozenset[CaseKey]:
        """Cases with an open attempt."""
        return frozenset(key.case for key in (*self.pods, *self.vanished, *self.in_flight))

    @cached_property
    def alive(self) -> tuple[PodRecord, ...]:
        """Pods of open attempts that are not over: each holds a slot."""
        return tuple(pod for pod in self.pods.values() if not facts.has_ended(pod, self.now))

    @property
    def used(self) -> int:
        """How many slots the run holds: pods that are not over, and creates that are on their way."""
        return len(self.alive) + len(self.in_flight)

    @cached_property
    def sealed(self) -> dict[CaseKey, Sealed]:
        """Cases of which a seal was seen; a seal is for ever."""
        return {key.case: sealed for key, sealed in self.view.seals.items() if sealed is not None}

    @property
    def store_away_since(self) -> float | None:
        """Since when the store has not answered what it was asked, or None."""
        return self.view.store_away_since if self.view.lookups_in_flight else None

    @cached_property
    def store_given_up(self) -> FinishRun | None:
        """The failure of a run that has waited for the store for too long."""
        return store_given_up(self.store_away_since, len(self.view.lookups_in_flight), self.now)

    @property
    def settled(self) -> Set[CaseKey]:
        """Cases that need no more work."""
        return self.standings.settled

    @property
    def unsettled(self) -> Collection[CaseKey]:
        """Cases that need more work, in their order."""
        return self.standings.unsettled

    def not_before(self, case: CaseKey) -> float:
        """Return when an unsettled case may get another attempt at the earliest; 0.0 for one without a pause."""
        return self.standings.not_before.get(case, 0.0)

    @property
    def superfluous(self) -> tuple[PodRecord, ...]:
        """Living pods of open attempts whose case is settled already."""
        return tuple(pod for pod in self.alive if pod.attempt is not None and pod.attempt.case in self.settled)

    @property
    def forsaken(self) -> tuple[PodRecord, ...]:
        """Living pods whose driver waits for a candidate's container that is dead."""
        due = ((pod, facts.forsaken_at(pod)) for pod in self.alive)
        return tuple(pod for pod, at in due if at is not None and at <= self.now)
