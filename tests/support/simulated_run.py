"""A cluster, a store and an operator without any network, to drive ``step`` through any history.

The cluster does what real ones were seen to do: pods vanish, nodes are lost while their pods run on, creates land late,
finished pods are drained. The operator keeps in memory what the real one does, and a restart takes it away.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from support import pod_json as pj

from casewarden.core.model import (
    AttemptKey,
    CaseKey,
    CreatePod,
    DeletePod,
    FinishRun,
    InFlight,
    LedgerRow,
    LookUpSeal,
    PlannedCase,
    PodRecord,
    Record,
    RunPolicy,
    RunView,
    Sealed,
    SetWait,
)
from casewarden.core.observe import observe
from casewarden.core.policies.retry import standing
from casewarden.core.standings import Standings
from casewarden.core.step import step

IN_FLIGHT_SECONDS = 30.0
GRACE_SECONDS = 30.0


@dataclass
class SimulatedPod:
    """A pod as it is; ``is_gone`` once the API has it no more. On a lost node it runs on all the same."""

    key: AttemptKey
    uid: str
    created: float
    state: str = "pending"
    is_lost: bool = False
    is_gone: bool = False
    is_late: bool = False
    deleted: float | None = None
    exit_code: int | None = None
    message: str = ""
    ended: float = 0.0
    status: dict[str, Any] = field(default_factory=dict)
    conditions: tuple[dict[str, Any], ...] = ()
    last_heard: PodRecord | None = None
    died: float | None = None

    def record(self) -> PodRecord:
        """Return what the API server has of it."""
        if self.is_lost and self.last_heard is not None and self.state != "ended":
            # No kubelet reports; what the control plane writes is still seen.
            state = self.last_heard_state
        else:
            state = self.state
        if state == "pending":
            containers = [pj.waiting("candidate"), pj.waiting("task")]
        elif state == "ended":
            since = 10 if self.died is None else self.died
            containers = [pj.terminated("task", self.exit_code or 0, message=self.message, at=self.ended, since=since)]
        else:
            containers = [pj.running("task", self.created if self.died is None else self.died)]
        if self.died is not None and state != "pending":
            containers = [pj.terminated("candidate", 137, at=self.died), containers[-1]]
        self.last_heard_state = state
        record = observe(
            pj.pod_json(
                self.key,
                *containers,
                uid=self.uid,
                created=self.created,
                deleted=self.deleted,
                conditions=self.conditions,
                **{"phase": "Pending" if state == "pending" else "Running", **self.status},
            )
        )
        assert record is not None
        self.last_heard = record
        return record

    last_heard_state: str = "pending"

    @property
    def is_up(self) -> bool:
        """Tell whether its containers can still do something."""
        return self.state != "ended" and (self.is_lost or not self.is_gone)

    def end(self, code: int, now: float, message: str = "") -> None:
        self.state, self.exit_code, self.ended, self.message = "ended", code, now, message


@dataclass
class World:
    """All of it. Methods are what can happen; ``check`` is what must hold whenever."""

    policy: RunPolicy
    cases: tuple[CaseKey, ...]
    now: float = 1000.0
    pods: list[SimulatedPod] = field(default_factory=list)
    late: list[AttemptKey] = field(default_factory=list)
    seals: dict[CaseKey, Sealed] = field(default_factory=dict)
    claims: dict[AttemptKey, str] = field(default_factory=dict)
    rows: list[LedgerRow] = field(default_factory=list)
    finished: FinishRun | None = None
    settled: dict[CaseKey, LedgerRow] = field(default_factory=dict)
    created: int = 0

    def __post_init__(self) -> None:
        self.planned = {
            (case.seed, case.case_id): PlannedCase(case.seed, case.case_id, ("basic",), "default", "0" * 64)
            for case in self.cases
        }
        self._forget()

    def _forget(self) -> None:
        self.seen: dict[str, PodRecord] = {}
        self.known: dict[AttemptKey, PodRecord] = {}
        self.in_flight: dict[AttemptKey, float] = {}
        self.answers: dict[AttemptKey, Sealed | None] = {}
        self.asked: set[AttemptKey] = set()
        self.refusals: list[tuple[str, str]] = []
        self.stopped: set[str] = set()
        self.blocked_until = 0.0
        self.failing: FinishRun | None = None
        self.counted: Standings | None = None
        self.store_away_since: float | None = None
        self.wake_at: float | None = None

    # The cluster.

    @property
    def objects(self) -> list[SimulatedPod]:
        return [pod for pod in self.pods if not pod.is_gone]

    def land(self, key: AttemptKey, *, late: bool = False) -> bool:
        """Let a create reach the API server; False where an object of that name is there."""
        if any(pod.key == key for pod in self.objects):
            return False
        self.created += 1
        self.pods.append(SimulatedPod(key, f"uid-{self.created}", self.now, is_late=late))
        return True

    def start(self, pod: SimulatedPod) -> None:
        """Start the containers: the recorder claims, and a loser says so and ends."""
        owner = self.claims.setdefault(pod.key, pod.uid)
        if owner != pod.uid or pod.key.case in self.seals:
            pod.end(0, self.now, pj.told("superseded", "", None))
        else:
            pod.state = "running"

    def seal(self, pod: SimulatedPod, status: str) -> None:
        """Let the driver finish: the first seal of a case counts."""
        if pod.key.case in self.seals:
            pod.end(0, self.now, pj.told("superseded", "", None))
            return
        digest = f"{self.created:02x}{pod.key.attempt:02x}" * 16
        reason = "Exited" if status == "agent_error" else None
        checks = "1" if status == "passed" else "0"
        self.seals[pod.key.case] = Sealed(pod.key.attempt, pod.uid, digest, status, checks, reason)
        pod.state = "sealed"

    def tell(self, pod: SimulatedPod) -> None:
        sealed = self.seals[pod.key.case]
        pod.end(0, self.now, pj.told(sealed.status, sealed.checks, sealed.digest, reason=sealed.reason))

    def remove(self, pod: SimulatedPod) -> None:
        """Let the API forget a pod; one on a lost node runs on."""
        pod.is_gone = True
        if not pod.is_lost and pod.state != "ended":
            pod.end(143, self.now)

    def pass_time(self, seconds: float) -> None:
        """Let time pass. A kubelet that lives stops what is deleted within its grace, and the watch lags by less."""
        self.now += seconds
        for pod in self.objects:
            if not pod.is_lost and pod.deleted is not None and self.now - pod.deleted > GRACE_SECONDS:
                self.remove(pod)
        if seconds > GRACE_SECONDS:
            self.sync()

    # The operator.

    def view(self) -> RunView:
        return RunView(
            policy=self.policy,
            cases=self.cases,
            rows=tuple(self.rows),
            pods=tuple(self.seen.values()),
            in_flight=tuple(InFlight(key, until) for key, until in self.in_flight.items()),
            seals=dict(self.answers),
            lookups_in_flight=frozenset(self.asked),
            blocked_until=self.blocked_until,
            refusals=tuple(self.refusals),
            planned=self.planned,
            known=dict(self.known),
            store_away_since=self.store_away_since,
            failing=self.failing,
            stopped=frozenset(self.stopped),
        )

    def sync(self) -> None:
        """Let the operator see the cluster as it is."""
        fresh = {record.uid: record for record in (pod.record() for pod in self.objects)}
        for uid, record in self.seen.items():
            if uid not in fresh and record.attempt is not None:
                self.known[record.attempt] = record
        self.seen = fresh
        for record in fresh.values():
            if record.attempt is not None:
                self.in_flight.pop(record.attempt, None)

    @property
    def has_news(self) -> bool:
        """Tell whether the watch has something to say that the operator has not seen."""
        return self.seen != {record.uid: record for record in (pod.record() for pod in self.objects)}

    def restart(self, *, with_index: bool = False) -> None:
        """Start anew, with what the store's index lists or without it."""
        self._forget()
        self.sync()
        if with_index:
            self.answers = {AttemptKey(case, sealed.attempt): sealed for case, sealed in self.seals.items()}

    def answer(self, key: AttemptKey) -> None:
        self.asked.discard(key)
        self.answers[key] = self.seals.get(key.case)
        if not self.asked:
            self.store_away_since = None

    def step(self, creates: str = "land", until: int | None = None) -> None:
        """Step and act; ``creates`` is how creates fare, ``until`` the action before which the operator is killed."""
        if self.finished is not None:
            return
        if any(until_ <= self.now for until_ in self.in_flight.values()):
            # The watch lags by less than an unseen create is waited for.
            self.sync()
        view = self.view()
        self.counted = Standings.of(view.cases, view.rows, view.policy, self.counted)
        result = step(view, self.now, self.counted)
        assert result == step(view, self.now), "what was counted row by row differs from the count of all rows"
        self.refusals, self.failing, self.wake_at = [], result.failing, result.wake_at
        assert result.wake_at is None or result.wake_at > self.now
        assert [type(action) for action in result.actions].count(SetWait) == (0 if self._is_abandoned(result) else 1)
        for number, action in enumerate(result.actions):
            if until is not None and number >= until:
                self.restart()
                return
            self._do(action, creates)
        self.check()
        if any(isinstance(action, Record) for action in result.actions):
            self.step(creates, until)

    @staticmethod
    def _is_abandoned(result: Any) -> bool:
        return result.failing is not None and result.failing.reason == "NamespaceTerminating"

    def _do(self, action: Any, creates: str) -> None:
        match action:
            case Record(rows):
                for row in rows:
                    assert row.key not in {old.key for old in self.rows}, "a row was written twice"
                    self._check_row(row)
                    self.rows.append(row)
            case LookUpSeal(key):
                assert key not in self.asked
                self.asked.add(key)
            case DeletePod():
                self._delete(action)
            case CreatePod(key):
                self._create(key, creates)
            case SetWait():
                self.blocked_until = action.until
            case FinishRun():
                self.finished = action

    def _check_row(self, row: LedgerRow) -> None:
        sealed = self.seals.get(row.key.case)
        if row.kind == "verdict" or sealed is None or row.key.case in self.settled:
            return
        sealer = next(pod for pod in self.pods if pod.uid == sealed.pod_uid)
        # What a lost node seals after everybody has given it up is not seen; the next attempt meets it.
        assert sealer.is_lost, f"{row.key} is {row.kind} ({row.reason}) though {sealed.attempt} has sealed"

    def _delete(self, action: DeletePod) -> None:
        pod = next((pod for pod in self.objects if pod.uid == action.uid), None)
        if pod is None:
            return
        recorded = pod.key in {row.key for row in self.rows}
        stops = ("run is suspended", "run fails", "case is settled", "died before anything ran")
        is_stop = any(words in action.why for words in stops)
        assert recorded or is_stop, f"{pod.key} is deleted before it is recorded"
        self.stopped.add(action.uid)
        if action.grace_seconds == 0:
            self.remove(pod)
        elif pod.deleted is None:
            pod.deleted = self.now

    def _create(self, key: AttemptKey, creates: str) -> None:
        assert key not in {row.key for row in self.rows}, f"{key} was counted and is made again"
        assert key.case not in self.settled, f"{key.case} is settled and gets another attempt"
        recorded = {row.key for row in self.rows}
        busy = [pod for pod in self.objects if pod.is_up and not pod.is_lost and pod.key not in recorded]
        twins = [pod for pod in busy if pod.key.case == key.case and pod.key != key]
        assert not twins, f"{key} is made while {twins[0].key} lives"
        if creates == "quota":
            self.refusals.append(("Forbidden", 'pods "x" is forbidden: exceeded quota: small'))
        elif creates == "refused":
            self.refusals.append(("Forbidden", 'pods "x" is forbidden: violates PodSecurity "restricted:latest"'))
        elif creates == "late":
            self.in_flight[key] = self.now + IN_FLIGHT_SECONDS
            self.late.append(key)
        else:
            on_time = [pod for pod in busy if not pod.is_late and pod.key != key]
            assert len(on_time) < self.policy.parallelism, "more pods than the parallelism"
            self.in_flight[key] = self.now + IN_FLIGHT_SECONDS
            self.land(key)

    # What must hold.

    def check(self) -> None:
        by_case: dict[CaseKey, list[LedgerRow]] = {}
        for row in self.rows:
            by_case.setdefault(row.key.case, []).append(row)
        for case, rows in by_case.items():
            numbers = sorted(row.key.attempt for row in rows)
            assert numbers == list(range(1, len(numbers) + 1)), f"{case} has attempts {numbers}"
            verdicts = [row for row in rows if row.kind == "verdict"]
            assert len(verdicts) <= 1, f"{case} has {len(verdicts)} verdicts"
            for row in verdicts:
                sealed = self.seals.get(case)
                if row.digest is not None:
                    assert sealed is not None
                    assert (row.digest, row.status, row.checks) == (sealed.digest, sealed.status, sealed.checks)
                else:
                    assert (row.status, row.checks) == ("agent_error", "0")
            settled = standing(rows, self.policy).settled
            if settled is not None:
                assert self.settled.setdefault(case, settled) == settled, f"{case} was settled and changed"
        assert all(case in by_case for case in self.settled), "a finished case is not finished any more"
        if self.finished is not None and self.finished.reason != "NamespaceTerminating":
            self._check_end()

    def _check_end(self) -> None:
        assert self.finished is not None
        recorded = {row.key for row in self.rows}
        for pod in self.objects:
            if not pod.is_late and pod.uid in self.seen:
                assert pod.key in recorded, f"the run ended without {pod.key}"
                assert pod.deleted is not None, f"the run ended and left {pod.key}"
        if self.finished.complete:
            assert set(self.settled) == set(self.cases)
