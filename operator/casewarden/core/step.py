"""One step of a run: from what is there to what is to be done. Pure, and without memory.

The order is the safety. What an attempt came to is in the ledger before its pod is deleted and before its case gets
another pod; the store is asked for a seal before any row but a told verdict; a run ends when nothing of it is open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from casewarden.api.reasons import AttemptReason, RunReason
from casewarden.core import facts
from casewarden.core.model import (
    Action,
    AttemptKey,
    CaseKey,
    CreatePod,
    DeletePod,
    FinishRun,
    LedgerRow,
    LookUpSeal,
    PodRecord,
    Record,
    RunView,
    Sealed,
    SetWait,
    StepResult,
)
from casewarden.core.outcome import TABLE, Context, Outcome, classify, clean, run_reasons, told
from casewarden.core.policies.breaker import common_cause
from casewarden.core.policies.cleanup import delete_recorded, delete_strangers, is_kept
from casewarden.core.policies.concurrency import free_slots
from casewarden.core.policies.deadline import past_deadline
from casewarden.core.policies.next_attempt import next_attempt
from casewarden.core.policies.pending import Pending, pending
from casewarden.core.policies.refusals import judge_refusals
from casewarden.core.policies.store import STORE_SECONDS
from casewarden.core.policies.suspend import stop
from casewarden.core.situation import Situation
from casewarden.core.standings import Standings

__all__ = ["step"]

_FATAL = run_reasons()
_COMMON_CAUSES = frozenset(str(reason) for row in TABLE if 9 <= row.number <= 12 for reason in row.reasons)


def step(view: RunView, now: float, counted: Standings | None = None) -> StepResult:
    """Decide what is to be done for a run, given all that is known of it.

    ``counted`` is what the view's rows say, kept from step to step: a step then costs by what is going on and not by
    what is done.
    """
    run = Situation(view, now, counted)
    refused = judge_refusals(view.refusals, now)
    if isinstance(refused, FinishRun) and refused.reason == RunReason.NAMESPACE_TERMINATING:
        return StepResult((refused,), None, refused)

    waits = _pending(run)
    failing = _failure(run, refused)
    judged = _judge(run, waits, failing)
    wait = _wait(run, refused, waits)
    startable = _startable(run, wait, failing)
    creates = tuple(_creates(run, startable))
    actions: list[Action] = [
        *([Record(tuple(judged.rows))] if judged.rows else []),
        *(LookUpSeal(key) for key in judged.to_look_up if key not in view.lookups_in_flight),
        *delete_recorded(run.recorded_pods, view.policy, now),
        *delete_strangers(run.strangers),
        *_stops(run, failing),
        *creates,
        _for_slots(run, wait, startable),
        *_finish(run, failing),
    ]
    used, wanted = run.used + len(creates), run.used + len(startable)
    return StepResult(tuple(actions), _wake_at(run, waits, wait), failing, used, wanted)


@dataclass
class _Judged:
    rows: list[LedgerRow] = field(default_factory=list)
    to_look_up: list[AttemptKey] = field(default_factory=list)


def _pending(run: Situation) -> dict[AttemptKey, Pending]:
    """Return the open attempts that have not started, with how long each is waited for."""
    progress = (
        run.standings.last_end,
        max((pod.started_at for pod in run.pods.values() if pod.started_at is not None), default=0.0),
    )
    found = {
        key: pending(pod, run.view.policy, progress)
        for key, pod in run.pods.items()
        if pod.deleted_at is None and not facts.has_ended(pod, run.now)
    }
    return {key: item for key, item in found.items() if item is not None}


def _failure(run: Situation, refused: SetWait | FinishRun | None) -> FinishRun | None:
    """Return why the run fails, or None; what comes first is what the user hears."""
    fatal = next((row for row in run.standings.environment if row.reason in _FATAL), None)
    if fatal is not None:
        return FinishRun(False, str(fatal.reason), fatal.error or "")
    told = () if run.standings.has_verdict else run.standings.environment
    broken = common_cause(told, run.view.policy.parallelism, _COMMON_CAUSES)
    if broken is not None or not run.unsettled:
        return broken
    return (
        run.view.failing
        or (refused if isinstance(refused, FinishRun) else None)
        or past_deadline(run.view.policy, run.now)
        or run.store_given_up
    )


def _judge(run: Situation, waits: dict[AttemptKey, Pending], failing: FinishRun | None) -> _Judged:
    """Judge every open attempt that is over, and every case that is sealed without one."""
    judged = _Judged()
    # Where two attempts of a case are over, the first verdict is the case's.
    decided: set[CaseKey] = set()
    for key, pod, vanished in _over(run, waits):
        context = Context(
            # Of a pod that vanished only what was seen counts, and not what the clock says since.
            now=0.0 if vanished else run.now,
            stopped=_stopped(run, pod, failing),
            given_up=waits[key].trouble if key in waits else None,
            superfluous=key.case in run.settled or key.case in decided,
            width=_width(run, key.case),
        )
        sealed = _seal_of(run, key, pod, context)
        # A run that gives the store up has no score and no more attempts that a seal could contradict.
        asked = key in run.view.seals or run.store_given_up is not None
        if sealed is None and not context.superfluous and not asked:
            judged.to_look_up.append(key)
            continue
        outcome = classify(pod, sealed, context)
        judged.rows.append(_row(run, key, outcome, pod))
        if outcome.kind == "verdict":
            decided.add(key.case)
    for case in run.sealed:
        if case in run.unsettled and case not in run.open_cases:
            # Nobody saw the pod that sealed it end: the operator was away, or the attempt was taken for lost.
            outcome = classify(None, run.sealed[case], Context(now=run.now))
            judged.rows.append(_row(run, _unused(run, case, run.sealed[case].attempt), outcome, None))
    return judged


def _stopped(run: Situation, pod: PodRecord, failing: FinishRun | None) -> str | None:
    if failing is not None:
        return failing.reason
    if facts.was_forsaken(pod):
        return None
    # One that may have been stopped for its dead container draws on a budget, whatever the clocks say.
    stopped = pod.uid in run.view.stopped and not facts.never_played(pod)
    return AttemptReason.SUSPENDED if run.view.policy.suspend or stopped else None


def _over(run: Situation, waits: dict[AttemptKey, Pending]) -> Iterator[tuple[AttemptKey, PodRecord, bool]]:
    """Yield open attempts that are over, the earlier ones of a case first, and whether their pod vanished."""
    given_up = {key for key, item in waits.items() if item.is_given_up(run.now)}
    for key in sorted((*run.pods, *run.vanished)):
        if key in run.vanished:
            yield key, run.vanished[key], True
        elif key in given_up or facts.has_ended(run.pods[key], run.now):
            yield key, run.pods[key], False


def _seal_of(run: Situation, key: AttemptKey, pod: PodRecord, context: Context) -> Sealed | None:
    if context.superfluous:
        return None
    return told(pod, key.attempt, context.width) or run.sealed.get(key.case)


def _width(run: Situation, case: CaseKey) -> int:
    return len(run.view.planned[case.seed, case.case_id].dimensions)


def _unused(run: Situation, case: CaseKey, attempt: int) -> AttemptKey:
    """Return the key of a sealed attempt, or the next free one where that attempt's row says something else."""
    key = AttemptKey(case, attempt)
    return key if run.row_of(key) is None else next_attempt(case, (row.key for row in run.rows[case]))


