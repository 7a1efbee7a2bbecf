"""An audit against a fake cluster: its controls as runs of their own, one plan, one parallelism, one judgement."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.stage import NAMESPACE, a_run, a_stage, an_audit, good_grader

from casewarden.core.audit_children import child_name
from casewarden.core.model import AttemptKey

CONTROLS = ["reference", "null-agent", "deaf", "crashing-agent", "forger"]


def condition(status: dict[str, Any], type_: str) -> dict[str, Any]:
    return next(item for item in status["conditions"] if item["type"] == type_)


async def test_an_audit_runs_every_control_on_one_plan_and_judges_the_grader() -> None:
    async with a_stage(cases=4, control=good_grader, work=lambda key: 0.02) as stage, stage.operator():
        body = stage.apply(an_audit(parallelism=3))
        status = await stage.audited()
        assert (status["valid"], status["passed"], status["killed"], status["mutationScore"]) == (
            True,
            True,
            "1/1",
            "1",
        )
        assert (status["weakestMargin"], status["referenceScore"], status["referenceFlakes"]) == (4, "1", 0)
        assert status["floors"] == {"crashing-agent": "0", "forger": "0", "null-agent": "0"}
        assert [row["name"] for row in status["controls"]] == CONTROLS
        assert status["progress"] == "24/24"
        assert condition(status, "Passed")["reason"] == "AuditPassed"
        assert stage.kubelet.plans == 1
        assert stage.kubelet.most_running == 3
        runs = stage.api.all("evalruns")
        assert {run["metadata"]["ownerReferences"][0]["uid"] for run in runs} == {body["metadata"]["uid"]}
        document = json.loads(stage.evidence.files[body["metadata"]["uid"], "audit.json"])
        assert document["judgement"]["passed"] is True
        assert {run["uid"] for run in document["runs"]} == {run["metadata"]["uid"] for run in runs}
        assert status["evidence"]["digest"].startswith("sha256:")


async def test_a_grader_that_misses_a_fault_does_not_pass_and_fault_and_dimension_are_named() -> None:
    def outcome(control: str, key: AttemptKey) -> str:
        return "passed" if control == "deaf" else good_grader(control, key)

    async with a_stage(cases=2, control=outcome) as stage, stage.operator():
        stage.apply(an_audit())
        status = await stage.audited()
        assert (status["valid"], status["passed"], status["killed"]) == (True, False, "0/1")
        assert condition(status, "Passed")["status"] == "False"
        assert "deaf: is not caught in echo" in condition(status, "Passed")["message"]


async def test_a_fault_that_only_crashes_is_not_caught() -> None:
    def outcome(control: str, key: AttemptKey) -> str:
        return "agent_error" if control == "deaf" else good_grader(control, key)

    async with a_stage(cases=2, control=outcome) as stage, stage.operator():
        stage.apply(an_audit())
        status = await stage.audited()
        assert (status["passed"], status["killed"]) == (False, "0/1")
        assert "broke in 2 cases" in condition(status, "Passed")["message"]


async def test_an_environment_error_that_retries_do_not_cure_makes_the_audit_invalid_and_never_passed() -> None:
    def outcome(control: str, key: AttemptKey) -> str:
        return "environment_error" if control == "deaf" else good_grader(control, key)

    async with a_stage(cases=1, control=outcome) as stage, stage.operator():
        stage.apply(an_audit(retries={"environment": 0}))
        status = await stage.audited()
        assert status["valid"] is False
        assert "passed" not in status
        assert "mutationScore" not in status
        assert condition(status, "Passed")["status"] == "Unknown"


async def test_an_audit_goes_on_through_a_restart_of_the_operator() -> None:
    async with a_stage(cases=6, control=good_grader, work=lambda key: 0.05) as stage:
        async with stage.operator():
            stage.apply(an_audit(parallelism=4))
            await stage.until(lambda: int(stage.audit()["progress"].partition("/")[0]) >= 8)
        async with stage.operator():
            status = await stage.audited()
        assert (status["valid"], status["passed"], status["killed"]) == (True, True, "1/1")
        assert stage.kubelet.most_running <= 4
        assert max(stage.kubelet.attempts.values()) <= len(CONTROLS)
        assert stage.kubelet.plans == 1


@pytest.mark.parametrize(
    ("spec", "type_", "said"),
    [
        ({"task": {"name": "eco"}}, "Accepted", "spec.task.name"),
        ({"controls": ["dead"]}, "Planned", "did you mean deaf?"),
        ({"controls": ["reference"]}, "Planned", "an audit without faults shows nothing"),
        ({"controls": ["deaf", "deaf"]}, "Accepted", "there twice"),
    ],
)
async def test_bad_input_is_refused_with_field_value_and_cure(spec: dict[str, Any], type_: str, said: str) -> None:
    async with a_stage(cases=1, control=good_grader) as stage, stage.operator():
        stage.apply(an_audit(**spec))
        status = await stage.audited()
        assert condition(status, type_)["status"] == "False"
        assert said in condition(status, type_)["message"]
        assert not stage.api.all("evalruns")


async def test_a_run_that_claims_to_be_an_audits_child_is_refused() -> None:
    async with a_stage(cases=2, control=good_grader) as stage, stage.operator():
        body = stage.apply(an_audit(suspend=True))
        owner = {"apiVersion": "casewarden.dev/v1alpha1", "kind": "AuditRun", "name": "trial", "controller": True}
        for number, name in enumerate(("liar", child_name("trial", body["metadata"]["uid"], "deaf"))):
            run = a_run(name, candidate={"control": "deaf"}, repeats=1 + number, parallelism=7, limits={"actions": 3})
            run["metadata"]["ownerReferences"] = [owner | {"uid": body["metadata"]["uid"]}]
            stage.apply(run)
            await stage.finished(name)
            accepted = stage.condition("Accepted", name)
            assert (accepted["status"], accepted["reason"]) == ("False", "NotAnAuditsChild")


async def test_a_run_that_requires_an_audit_waits_and_starts_by_itself_when_one_has_passed() -> None:
    async with a_stage(cases=2, control=good_grader) as stage, stage.operator():
        stage.apply(a_run(candidate={"control": "reference"}, audit={"policy": "Require"}))
        await stage.until(lambda: stage.condition("Finished")["reason"] == "NotAudited", what="it waits")
        assert stage.condition("Audited")["status"] == "False"
        assert not [pod for pod in stage.api.all("pods") if pod["metadata"]["labels"]["casewarden.dev/role"] == "case"]
        stage.apply(an_audit())
        await stage.audited()
        status = await stage.finished()
        assert (status["score"], stage.condition("Audited")["status"]) == ("1", "True")
        assert status["floor"] == {"audit": "trial", "nullAgent": "0", "reference": "1"}


async def test_a_run_that_wants_a_warning_says_that_there_is_no_audit_and_runs() -> None:
    async with a_stage(cases=1) as stage, stage.operator():
        stage.apply(a_run(audit={"policy": "Warn"}))
        await stage.finished()
        audited = stage.condition("Audited")
        assert (audited["status"], audited["reason"]) == ("False", "NotAudited")
        await stage.until(lambda: [e for e in stage.api.all("events") if e["reason"] == "NotAudited"], what="the Event")


async def test_an_audit_takes_its_runs_along_and_follows_suspend_and_parallelism() -> None:
    async with a_stage(cases=3, control=good_grader, work=lambda key: 0.05) as stage, stage.operator():
        stage.apply(an_audit(parallelism=1))
        await stage.until(lambda: len(stage.api.all("evalruns")) == len(CONTROLS))
        stage.api.update("auditruns", NAMESPACE, "trial", {"spec": {"suspend": True, "parallelism": 5}})
        await stage.until(
            lambda: all(run["spec"]["suspend"] and run["spec"]["parallelism"] == 5 for run in stage.api.all("evalruns"))
        )
        stage.api.update("auditruns", NAMESPACE, "trial", {"spec": {"suspend": False}})
        await stage.audited()
        stage.api.delete("auditruns", NAMESPACE, "trial")
        await stage.until(lambda: not stage.api.all("evalruns") and not stage.api.all("pods"), what="no run left")
