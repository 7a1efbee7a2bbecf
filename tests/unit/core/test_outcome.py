"""The outcome table: each row, each fact that a real cluster was seen to mislead with, and the order of rows."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import pytest
from support.pod_json import alive, disruption, finished, pod, running, terminated, told, waiting

from casewarden.api.reasons import AttemptReason, RunReason
from casewarden.core import facts
from casewarden.core.model import PodRecord, Sealed
from casewarden.core.outcome import TABLE, Context, as_markdown, classify, clean, run_reasons
from casewarden.core.outcome import told as read_told

SEALED = Sealed(1, "pod-1", "d" * 64, "failed", "0", None, "wrong answer", 1.5)
NOW = Context(now=200.0)


def _refusal(reason: str) -> str:
    return told("environment_error", "-", None, reason=reason, error="gave up")


def _gave_up(reason: str) -> PodRecord:
    return pod(None, terminated("task", 3, message=_refusal(reason)))


def _evicted(message: str, *containers) -> PodRecord:
    return pod(None, *containers, phase="Failed", reason="Evicted", message=message)


class Fact(NamedTuple):
    what: str
    pod: PodRecord | None
    row: int
    kind: str
    reason: str


STATE_FULL = 'Usage of EmptyDir volume "state" exceeds the limit "64Mi". '
DRAINED = disruption("EvictionByEvictionAPI", at=90)

FACTS = [
    Fact("evicted for its state volume", _evicted(STATE_FULL), 2, "verdict", "StorageLimit"),
    Fact(
        "evicted for its tmp volume",
        _evicted('Usage of EmptyDir volume "candidate-tmp" exceeds the limit "16Mi". '),
        2, "verdict", "StorageLimit",
    ),
    Fact(
        "evicted for its own ephemeral storage",
        _evicted('Container candidate exceeded its local ephemeral storage limit "64Mi". '),
        2, "verdict", "StorageLimit",
    ),
    Fact(
        "evicted for the storage of the pod in all",
        _evicted("Pod ephemeral local storage usage exceeds the total limit of containers 900Mi. "),
        2, "verdict", "StorageLimit",
    ),
    Fact(
        "only the condition names its volume",
        pod(None, phase="Failed", conditions=(disruption("TerminationByKubelet", message=STATE_FULL),)),
        2, "verdict", "StorageLimit",
    ),
    Fact(
        "its container was killed for memory",
        pod(None, terminated("candidate", 137, "OOMKilled", at=50), terminated("task", 1, at=60)),
        2, "verdict", "OOMKilled",
    ),
    Fact(
        "its shim died",
        pod(None, terminated("candidate", 2, at=50), terminated("task", 1, at=60)),
        3, "verdict", "ShimLost",
    ),
    Fact(
        "its container died before the driver began",
        pod(None, terminated("candidate", 137, at=9), terminated("task", 143, at=60), deleted=50),
        9, "environment", "EvidenceFailed",
    ),
    Fact(
        "its container was killed for memory before the driver began",
        pod(
            None, terminated("candidate", 137, "OOMKilled", at=9),
            terminated("task", 3, message=_refusal("EvidenceFailed"), at=15),
        ),
        9, "environment", "EvidenceFailed",
    ),
    Fact(
        "its container was killed for memory in the second in which the driver began",
        pod(None, terminated("candidate", 137, "OOMKilled", at=10), terminated("task", 1, at=15)),
        2, "verdict", "OOMKilled",
    ),
    Fact(
        "its container was ended by SIGTERM in that second, which a program can send to it",
        pod(None, terminated("candidate", 143, at=10), terminated("task", 1, at=15)),
        3, "verdict", "ShimLost",
    ),
    Fact(
        "its container was killed otherwise in that second",
        pod(
            None, terminated("candidate", 137, at=10),
            terminated("task", 3, message=_refusal("EvidenceFailed"), at=15),
        ),
        9, "environment", "EvidenceFailed",
    ),
    Fact(
        "its container died while the task's image was pulled",
        pod(None, terminated("candidate", 2, at=50), waiting("task"), deleted=80, phase="Failed"),
        9, "environment", "EvidenceFailed",
    ),
    Fact(
        "its shim gave up, and the pod was stopped for it",
        pod(None, terminated("candidate", 1, at=70), terminated("task", 143, at=100), deleted=95),
        9, "environment", "EvidenceFailed",
    ),
    Fact(
        "somebody deleted the pod while it started",
        pod(None, terminated("candidate", 137, at=9), terminated("task", 143, at=12), deleted=8),
        7, "interruption", "Deleted",
    ),
    Fact(
        "evicted for the storage of what it acts upon",
        _evicted('Container env-db exceeded its local ephemeral storage limit "1Gi". '),
        4, "verdict", "SandboxKilled",
    ),
    Fact(
        "node pressure, though the candidate is named",
        _evicted("The node was low on resource: memory. Container candidate was using 90Mi, request is 50Mi. "),
        6, "environment", "Evicted",
    ),
    Fact(
        "evicted for the evidence's volume",
        _evicted('Usage of EmptyDir volume "spool" exceeds the limit "512Mi". '),
        6, "environment", "Evicted",
    ),
    Fact(
        "evicted for the task's storage",
        _evicted('Container task exceeded its local ephemeral storage limit "256Mi". '),
        6, "environment", "Evicted",
    ),
    Fact(
        "drained",
        pod(None, terminated("task", 143, at=95), deleted=90, conditions=(DRAINED,)),
        6, "environment", "Evicted",
    ),
    Fact(
        "preempted",
        pod(None, terminated("task", 143, at=95), deleted=90, conditions=(disruption("PreemptionByScheduler"),)),
        6, "environment", "Preempted",
    ),
    Fact(
        "its node's taint evicted it",
        alive(deleted=90, conditions=(disruption("DeletionByTaintManager", at=90),)),
        6, "environment", "NodeLost",
    ),
    Fact("deleted long ago and still there", alive(deleted=90), 6, "environment", "NodeLost"),
    Fact("phase Unknown", alive(phase="Unknown"), 6, "environment", "NodeLost"),
    Fact("refused by the kubelet", pod(None, phase="Failed", reason="OutOfcpu"), 6, "environment", "Evicted"),
    Fact(
        "evicted, and the sidecar's status misleads",
        _evicted(
            "The node was low on resource: memory. ",
            terminated("evidence", 137, "ContainerStatusUnknown", restarts=1),
            terminated("task", 137),
        ),
        6, "environment", "Evicted",
    ),
    Fact(
        "a candidate's container that a drain took along",
        pod(
            None,
            terminated("candidate", 137, "OOMKilled", at=95),
            terminated("task", 143, at=95),
            deleted=90,
            conditions=(DRAINED,),
        ),
        6, "environment", "Evicted",
    ),
    Fact(
        "deleted by somebody",
        pod(None, terminated("task", 143, at=195), deleted=190),
        7, "interruption", "Deleted",
    ),
    Fact(
        "deleted by somebody, and removed by its kubelet seconds after its end",
        pod(None, terminated("candidate", 143, at=194), terminated("task", 143, at=195), deleted=199),
        7, "interruption", "Deleted",
    ),
    Fact(
        "told to stop by nobody that is known",
        pod(None, terminated("candidate", 143, at=194), terminated("task", 143, at=195)),
        12, "environment", "Unknown",
    ),
    Fact("gone, and nothing was seen of it", None, 7, "interruption", "Deleted"),
    Fact("gone, and last seen running", alive(), 7, "interruption", "Deleted"),
    Fact(
        "its claim is lost and nothing is sealed",
        finished(message=told("superseded", "", None)),
        7, "interruption", "Superseded",
    ),
    Fact("the store was away for too long", _gave_up("StoreUnavailable"), 8, "environment", "StoreUnavailable"),
    Fact("the model's endpoint was away", _gave_up("ModelUnavailable"), 8, "environment", "ModelUnavailable"),
    Fact("the driver blames an environment", _gave_up("EnvironmentFailed"), 9, "environment", "EnvironmentFailed"),
    Fact("the task made another case than planned", _gave_up("CaseMismatch"), 9, "environment", "CaseMismatch"),
    Fact("the driver crashed", pod(None, terminated("task", 1)), 9, "environment", "TaskFailed"),
    Fact(
        "the driver was killed for memory",
        pod(None, terminated("task", 137, "OOMKilled")),
        9, "environment", "TaskFailed",
    ),
    Fact(
        "the sidecar was started again",
        pod(None, running("evidence", restarts=1, last={"exitCode": 1, "reason": "Error"}), terminated("task", 1)),
        9, "environment", "EvidenceFailed",
    ),
    Fact(
        "an environment container died",
        pod(None, terminated("env-db", 1, at=50), terminated("task", 1, at=60)),
        9, "environment", "EnvironmentFailed",
    ),
    Fact(
        "past its deadline",
        pod(None, terminated("candidate", 137), terminated("task", 143), phase="Failed", reason="DeadlineExceeded"),
        9, "environment", "TaskFailed",
    ),
    Fact(
        "a shim that gave up by itself, and the driver with it",
        pod(None, terminated("candidate", 1, at=50), terminated("task", 1, at=60)),
        9, "environment", "TaskFailed",
    ),
    Fact(
        "the driver waited in vain for a candidate without an image",
        pod(
            None,
            waiting("candidate", "ImagePullBackOff", "not found"),
            terminated("task", 3, message=_refusal("EvidenceFailed")),
        ),
        10, "environment", "ImagePull",
    ),
    Fact(
        "the driver's command is not there",
        pod(None, terminated("task", 128, "StartError", "exec: not found")),
        10, "environment", "CannotStart",
    ),
    Fact("exit 0 without a word", finished(message=""), 12, "environment", "Unknown"),
    Fact("a reason that the table does not have", _gave_up("SolarFlare"), 12, "environment", "Unknown"),
    Fact(
        "stopped, and nobody says by whom",
        pod(None, terminated("task", 143), phase="Succeeded"),
        12, "environment", "Unknown",
    ),
]  # fmt: skip
each_fact = pytest.mark.parametrize("fact", FACTS, ids=lambda fact: f"{fact.row}: {fact.what}")


@each_fact
def test_each_fact_matches_its_row(fact):
    outcome = classify(fact.pod, None, NOW)
    assert (outcome.row, outcome.kind, outcome.reason) == (fact.row, fact.kind, fact.reason)
    assert outcome.status == ("agent_error" if fact.kind == "verdict" else "environment_error")
    assert outcome.budget == {"environment": "environment", "interruption": "interruption"}.get(
        fact.kind if fact.row != 10 else "", "none"
    )
    assert outcome.error


def test_every_row_that_the_operator_sees_by_itself_is_tested_here():
    assert {fact.row for fact in FACTS} == {row.number for row in TABLE if row.find is not None}


@each_fact
def test_what_is_sealed_wins_over_every_other_fact(fact):
    outcome = classify(fact.pod, SEALED, NOW)
    assert (outcome.row, outcome.kind, outcome.status, outcome.sealed) == (1, "verdict", "failed", SEALED)


def test_a_stop_by_the_run_itself_draws_on_no_budget():
    stopped = pod(None, terminated("task", 143, at=195), deleted=190)
    outcome = classify(stopped, None, Context(now=200, stopped=AttemptReason.SUSPENDED))
    assert (outcome.kind, outcome.reason, outcome.budget) == ("suspended", "Suspended", "none")


def test_a_pod_that_failed_before_the_run_stopped_it_is_judged_by_its_own_failure():
    outcome = classify(
        pod(None, terminated("task", 1, at=100), deleted=190), None, Context(now=200, stopped="Suspended")
    )
    assert (outcome.kind, outcome.reason) == ("environment", "TaskFailed")


def test_an_attempt_whose_case_was_settled_without_it_never_has_a_verdict():
    outcome = classify(FACTS[0].pod, SEALED, Context(now=200, superfluous=True))
    assert (outcome.kind, outcome.reason) == ("interruption", "Superseded")


def test_waiting_that_was_given_up_is_row_ten():
    trouble = facts.Trouble(RunReason.UNSCHEDULABLE, "0/1 nodes are available", "some", 0.0)
    outcome = classify(alive(node=""), None, Context(now=200, given_up=trouble))
    assert (outcome.row, outcome.reason, outcome.error) == (10, "Unschedulable", "0/1 nodes are available")


class TestFactsThatMislead:
    def test_a_finished_pod_that_is_drained_afterwards_was_not_evicted(self):
        record = pod(
            None,
            terminated("task", 1, at=100),
            phase="Failed",
            conditions=(disruption("EvictionByEvictionAPI", at=150),),
        )
        assert classify(record, None, NOW).reason == "TaskFailed"

    def test_a_container_that_ends_0_with_reason_oomkilled_was_not_killed(self):
        """A child of its first process was; that is the program's own affair, and the recorder's."""
        record = pod(None, terminated("candidate", 0, "OOMKilled", at=50), terminated("task", 1, at=60))
        assert classify(record, None, NOW).reason == "TaskFailed"

    def test_a_container_that_the_kubelet_lost_sight_of_says_nothing(self):
        record = pod(None, terminated("candidate", 137, "ContainerStatusUnknown", at=50), terminated("task", 1, at=60))
        assert classify(record, None, NOW).reason == "TaskFailed"

    def test_a_candidate_container_that_ends_after_the_task_did_was_told_to(self):
        record = pod(None, terminated("candidate", 2, at=61), terminated("task", 1, at=60))
        assert classify(record, None, NOW).reason == "TaskFailed"

    def test_a_pod_that_vanished_long_after_it_was_seen_is_not_taken_for_a_lost_node(self):
        assert classify(alive(), None, Context(now=0.0)).reason == "Deleted"


class TestTellingOfAVerdict:
    def test_a_message_with_a_right_checksum_and_exit_code_0_is_believed(self):
        sealed = read_told(finished(message=told("failed", "10", error="late", seconds=2.5)), 3, 2)
        assert sealed == Sealed(3, "pod-1", "ab" * 32, "failed", "10", None, "late", 2.5)

    @pytest.mark.parametrize(
        "record",
        [
            pytest.param(alive(), id="the task runs"),
            pytest.param(finished(message=""), id="no message"),
            pytest.param(finished(message=told().replace('"passed"', '"failed"')), id="a wrong checksum"),
            pytest.param(finished(message=told()[:-20]), id="cut by the kubelet"),
            pytest.param(finished(message="passed"), id="no JSON"),
            pytest.param(pod(None, terminated("task", 3, message=told())), id="another exit code"),
            pytest.param(pod(None, terminated("task", 137, message=told())), id="killed"),
            pytest.param(finished(message=told("environment_error", "-", reason="TaskFailed")), id="no assessment"),
            pytest.param(finished(message=told("superseded", "")), id="superseded"),
            pytest.param(finished(message=told(digest=None)), id="no digest"),
            pytest.param(finished(message=told("failed", "10")), id="checks of another case"),
        ],
    )
    def test_anything_else_means_that_the_store_is_asked(self, record):
        assert read_told(record, 1, 1) is None

    def test_the_candidates_own_message_is_not_the_tasks(self):
        record = pod(None, terminated("candidate", 0, message=told()), terminated("task", 0, message=""))
        assert read_told(record, 1, 1) is None


def test_the_reasons_of_the_table_are_all_reasons_of_attempts_each_in_one_row():
    rows = [str(reason) for row in TABLE if row.number not in (10, 11) for reason in row.reasons]
    assert sorted(rows) == sorted(str(reason) for reason in AttemptReason)


def test_row_ten_fails_the_run():
    assert run_reasons() == {"ImagePull", "CannotStart", "Unschedulable", "BudgetSpent"}


def test_rows_are_in_their_order_and_the_last_matches_everything():
    numbers = [row.number for row in TABLE]
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(1, 13))
    assert classify(pod(None, running("task"), phase="Succeeded"), None, NOW).row == 12


def test_errors_are_one_short_line_whatever_they_quote():
    dirty = "a\x1b[31mred\nline\u202e" + "é" * 400
    line = clean(dirty)
    assert line.startswith("a [31mred line")
    assert len(line.encode()) <= 300
    assert line.isprintable()


def test_the_reference_page_is_the_table():
    page = Path(__file__).parents[3] / "docs" / "reference" / "outcomes.md"
    head, _, _ = page.read_text().partition("| # |")
    if os.environ.get("REGENERATE"):
        page.write_text(head + as_markdown())
    assert page.read_text() == head + as_markdown()


def test_of_a_recorder_that_was_killed_the_row_says_how_it_ended() -> None:
    """Its driver sees no more than that it is gone."""
    killed = running("evidence", restarts=1, last={"exitCode": 137, "reason": "OOMKilled"})
    gone = told("environment_error", "-", None, reason="EvidenceFailed", error="the evidence sidecar is gone")
    outcome = classify(pod(None, killed, terminated("task", 3, message=gone)), None, NOW)
    assert outcome.reason == "EvidenceFailed"
    assert outcome.error is not None
    assert outcome.error.startswith("the evidence sidecar is gone; ")
    assert outcome.error.endswith("137 OOMKilled")