def _row(run: Situation, key: AttemptKey, outcome: Outcome, pod: PodRecord | None) -> LedgerRow:
    task = facts.task_of(pod) if pod is not None else None
    ended_at = min(task.finished_at, run.now) if task is not None and task.finished_at is not None else run.now
    sealed = outcome.sealed
    bit = "-" if outcome.status == "environment_error" else "0"
    return LedgerRow(
        key=key,
        kind=outcome.kind,
        status=outcome.status,
        checks=sealed.checks if sealed is not None else bit * _width(run, key.case),
        reason=outcome.reason,
        error=outcome.error,
        digest=sealed.digest if sealed is not None else None,
        seconds=sealed.seconds if sealed is not None else None,
        pod_uid=sealed.pod_uid if sealed is not None else pod.uid if pod is not None else "",
        ended_at=ended_at,
    )


def _stops(run: Situation, failing: FinishRun | None) -> Iterator[DeletePod]:
    if failing is not None:
        yield from stop(run.alive, f"the run fails: {failing.reason}")
    elif run.view.policy.suspend:
        yield from stop(run.alive, "the run is suspended")
    else:
        yield from stop(run.superfluous, "its case is settled")
        yield from stop(run.forsaken, "its candidate's container died before anything ran in it")


def _wait(run: Situation, refused: SetWait | FinishRun | None, waits: dict[AttemptKey, Pending]) -> SetWait:
    """Return why the run does not go on, the gravest reason first."""
    blocked = refused.until if isinstance(refused, SetWait) else run.view.blocked_until
    until = blocked if blocked > run.now else 0.0
    if run.view.policy.suspend:
        return SetWait(RunReason.SUSPENDED, "the run is suspended", until)
    if run.store_away_since is not None:
        return SetWait(RunReason.STORE_UNAVAILABLE, "the evidence store does not answer", until)
    if isinstance(refused, SetWait):
        return refused
    if until:
        return SetWait(RunReason.QUOTA_EXCEEDED, "a quota of the namespace is used up", until)
    certain = [item.trouble for item in waits.values() if item.trouble.certain]
    if certain:
        return SetWait(certain[0].reason, clean(f"{len(certain)} pods do not start; {certain[0].detail}"))
    return SetWait(None)


