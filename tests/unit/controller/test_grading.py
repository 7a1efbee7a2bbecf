"""What a grading pod came to: as a plan's, but for the container that fetches records first."""

from __future__ import annotations

from typing import Any

from support import pod_json as pj

from casewarden.api.names import grade_pod_name
from casewarden.api.reasons import RunReason
from casewarden.controller.grading import Grading
from casewarden.controller.identity import RunIdentity
from casewarden.controller.plans import Unplanned, Waiting, judge_plan_pod
from casewarden.core.model import PodRecord, RunPolicy
from casewarden.core.observe import observe

RUN = RunIdentity("evals", "one", "uid-1")
POLICY = RunPolicy(1, 0, 0, 900.0, suspend=False, deadline=None)


def pod(fetch: dict[str, Any], *containers: dict[str, Any], phase: str = "Pending") -> PodRecord:
    found = observe(
        {
            "metadata": {
                "name": grade_pod_name("one", "uid-1", 1), "namespace": "evals", "uid": "p", "resourceVersion": "1",
                "creationTimestamp": pj.time(0), "ownerReferences": [RUN.owner.reference(controller=True)],
                "labels": RUN.labels("grade"),
            },
            "spec": {"nodeName": "node-1"},
            "status": {
                "phase": phase, "initContainerStatuses": [fetch], "containerStatuses": list(containers),
                "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": pj.time(0)}],
            },
        }
    )  # fmt: skip
    assert found is not None
    return found


WAITING = (pj.waiting("grade"), pj.waiting("grade-again"))


def test_records_may_take_longer_to_fetch_than_a_pod_may_take_to_start() -> None:
    fetching = pod(pj.running("fetch"), *WAITING)
    assert judge_plan_pod(fetching, POLICY, 5000, Grading.question) == Waiting(None)


def test_records_that_cannot_be_had_are_told_in_the_words_of_what_fetches() -> None:
    said = "casewarden: run 0f5e: results.jsonl is not the one that the status vouches for: it was changed"
    failed = pod(pj.terminated("fetch", 1, message=said), *WAITING, phase="Failed")
    verdict = judge_plan_pod(failed, POLICY, 20, Grading.question)
    assert isinstance(verdict, Unplanned)
    assert (verdict.reason, verdict.again) == (RunReason.GRADING_FAILED, True)
    assert verdict.message == f"the grading was interrupted: its pod ended: {said}"


def test_a_grader_that_fails_at_a_record_says_at_which() -> None:
    said = '{"v": 1, "error": "the record of u/17/a/0 cannot be graded: KeyError: 1", "field": null}'
    ended = (pj.terminated("grade", 2, message=said), pj.terminated("grade-again", 2, message=said))
    verdict = judge_plan_pod(pod(pj.terminated("fetch", 0), *ended, phase="Failed"), POLICY, 20, Grading.question)
    assert isinstance(verdict, Unplanned)
    assert verdict.message == "spec.task: the record of u/17/a/0 cannot be graded: KeyError: 1"


def test_a_grader_that_does_not_agree_with_itself_is_refused() -> None:
    answers = [f'{{"v": 1, "sha256": "{digit * 64}"}}' for digit in "ab"]
    ended = [pj.terminated(name, 0, message=said) for name, said in zip(("grade", "grade-again"), answers, strict=True)]
    verdict = judge_plan_pod(pod(pj.terminated("fetch", 0), *ended, phase="Succeeded"), POLICY, 20, Grading.question)
    assert isinstance(verdict, Unplanned)
    assert (verdict.reason, verdict.again) == (RunReason.GRADING_FAILED, False)
    assert "asked for its grading twice and did not agree with itself" in verdict.message
