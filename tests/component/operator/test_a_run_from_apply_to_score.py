"""The main job against a fake cluster: what a user applies, and what the status says in the end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.stage import NAMESPACE, a_run, a_stage

from casewarden.core.model import AttemptKey
from casewarden.core.step import step


async def test_a_run_is_planned_played_and_scored() -> None:
    async with a_stage(cases=4, work=lambda key: 0.2) as stage, stage.operator():
        run = stage.apply(a_run(parallelism=2))
        status = await stage.finished()
        assert (status["score"], status["valid"], status["resolved"], status["progress"]) == ("1", True, True, "4/4")
        assert stage.condition("Complete")["status"] == "True"
        assert stage.condition("Passed")["reason"] == "Resolved"
        assert stage.kubelet.most_running == 2
        assert status["ledger"]["rows"] == status["attempts"]["total"] == 4
        uid = run["metadata"]["uid"]
        document = json.loads(stage.evidence.files[uid, "run.json"])
        assert document["score"]["score"] == "1"
        assert len(stage.evidence.files[uid, "results.jsonl"].splitlines()) == 4
        assert set(status["fingerprints"]) >= {
            "task",
            "contract",
            "cases",
            "grader",
            "candidate",
            "conditions",
            "images",
        }
        await stage.until(lambda: not stage.api.all("pods"), what="no pod left")


async def test_failed_cases_are_counted_and_named() -> None:
    def outcome(key: AttemptKey) -> str:
        return {"case-000": "failed", "case-001": "agent_error"}.get(key.case.case_id, "passed")

    async with a_stage(cases=4, outcome=outcome) as stage, stage.operator():
        stage.apply(a_run())
        status = await stage.finished()
        assert status["score"] == "0.5"
        assert [item["case"] for item in status["failures"]] == ["case-000", "case-001"]
        assert (status["cases"]["failed"], status["cases"]["agentErrors"]) == (1, 1)


async def test_drawn_seeds_are_shown_and_kept() -> None:
    async with a_stage(cases=2) as stage, stage.operator():
        stage.apply(a_run(seeds={"random": 3}))
        status = await stage.finished()
        assert len(set(status["seeds"])) == 3
        assert status["progress"] == "6/6"


async def test_environment_errors_are_tried_again_and_counted() -> None:
    def outcome(key: AttemptKey) -> str:
        return "environment_error" if key.attempt == 1 and key.case.case_id == "case-000" else "passed"

    async with a_stage(cases=2, outcome=outcome) as stage, stage.operator():
        stage.apply(a_run(parallelism=10))
        await stage.until(lambda: stage.status()["progress"] == "1/2")
        status = await stage.finished(seconds=30)
        assert (status["score"], status["attempts"]["total"], status["attempts"]["environmentRetries"]) == ("1", 3, 1)


async def test_a_malformed_spec_is_refused_with_field_value_and_cure() -> None:
    async with a_stage() as stage, stage.operator():
        stage.apply(a_run(task={"name": "eco"}))
        status = await stage.finished()
        accepted = stage.condition("Accepted")
        assert (accepted["status"], accepted["reason"]) == ("False", "UnknownTask")
        assert "spec.task.name" in accepted["message"]
        assert "score" not in status
        assert not stage.api.all("pods")


async def test_what_a_later_version_brings_is_not_yet() -> None:
    async with a_stage() as stage, stage.operator():
        stage.apply(a_run(aggregation="agentbench-oa/v1"))
        await stage.finished()
        assert stage.condition("Accepted")["reason"] == "NotYet"
        assert "spec.aggregation" in stage.condition("Accepted")["message"]
        assert not stage.api.all("pods")


async def test_a_model_behind_an_endpoint_that_nobody_set_up_is_refused() -> None:
    async with a_stage() as stage, stage.operator():
        stage.apply(a_run(candidate={"model": {"endpoint": "e", "name": "m"}}))
        await stage.finished()
        assert stage.condition("Accepted")["reason"] == "UnknownEndpoint"
        assert "spec.candidate.model.endpoint" in stage.condition("Accepted")["message"]
        assert not stage.api.all("pods")


async def test_a_refusal_of_the_pack_is_told_with_its_field() -> None:
    async with a_stage() as stage, stage.operator():
        stage.apply(a_run(select={"families": ["no-such-case"]}))
        await stage.finished()
        assert stage.condition("Planned")["reason"] == "PlanRefused"
        assert "no-such-case" in stage.condition("Planned")["message"]


async def test_a_pack_that_does_not_agree_with_itself_is_refused() -> None:
    async with a_stage() as stage, stage.operator():
        stage.kubelet.plan_again = lambda plan: {**plan, "task": {**plan["task"], "description": "another"}}
        stage.apply(a_run())
        await stage.finished()
        assert stage.condition("Failed")["reason"] == "PlanUnstable"
        await stage.until(lambda: not stage.api.all("pods"), what="no pod left")


async def test_the_workspace_is_copied_and_later_changes_have_no_effect() -> None:
    async with a_stage(cases=2) as stage, stage.operator():
        stage.apply(a_run(candidate={"program": {"workspace": {"configMap": "agent"}}}))
        await stage.until(lambda: stage.status()["conditions"])
        body = {"kind": "ConfigMap", "metadata": {"name": "agent", "namespace": NAMESPACE}, "data": {"main.py": "pass"}}
        stage.api.put("configmaps", body)
        await stage.finished()
        (copy,) = [
            item
            for item in stage.api.all("configmaps")
            if (item["metadata"].get("labels") or {}).get("casewarden.dev/role") == "workspace"
        ]
        assert copy["immutable"] is True
        assert copy["data"] == {"main.py": "pass"}
        (pod, *_) = [p for p in stage.api.created if p["kind"] == "Pod" and "case" in p["metadata"]["labels"].values()]
        volume = next(item for item in pod["spec"]["volumes"] if item["name"] == "workspace")
        assert volume["configMap"]["name"] == copy["metadata"]["name"]


async def test_a_workspace_that_is_not_there_fails_the_run_by_name() -> None:
    async with a_stage() as stage, stage.operator():
        stage.apply(a_run(candidate={"program": {"workspace": {"configMap": "nowhere"}}}))
        await stage.finished()
        failed = stage.condition("Failed")
        assert failed["reason"] == "WorkspaceMissing"
        assert "spec.candidate.program.workspace.configMap" in failed["message"]
        assert "nowhere" in failed["message"]


async def test_the_namespace_gets_its_policies_and_its_reader_and_they_belong_to_the_runs() -> None:
    async with a_stage(cases=1) as stage, stage.operator():
        runs = [stage.apply(a_run(name))["metadata"]["uid"] for name in ("one", "two")]
        await stage.finished("one")
        await stage.finished("two")
        policies = stage.api.all("networkpolicies")
        assert {item["metadata"]["name"] for item in policies} == {"casewarden-case-relay", "casewarden-case-none"}
        (account,) = stage.api.all("serviceaccounts")
        for item in (*policies, account):
            assert {owner["uid"] for owner in item["metadata"]["ownerReferences"]} == set(runs)


async def test_every_object_of_a_run_goes_with_it() -> None:
    async with a_stage(cases=2) as stage, stage.operator():
        stage.apply(a_run())
        await stage.finished()
        stage.api.delete("evalruns", NAMESPACE, "one")
        await stage.until(lambda: not [k for k in stage.api.objects if k[0] != "events"], what="nothing left")


async def test_a_run_goes_when_its_time_after_the_end_is_over() -> None:
    async with a_stage(cases=1) as stage, stage.operator():
        stage.apply(a_run(ttlSecondsAfterFinished=1))
        await stage.finished()
        await stage.until(lambda: not stage.api.all("evalruns"), what="the run is deleted")


async def test_events_tell_what_a_user_must_know() -> None:
    async with a_stage(cases=1) as stage, stage.operator():
        stage.apply(a_run())
        await stage.finished()
        await stage.until(lambda: len(stage.api.all("events")) >= 2)
        told = {(item["type"], item["reason"]) for item in stage.api.all("events")}
        assert {("Normal", "Planned"), ("Normal", "Completed")} <= told


async def test_a_failure_of_the_operators_own_is_told_and_got_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the status of the run would say why it does not go on."""
    failures = iter((KeyError("a bug"), KeyError("a bug"), None))

    def broken(*args: Any) -> Any:
        if (failure := next(failures, None)) is not None:
            raise failure
        return step(*args)

    monkeypatch.setattr("casewarden.controller.playing.step", broken)
    async with a_stage(cases=1) as stage, stage.operator():
        stage.apply(a_run())
        status = await stage.finished()
        assert status["score"] == "1"
        await stage.until(lambda: [item for item in stage.api.all("events") if item["reason"] == "OperatorError"])
        (told,) = [item for item in stage.api.all("events") if item["reason"] == "OperatorError"]
        assert told["type"] == "Warning"
        assert "KeyError: 'a bug'" in (told.get("message") or told.get("note"))
