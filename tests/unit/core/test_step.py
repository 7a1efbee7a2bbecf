"""One step of a run: what is done in which situation, and the schedules that once lost or doubled a verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.pod_json import alive, attempt, disruption, finished, pod, running, terminated, told, waiting

from casewarden.core import facts
from casewarden.core.model import (
    AttemptKey,
    CreatePod,
    DeletePod,
    FinishRun,
    InFlight,
    LedgerRow,
    LookUpSeal,
    PlannedCase,
    Record,
    RunPolicy,
    RunView,
    Sealed,
    SetWait,
    StepResult,
)
from casewarden.core.step import step

POLICY = RunPolicy(
    parallelism=2, environment_retries=1, interruption_retries=2, pending_seconds=900, suspend=False, deadline=None
)
NOW = 1000.0
SEALED = Sealed(1, "pod-1", "d" * 64, "passed", "1", None, None, 2.0)
SUSPENDED = replace(POLICY, suspend=True)


def view(count: int = 1, *, policy: RunPolicy = POLICY, dimensions: int = 1, **fields: Any) -> RunView:
    cases = tuple(attempt(number).case for number in range(count))
    names = tuple(f"d{number}" for number in range(dimensions))
    planned = {(c.seed, c.case_id): PlannedCase(c.seed, c.case_id, names, "default", "0" * 64) for c in cases}
    return RunView(**{"policy": policy, "cases": cases, "rows": (), "pods": (), "planned": planned, **fields})


def row(key: AttemptKey, kind: str = "verdict", status: str = "passed", **fields: Any) -> LedgerRow:
    status = status if kind == "verdict" else "environment_error"
    checks = {"passed": "1", "environment_error": "-"}.get(status, "0")
    return LedgerRow(key, kind, status, checks, **{"ended_at": 100.0, **fields})  # type: ignore[arg-type]


def of(result: StepResult, kind: type) -> list[Any]:
    return [action for action in result.actions if isinstance(action, kind)]


def rows_of(result: StepResult) -> list[LedgerRow]:
    return [row for record in of(result, Record) for row in record.rows]


def creates(result: StepResult) -> list[AttemptKey]:
    return [action.key for action in of(result, CreatePod)]


def wait_of(result: StepResult) -> SetWait:
    (wait,) = of(result, SetWait)
    assert isinstance(wait, SetWait)
    return wait


class TestCases:
    def test_as_many_pods_start_as_the_parallelism_allows_in_the_order_of_the_cases(self):
        assert creates(step(view(5), NOW)) == [attempt(0), attempt(1)]

    def test_pods_that_run_and_creates_in_flight_hold_their_places(self):
        busy = view(5, pods=(alive(attempt(0)),), in_flight=(InFlight(attempt(1), NOW + 30),))
        assert creates(step(busy, NOW)) == []

    def test_a_slot_frees_when_the_task_ends_and_not_when_the_pod_is_gone(self):
        assert creates(step(view(3, pods=(finished(attempt(0)), alive(attempt(1)))), NOW)) == [attempt(2)]

    def test_the_assigner_may_allow_fewer(self):
        assert creates(step(view(5, slots=1), NOW)) == [attempt(0)]

    def test_lowering_the_parallelism_stops_nothing(self):
        pods = (alive(attempt(0)), alive(attempt(1)))
        result = step(view(3, policy=replace(POLICY, parallelism=1), pods=pods), NOW)
        assert (creates(result), of(result, DeletePod)) == ([], [])

    def test_a_create_that_was_never_seen_is_tried_again_under_the_same_name(self):
        assert creates(step(view(1, in_flight=(InFlight(attempt(0), NOW - 1),)), NOW)) == [attempt(0)]

    def test_the_run_is_complete_when_every_case_is_settled_and_no_pod_is_left_behind(self):
        result = step(view(1, rows=(row(attempt(0)),)), NOW)
        assert of(result, FinishRun) == [FinishRun(True, "Completed")]

    def test_the_run_does_not_end_before_its_pods_are_on_their_way_out(self):
        left = view(1, rows=(row(attempt(0)),), pods=(finished(attempt(0)),))
        assert of(step(left, NOW), FinishRun) == []
        going = view(1, rows=(row(attempt(0)),), pods=(finished(attempt(0), deleted=NOW - 1),))
        assert of(step(going, NOW), FinishRun) != []

    def test_a_pod_of_no_case_of_the_plan_counts_for_nothing_and_goes(self):
        result = step(view(1, pods=(finished(attempt(7), uid="stranger"),)), NOW)
        assert [action.uid for action in of(result, DeletePod)] == ["stranger"]
        assert rows_of(result) == []


class TestVerdicts:
    def test_a_told_verdict_is_recorded_without_a_look_at_the_store(self):
        result = step(view(1, pods=(finished(message=told("failed", "0", seconds=1.5)),)), NOW)
        (recorded,) = rows_of(result)
        assert (recorded.kind, recorded.status, recorded.checks, recorded.seconds) == ("verdict", "failed", "0", 1.5)
        assert (recorded.digest, recorded.pod_uid, recorded.ended_at) == ("ab" * 32, "pod-1", 100.0)
        assert of(result, LookUpSeal) == []

    def test_what_candidate_could_cause_and_nothing_sealed_fails_every_dimension(self):
        full = pod(
            phase="Failed", reason="Evicted", message='Usage of EmptyDir volume "state" exceeds the limit "64Mi"'
        )
        (recorded,) = rows_of(step(view(1, dimensions=3, pods=(full,), seals={attempt(): None}), NOW))
        assert (recorded.kind, recorded.status, recorded.checks) == ("verdict", "agent_error", "000")
        assert (recorded.reason, recorded.digest) == ("StorageLimit", None)

    def test_a_message_with_checks_of_another_case_is_not_believed(self):
        result = step(view(1, dimensions=2, pods=(finished(message=told("passed", "1")),)), NOW)
        assert (rows_of(result), of(result, LookUpSeal)) == ([], [LookUpSeal(attempt())])

    def test_a_seal_of_which_nobody_saw_the_pod_counts_without_another_pod(self):
        result = step(view(1, seals={attempt(): SEALED}), NOW)
        assert [(item.key, item.digest) for item in rows_of(result)] == [(attempt(), SEALED.digest)]
        assert creates(result) == []

    def test_a_seal_by_an_attempt_that_was_counted_as_lost_counts_under_the_next_number(self):
        lost = row(attempt(), "environment", reason="NodeLost")
        result = step(view(1, rows=(lost,), seals={attempt(0, 2): SEALED}), NOW)
        assert [(item.key, item.pod_uid) for item in rows_of(result)] == [(attempt(0, 2), SEALED.pod_uid)]

    def test_a_second_attempt_of_a_settled_case_is_stopped_and_never_gives_a_second_verdict(self):
        settled = view(1, rows=(row(attempt()),), pods=(alive(attempt(0, 2), uid="two"),))
        assert [action.uid for action in of(step(settled, NOW), DeletePod)] == ["two"]
        ended = replace(settled, pods=(finished(attempt(0, 2), uid="two"),))
        (recorded,) = rows_of(step(ended, NOW))
        assert (recorded.kind, recorded.reason) == ("interruption", "Superseded")

    def test_two_attempts_that_end_at_once_give_one_verdict(self):
        both = view(1, pods=(finished(attempt(0, 1), uid="one"), finished(attempt(0, 2), uid="two")))
        assert [item.kind for item in rows_of(step(both, NOW))] == ["verdict", "interruption"]


class TestRetries:
    def test_an_environment_error_gets_another_attempt_after_a_pause(self):
        rows = (row(attempt(), "environment", reason="Evicted", ended_at=NOW),)
        early = step(view(1, rows=rows), NOW + 1)
        assert (creates(early), early.wake_at) == ([], NOW + 5)
        assert creates(step(view(1, rows=rows), NOW + 5)) == [attempt(0, 2)]

    def test_other_cases_go_first_during_the_pause(self):
        rows = (row(attempt(), "environment", reason="Evicted", ended_at=NOW),)
        assert creates(step(view(3, rows=rows), NOW + 1)) == [attempt(1), attempt(2)]

    def test_a_spent_budget_settles_the_case_as_unassessed(self):
        rows = tuple(row(attempt(0, n), "environment", reason="Evicted") for n in (1, 2))
        assert of(step(view(1, rows=rows), NOW), FinishRun) == [FinishRun(True, "Completed")]

    def test_an_interruption_is_tried_again_at_once_within_its_own_budget(self):
        rows = tuple(row(attempt(0, n), "interruption", reason="Deleted", ended_at=NOW) for n in (1, 2))
        assert creates(step(view(1, rows=rows), NOW)) == [attempt(0, 3)]
        rows += (row(attempt(0, 3), "interruption", reason="Deleted"),)
        assert of(step(view(1, rows=rows), NOW), FinishRun) == [FinishRun(True, "Completed")]

    def test_suspended_attempts_draw_on_no_budget(self):
        rows = tuple(row(attempt(0, n), "suspended", reason="Suspended") for n in range(1, 20))
        assert creates(step(view(1, rows=rows), NOW)) == [attempt(0, 20)]


class TestSuspend:
    def test_a_suspended_run_starts_nothing_and_stops_what_runs(self):
        result = step(view(3, policy=SUSPENDED, pods=(alive(attempt(0)),)), NOW)
        assert creates(result) == []
        assert [(action.uid, action.why) for action in of(result, DeletePod)] == [("pod-1", "the run is suspended")]
        assert wait_of(result).reason == "Suspended"
        assert rows_of(result) == []

    def test_a_stopped_attempt_is_counted_as_suspended(self):
        going = pod(None, terminated("task", 143, at=NOW), deleted=NOW - 1)
        (recorded,) = rows_of(step(view(1, policy=SUSPENDED, pods=(going,), seals={attempt(): None}), NOW))
        assert (recorded.kind, recorded.reason, recorded.status) == ("suspended", "Suspended", "environment_error")

    def test_a_create_that_was_in_flight_is_stopped_when_it_is_seen(self):
        flying = view(1, policy=SUSPENDED, in_flight=(InFlight(attempt(), NOW + 30),))
        assert of(step(flying, NOW), DeletePod) == []
        assert len(of(step(replace(flying, pods=(alive(),)), NOW), DeletePod)) == 1

    def test_quick_resuming_does_not_make_our_own_stop_somebody_elses(self):
        going = pod(None, terminated("task", 143, at=NOW), deleted=NOW - 1)
        resumed = view(1, pods=(going,), seals={attempt(): None}, stopped=frozenset({"pod-1"}))
        assert [item.kind for item in rows_of(step(resumed, NOW))] == ["suspended"]

    def test_a_suspended_run_whose_cases_are_all_settled_is_complete(self):
        assert of(step(view(1, policy=SUSPENDED, rows=(row(attempt()),)), NOW), FinishRun) != []


class TestFailing:
    def test_an_image_that_is_not_there_fails_the_run_after_its_first_pods(self):
        stuck = pod(attempt(0), waiting("candidate", "ImagePullBackOff", "not found"), running("task"), phase="Pending")
        fine = alive(attempt(1), uid="pod-2")
        early = step(view(9, pods=(stuck, fine)), 30.0)
        assert (rows_of(early), of(early, LookUpSeal)) == ([], [])
        assert (wait_of(early).reason, early.wake_at) == ("ImagePull", 61.0)

        waited = view(9, pods=(stuck, fine), seals={attempt(0): None})
        (recorded,) = rows_of(step(waited, 61.0))
        assert (recorded.kind, recorded.reason) == ("environment", "ImagePull")

        failing = step(replace(waited, rows=(recorded,)), 62.0)
        assert {action.uid for action in of(failing, DeletePod)} == {"pod-1", "pod-2"}
        assert (creates(failing), of(failing, FinishRun)) == ([], [])

        stopped = pod(attempt(1), terminated("task", 143, at=63), deleted=62, uid="pod-2")
        rest = replace(waited, rows=(recorded,), pods=(stopped,), seals={attempt(1): None})
        (other,) = rows_of(step(rest, 64.0))
        assert (other.kind, other.reason) == ("suspended", "ImagePull")

        end = of(step(replace(rest, rows=(recorded, other), pods=()), 65.0), FinishRun)
        assert [(item.complete, item.reason) for item in end] == [(False, "ImagePull")]
        assert "not found" in end[0].message

    def test_what_seals_before_a_failing_run_stops_it_counts(self):
        late = replace(POLICY, deadline=NOW)
        (recorded,) = rows_of(step(view(2, policy=late, pods=(finished(attempt(1)),)), NOW))
        assert (recorded.kind, recorded.status) == ("verdict", "passed")

    def test_a_run_past_its_deadline_stops_and_fails(self):
        late = view(1, policy=replace(POLICY, deadline=NOW), pods=(alive(),))
        result = step(late, NOW)
        assert [action.why for action in of(result, DeletePod)] == ["the run fails: DeadlineExceeded"]
        assert result.failing is not None
        assert result.failing.reason == "DeadlineExceeded"
        assert of(step(replace(late, pods=()), NOW), FinishRun) == [result.failing]

    def test_a_failing_run_does_not_end_while_an_attempt_is_open(self):
        late = replace(POLICY, deadline=NOW)
        vanished = view(1, policy=late, known={attempt(): alive()})
        assert of(step(vanished, NOW), FinishRun) == []
        flying = view(1, policy=late, in_flight=(InFlight(attempt(), NOW + 30),))
        assert (of(step(flying, NOW), FinishRun), step(flying, NOW).wake_at) == ([], NOW + 30)
        assert of(step(flying, NOW + 30), FinishRun) != []

    def test_a_run_that_completes_in_time_is_not_failed_by_its_deadline(self):
        done = view(1, policy=replace(POLICY, deadline=NOW), rows=(row(attempt()),))
        assert of(step(done, NOW + 5), FinishRun) == [FinishRun(True, "Completed")]

    def test_the_deadline_wakes_the_run(self):
        assert step(view(1, policy=replace(POLICY, deadline=NOW + 7), pods=(alive(),)), NOW).wake_at == NOW + 7

    def test_first_attempts_that_all_fail_for_one_reason_of_ours_fail_the_run(self):
        rows = tuple(row(attempt(n), "environment", reason="EvidenceFailed", error="no disk") for n in (0, 1, 2))
        (end,) = of(step(view(9, rows=rows), NOW), FinishRun)
        assert (end.complete, end.reason) == (False, "CircuitBreaker")
        assert "EvidenceFailed: no disk" in end.message

    def test_a_refused_pod_fails_the_run_and_stays_refused_while_it_is_stopped(self):
        refused = view(3, pods=(alive(),), refusals=(("Forbidden", "violates PodSecurity"),))
        result = step(refused, NOW)
        assert result.failing is not None
        assert result.failing.reason == "Refused"
        again = step(replace(refused, refusals=(), failing=result.failing), NOW)
        assert (creates(again), len(of(again, DeletePod))) == ([], 1)

    def test_a_full_quota_waits_and_tries_again_later(self):
        full = view(3, refusals=(("Forbidden", "exceeded quota: small, requested: pods=1"),))
        result = step(full, NOW)
        assert (wait_of(result).reason, wait_of(result).until, creates(result)) == ("QuotaExceeded", NOW + 5, [])
        blocked = step(view(3, blocked_until=NOW + 5), NOW + 1)
        assert (creates(blocked), wait_of(blocked).until, blocked.wake_at) == ([], NOW + 5, NOW + 5)
        assert creates(step(view(3, blocked_until=NOW + 5), NOW + 5)) == [attempt(0), attempt(1)]

    def test_a_namespace_that_is_being_deleted_abandons_the_run_at_once(self):
        gone = view(3, pods=(alive(),), refusals=(("NamespaceTerminating", "being terminated"),))
        assert [type(action) for action in step(gone, NOW).actions] == [FinishRun]

    def test_a_store_that_is_away_starts_nothing_more_and_fails_the_run_in_the_end(self):
        crashed = pod(attempt(0), terminated("task", 1))
        away = view(3, pods=(crashed,), lookups_in_flight=frozenset({attempt(0)}), store_away_since=NOW)
        result = step(away, NOW + 1)
        assert (wait_of(result).reason, creates(result), rows_of(result)) == ("StoreUnavailable", [], [])
        assert result.wake_at == NOW + 900
        late = step(away, NOW + 900)
        assert late.failing is not None
        assert late.failing.reason == "StoreUnavailable"
        assert [item.kind for item in rows_of(late)] == ["environment"]

    def test_a_stop_for_another_reason_does_not_wait_for_the_store_for_ever(self):
        late = replace(POLICY, deadline=NOW)
        crashed = pod(attempt(0), terminated("task", 1))
        asked = frozenset({attempt(0)})
        away = view(3, policy=late, pods=(crashed,), lookups_in_flight=asked, store_away_since=NOW)
        assert rows_of(step(away, NOW + 1)) == []
        assert len(rows_of(step(away, NOW + 900))) == 1


class TestLostNodes:
    def test_a_pod_that_does_not_go_is_judged_after_a_while_and_then_removed_by_force(self):
        lost = alive(deleted=NOW, conditions=(disruption("DeletionByTaintManager", NOW),))
        stuck = view(1, pods=(lost,))
        assert step(stuck, NOW + 1).wake_at == NOW + 90
        assert of(step(stuck, NOW + 90), LookUpSeal) == [LookUpSeal(attempt())]
        (recorded,) = rows_of(step(replace(stuck, seals={attempt(): None}), NOW + 90))
        assert (recorded.kind, recorded.reason) == ("environment", "NodeLost")
        forced = of(step(replace(stuck, rows=(recorded,)), NOW + 91), DeletePod)
        assert [action.grace_seconds for action in forced] == [0]

    def test_force_has_its_time(self):
        counted = view(2, rows=(row(attempt()),), pods=(finished(attempt(), deleted=NOW), alive(attempt(1))))
        assert of(step(counted, NOW + 1), DeletePod) == []
        assert step(counted, NOW + 1).wake_at == NOW + 90

    def test_a_kubelet_that_does_not_keep_the_pods_deadline_is_not_waited_for(self):
        started, deadline = 2.0, 2000.0
        assert step(view(1, pods=(alive(),)), NOW).wake_at == started + deadline + 60
        assert of(step(view(1, pods=(alive(),)), started + deadline + 60), LookUpSeal) == [LookUpSeal(attempt())]


class TestKeptPods:
    KEEP = replace(POLICY, keep_pods="OnFailure")

    @pytest.mark.parametrize(("status", "kept"), [("passed", False), ("failed", True), ("agent_error", True)])
    def test_pods_of_cases_that_did_not_pass_stay_where_the_run_wants_them(self, status, kept):
        ended = view(1, policy=self.KEEP, rows=(row(attempt(), status=status),), pods=(finished(),))
        assert (of(step(ended, NOW), DeletePod) == []) is kept
        assert (of(step(ended, NOW), FinishRun) != []) is kept

    def test_a_pod_that_could_still_run_is_never_kept(self):
        rows = (row(attempt(), "environment", reason="ImagePull"),)
        assert len(of(step(view(1, policy=self.KEEP, rows=rows, pods=(alive(phase="Pending"),)), NOW), DeletePod)) == 1


class TestSchedules:
    """The schedules that lost or doubled a verdict in the first design, by their numbers there."""

    def test_r1_an_attempt_is_counted_before_its_pod_goes_and_its_number_is_never_used_again(self):
        evicted = pod(phase="Failed", reason="Evicted", message="low on memory")
        ended = view(1, pods=(evicted,), seals={attempt(): None})
        first = step(ended, NOW)
        assert (len(rows_of(first)), of(first, DeletePod), creates(first)) == (1, [], [])
        # The next operator knows the row and nothing else.
        second = step(view(1, rows=tuple(rows_of(first))), NOW + 60)
        assert creates(second) == [attempt(0, 2)]

    def test_r2_a_create_that_lands_late_is_deleted_and_not_counted_again(self):
        late = view(1, rows=(row(attempt()),), pods=(alive(uid="twin"),))
        result = step(late, NOW)
        assert [action.uid for action in of(result, DeletePod)] == ["twin"]
        assert (rows_of(result), creates(result)) == ([], [])

    def test_r2_a_twin_that_lost_its_claim_and_finds_no_seal_is_an_interruption(self):
        loser = finished(message=told("superseded", "", None))
        (recorded,) = rows_of(step(view(1, pods=(loser,), seals={attempt(): None}), NOW))
        assert (recorded.kind, recorded.reason) == ("interruption", "Superseded")

    def test_r3_a_case_gets_no_new_pod_while_the_old_one_goes(self):
        going = alive(deleted=NOW - 1)
        assert creates(step(view(1, pods=(going,)), NOW)) == []

    def test_r4_the_store_is_asked_before_anything_is_tried_again_and_what_is_sealed_counts(self):
        drained = pod(
            None, terminated("task", 143, at=99), deleted=98, conditions=(disruption("EvictionByEvictionAPI", at=98),)
        )
        ended = view(1, pods=(drained,))
        asked = step(ended, NOW)
        assert (of(asked, LookUpSeal), rows_of(asked), creates(asked)) == ([LookUpSeal(attempt())], [], [])
        waiting_for_it = step(replace(ended, lookups_in_flight=frozenset({attempt()})), NOW)
        assert (of(waiting_for_it, LookUpSeal), creates(waiting_for_it)) == ([], [])
        (recorded,) = rows_of(step(replace(ended, seals={attempt(): SEALED}), NOW))
        assert (recorded.kind, recorded.status, recorded.digest) == ("verdict", "passed", SEALED.digest)

    def test_r4_that_nothing_was_sealed_is_true_of_the_attempt_that_was_asked_about_only(self):
        rows = (row(attempt(), "environment", reason="NodeLost"),)
        second = view(1, rows=rows, pods=(pod(attempt(0, 2), terminated("task", 1)),), seals={attempt(): None})
        assert of(step(second, NOW), LookUpSeal) == [LookUpSeal(attempt(0, 2))]

    def test_r4_a_pod_that_vanished_is_asked_about_too(self):
        vanished = view(1, known={attempt(): alive()})
        assert (of(step(vanished, NOW), LookUpSeal), creates(step(vanished, NOW))) == ([LookUpSeal(attempt())], [])
        (recorded,) = rows_of(step(replace(vanished, seals={attempt(): None}), NOW + 99_999))
        assert (recorded.kind, recorded.reason) == ("interruption", "Deleted")

    def test_r6_what_sealed_before_it_was_suspended_counts(self):
        going = pod(None, terminated("task", 143, at=NOW), deleted=NOW - 1)
        (recorded,) = rows_of(step(view(1, policy=SUSPENDED, pods=(going,), seals={attempt(): SEALED}), NOW))
        assert (recorded.kind, recorded.status) == ("verdict", "passed")

    def test_r9_a_pod_that_was_counted_and_is_still_listed_is_not_counted_again(self):
        stale = view(1, rows=(row(attempt()),), pods=(finished(),), known={attempt(): finished()})
        assert (rows_of(step(stale, NOW)), creates(step(stale, NOW))) == ([], [])


def test_unschedulable_pods_wait_while_others_of_the_run_come_and_go():
    nowhere = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes: cpu"}
    homeless = pod(attempt(1), phase="Pending", node="", created=1, conditions=(nowhere,))
    busy = view(2, rows=(row(attempt(0), ended_at=950.0),), pods=(homeless,))
    result = step(busy, NOW)
    assert (rows_of(result), wait_of(result).reason) == ([], "Unschedulable")
    assert result.wake_at == 950.0 + 900
    assert of(step(busy, 950.0 + 900), LookUpSeal) == [LookUpSeal(attempt(1))]


def test_a_step_says_each_time_why_it_waits_or_that_it_does_not():
    assert wait_of(step(view(1), NOW)) == SetWait(None)


class TestACandidatesContainerThatDiesBeforeAnythingRanInIt:
    DEAD = 980.0

    def pod(self, **changes: Any) -> Any:
        return pod(attempt(0), terminated("candidate", 137, at=self.DEAD), running("task", self.DEAD), **changes)

    def stopped(self) -> Any:
        driver = terminated("task", 143, at=NOW + 1, since=self.DEAD)
        return pod(attempt(0), terminated("candidate", 137, at=self.DEAD), driver, deleted=NOW)

    def test_its_pod_is_stopped_soon_and_not_when_the_driver_gives_up(self) -> None:
        early = step(view(pods=(self.pod(),)), self.DEAD + 5)
        assert of(early, DeletePod) == []
        assert early.wake_at == self.DEAD + facts.FORSAKEN_SECONDS
        late = step(view(pods=(self.pod(),)), self.DEAD + facts.FORSAKEN_SECONDS)
        assert [action.uid for action in of(late, DeletePod)] == ["pod-1"]
        assert rows_of(late) == []

    def test_it_is_the_environments_and_no_interruption_though_we_deleted_the_pod(self) -> None:
        over = self.stopped()
        looked = view(pods=(over,), seals={attempt(0): None}, stopped=frozenset({"pod-1"}))
        (found,) = rows_of(step(looked, NOW + 2))
        assert (found.kind, found.reason) == ("environment", "EvidenceFailed")

    def test_what_it_sealed_all_the_same_counts(self) -> None:
        over = self.stopped()
        (found,) = rows_of(step(view(pods=(over,), seals={attempt(0): SEALED}), NOW + 2))
        assert (found.kind, found.status) == ("verdict", "passed")

    def test_one_that_died_while_it_was_played_is_left_to_its_driver(self) -> None:
        played = pod(attempt(0), terminated("candidate", 137, at=self.DEAD), running("task", self.DEAD - 1))
        assert of(step(view(pods=(played,)), self.DEAD + 300), DeletePod) == []