def _startable(run: Situation, wait: SetWait, failing: FinishRun | None) -> tuple[CaseKey, ...]:
    """Return the cases that could start now if there were a slot for each, as many as the parallelism leaves room."""
    if failing is not None or run.view.policy.suspend or wait.until or run.store_away_since is not None:
        return ()
    cases = (
        case
        for case in run.unsettled
        if case not in run.open_cases and case not in run.sealed and run.not_before(case) <= run.now
    )
    room = free_slots(run.view.policy.parallelism, None, len(run.alive), len(run.in_flight))
    return tuple(islice(cases, room))


def _creates(run: Situation, startable: tuple[CaseKey, ...]) -> Iterator[CreatePod]:
    free = free_slots(run.view.policy.parallelism, run.view.slots, len(run.alive), len(run.in_flight))
    for case in startable[:free]:
        yield CreatePod(next_attempt(case, (row.key for row in run.rows.get(case, ()))))


def _for_slots(run: Situation, wait: SetWait, startable: tuple[CaseKey, ...]) -> SetWait:
    """Say of a run that could start and has no slot at all that it waits for one."""
    if wait.reason is not None or not startable or run.used or run.view.slots != 0:
        return wait
    return SetWait(RunReason.WAITING_FOR_SLOTS, f"{len(startable)} cases wait for a slot of a pool that is used up")


def _finish(run: Situation, failing: FinishRun | None) -> Iterator[FinishRun]:
    """End the run when every attempt is in the ledger and every pod that is to go is going."""
    if run.open_cases or (failing is None and run.unsettled):
        return
    if any(pod.deleted_at is None and not is_kept(row, pod, run.view.policy) for row, pod in run.recorded_pods):
        return
    yield failing or FinishRun(True, RunReason.COMPLETED)


def _wake_at(run: Situation, waits: dict[AttemptKey, Pending], wait: SetWait) -> float | None:
    """Return the next moment at which time alone changes what is to be done."""
    policy = run.view.policy
    moments = [
        policy.deadline,
        wait.until,
        run.store_away_since + STORE_SECONDS if run.store_away_since is not None else None,
        *(item.until for item in run.view.in_flight),
        *(item.until for item in waits.values()),
        *(facts.will_end(pod) for pod in run.alive),
        *(facts.forsaken_at(pod) for pod in run.alive),
        *(pod.deleted_at + facts.STUCK_SECONDS for _, pod in run.recorded_pods if pod.deleted_at is not None),
        *run.standings.not_before.values(),
    ]
    return min((moment for moment in moments if moment is not None and moment > run.now), default=None)
