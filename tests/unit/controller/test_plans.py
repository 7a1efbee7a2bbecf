"""What a plan pod came to, and how a plan is kept."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from support import pod_json as pj
from support.packs import EchoPack

from casewarden.api.names import plan_pod_name
from casewarden.api.reasons import RunReason
from casewarden.controller.identity import RunIdentity
from casewarden.controller.plans import (
    PlanFailed,
    Planned,
    Resolved,
    Unplanned,
    Waiting,
    judge_plan_pod,
    keep_plan,
    load_plan,
    read_plan_log,
)
from casewarden.core.model import PodRecord, RunPolicy
from casewarden.core.observe import observe
from casewarden.ports.kube import CONFIG_MAPS
from casewarden.ports.memory_kube import MemoryKube
from casewarden_sdk.canonical import canonical, sha256_bytes
from casewarden_sdk.plan import build_plan, plan_lines

RUN = RunIdentity("evals", "one", "uid-1")
POLICY = RunPolicy(1, 0, 0, 900.0, suspend=False, deadline=None)
PLAN = build_plan(EchoPack(), [17], {})
TEXT = canonical(PLAN)
SHA = sha256_bytes(TEXT.encode())
SAID = json.dumps({"v": 1, "sha256": SHA, "bytes": len(TEXT)})


def pod(*containers: dict[str, Any], phase: str = "Running", **status: Any) -> PodRecord:
    manifest = {
        "metadata": {
            "name": plan_pod_name("one", "uid-1", 1), "namespace": "evals", "uid": "p", "resourceVersion": "1",
            "creationTimestamp": pj.time(0), "ownerReferences": [RUN.owner.reference(controller=True)],
            "labels": RUN.labels("plan"),
        },
        "spec": {"nodeName": "node-1"},
        "status": {
            "phase": phase, "containerStatuses": list(containers),
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": pj.time(0)}],
        } | status,
    }  # fmt: skip
    found = observe(manifest)
    assert found is not None
    return found


def ended(one: tuple[int, str], two: tuple[int, str]) -> PodRecord:
    return pod(
        pj.terminated("plan", one[0], message=one[1]) | {"imageID": "x@sha256:1"},
        pj.terminated("plan-again", two[0], message=two[1]),
        phase="Succeeded",
    )


def refused(message: str) -> str:
    return json.dumps({"v": 1, "error": message, "field": "spec.task.params.size"})


def test_two_equal_answers_are_a_plan_with_the_image_that_gave_it() -> None:
    assert judge_plan_pod(ended((0, SAID), (0, SAID)), POLICY, 200) == Planned(SHA, "x@sha256:1")


def test_two_different_answers_are_none() -> None:
    other = SAID.replace(SHA, "0" * 64)
    verdict = judge_plan_pod(ended((0, SAID), (0, other)), POLICY, 200)
    assert isinstance(verdict, Unplanned)
    assert (verdict.reason, verdict.again) == (RunReason.PLAN_UNSTABLE, False)


@pytest.mark.parametrize("words", ["too big", "spec.task.params.size: too big"])
def test_a_refusal_is_told_in_the_packs_words_with_the_field_once(words: str) -> None:
    verdict = judge_plan_pod(ended((2, refused(words)), (2, refused(words))), POLICY, 200)
    assert verdict == Unplanned(RunReason.PLAN_REFUSED, "spec.task.params.size: too big", False)


def test_one_plan_and_one_refusal_do_not_agree() -> None:
    verdict = judge_plan_pod(ended((0, SAID), (2, refused("too big"))), POLICY, 200)
    assert isinstance(verdict, Unplanned)
    assert verdict.reason == RunReason.PLAN_UNSTABLE


@pytest.mark.parametrize("message", ["", "Traceback: boom", '{"v": 2, "sha256": "x"}', '{"v": 1}', "[]"])
def test_a_crash_is_tried_again_and_says_what_it_said(message: str) -> None:
    verdict = judge_plan_pod(ended((1, message), (0, SAID)), POLICY, 200)
    assert isinstance(verdict, Unplanned)
    assert (verdict.reason, verdict.again) == (RunReason.PLAN_FAILED, True)
    assert "exit code 1" in verdict.message


def test_an_eviction_is_tried_again() -> None:
    evicted = pod(phase="Failed", reason="Evicted", message="The node was low on resource: memory.")
    verdict = judge_plan_pod(evicted, POLICY, 200)
    assert isinstance(verdict, Unplanned)
    assert verdict.again
    assert "low on resource" in verdict.message


def test_an_image_that_is_not_there_is_waited_for_a_little_and_then_named() -> None:
    stuck = pod(
        *(pj.waiting(name, "ErrImagePull", "manifest unknown: not found") for name in ("plan", "plan-again")),
        phase="Pending",
    )
    waiting = judge_plan_pod(stuck, POLICY, 10)
    assert isinstance(waiting, Waiting)
    assert waiting.trouble is not None
    assert waiting.trouble[0] == RunReason.IMAGE_PULL
    verdict = judge_plan_pod(stuck, POLICY, 2000)
    assert isinstance(verdict, Unplanned)
    assert (verdict.reason, verdict.again) == (RunReason.IMAGE_PULL, False)


def test_a_pod_that_runs_is_waited_for() -> None:
    assert judge_plan_pod(pod(pj.running("plan"), pj.running("plan-again")), POLICY, 20) == Waiting(None)


def test_the_plan_is_read_from_between_the_lines_of_a_log() -> None:
    log = "\n".join(["warning: x", *plan_lines(PLAN), "bye"]).encode() + b"\xff"
    plan, text = read_plan_log(log, SHA)
    assert text == TEXT
    assert plan.task.id == "echo"


@pytest.mark.parametrize(
    "log", [b"", b"nothing", b"casewarden-plan !!!", "\n".join(plan_lines(PLAN)[:1]).encode()[:-40]]
)
def test_a_log_that_lost_the_plan_is_said_so(log: bytes) -> None:
    with pytest.raises(PlanFailed):
        read_plan_log(log, SHA)


def test_a_log_with_another_plan_is_not_it() -> None:
    other = build_plan(dataclasses.replace(EchoPack(), description="another"), [17], {})
    with pytest.raises(PlanFailed, match="has not the digest"):
        read_plan_log("\n".join(plan_lines(other)).encode(), SHA)


OTHER = canonical({**PLAN, "contract_version": "2", "dimensions": None})
OTHER_SHA = sha256_bytes(OTHER.encode())


def test_a_plan_of_another_contract_is_refused_with_what_helps() -> None:
    log = "\n".join(plan_lines(json.loads(OTHER))).encode()
    with pytest.raises(PlanFailed, match="contract_version: '2' is not what this operator speaks") as refused:
        read_plan_log(log, OTHER_SHA)
    assert refused.value.reason == RunReason.PLAN_REFUSED


async def test_a_kept_plan_of_another_contract_is_not_played() -> None:
    """As an operator finds it that was upgraded, or put back, while the run was going on."""
    api = MemoryKube()
    await keep_plan(api, RUN, OTHER, Resolved("tasks:1", (), {}))
    assert await load_plan(api, RUN, OTHER_SHA) is None


@pytest.mark.parametrize(
    "text",
    [TEXT[:-1] + ',"contract_version":"1"}', TEXT[:-1] + ',"more":NaN}', "[" * 200_000],
    ids=["a key twice", "no number", "nested too deeply"],
)
async def test_a_plan_that_does_not_say_one_thing_only_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task image wrote it: what it says must not hang on who reads it, nor end the operator that does."""
    monkeypatch.setattr("casewarden.controller.plans.read_plan_lines", lambda lines: text)
    with pytest.raises(PlanFailed, match="the task's plan: it cannot be read") as refused:
        read_plan_log(b"", sha256_bytes(text.encode()))
    assert refused.value.reason == RunReason.PLAN_REFUSED


async def test_a_kept_plan_is_read_back_and_cannot_be_changed() -> None:
    api = MemoryKube()
    said = Resolved("x@sha256:1", ("casewarden-task", "echo"), {"python": "python:1"})
    await keep_plan(api, RUN, TEXT, said)
    await keep_plan(api, RUN, TEXT, Resolved("later"))
    found = await load_plan(api, RUN, SHA)
    assert found is not None
    assert (found.text, found.sha256, found.resolved) == (TEXT, SHA, said)
    assert await load_plan(api, RUN, "0" * 64) is None
    (item,) = [item for (plural, _, _), item in api.objects.items() if plural == CONFIG_MAPS.plural]
    assert item["immutable"] is True


async def test_a_plan_that_is_not_whole_is_none() -> None:
    assert await load_plan(MemoryKube(), RUN, SHA) is None


def test_answers_of_containers_that_failed_after_them_are_none() -> None:
    verdict = judge_plan_pod(ended((1, SAID), (1, SAID)), POLICY, 10.0)
    assert isinstance(verdict, Unplanned)
    assert "exit code 1" in verdict.message
