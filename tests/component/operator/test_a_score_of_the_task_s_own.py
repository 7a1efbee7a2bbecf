"""agentbench/v1 against a fake cluster: a pod of the task image makes the score, from what lies in the store."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.agentbench_tasks import NO_SCORE, PACK
from support.stage import Life, a_run, a_stage

from casewarden.core.model import AttemptKey


def run(**spec: Any) -> dict[str, Any]:
    return a_run(seeds={"values": [0]}, **spec)


def failing(key: AttemptKey) -> str:
    return "failed" if key.case.case_id == "1" else "passed"


async def test_the_score_is_what_the_pod_says_and_the_files_are_kept() -> None:
    async with a_stage(outcome=failing) as stage, stage.operator():
        stage.kubelet.pack = PACK
        uid = stage.apply(run())["metadata"]["uid"]
        status = await stage.finished()
        assert (status["score"], status["valid"], status["assessed"]) == ("0.66666667", True, "3/3")
        assert status["cases"]["passed"] == 2
        files = stage.evidence.files
        assert json.loads(files[uid, "overall.json"])["custom"]["indices"] == [0, 1, "2"]
        assert len(files[uid, "runs.jsonl"].splitlines()) == 3
        assert json.loads(files[uid, "run.json"])["score"]["files"].keys() == {
            "overall.json",
            "runs.jsonl",
            "error.jsonl",
        }
        await stage.until(lambda: not stage.api.all("pods"), what="no pod left")
        # What the pod was given goes with it: the operator deletes no ConfigMap.
        inputs = [item["metadata"] for item in stage.api.all("configmaps") if "outputs" in item["metadata"]["name"]]
        assert {owner["kind"] for meta in inputs for owner in meta["ownerReferences"]} <= {"Pod"}


async def test_a_case_without_a_verdict_leaves_no_score_and_a_line_among_the_errors() -> None:
    def outcome(key: AttemptKey) -> str:
        return "environment_error" if key.case.case_id == "1" else "passed"

    async with a_stage(outcome=outcome) as stage, stage.operator():
        stage.kubelet.pack = PACK
        uid = stage.apply(run(retries={"environment": 0}))["metadata"]["uid"]
        status = await stage.finished()
        assert (status["valid"], "score" in status, status["assessed"]) == (False, False, "2/3")
        (line,) = stage.evidence.files[uid, "error.jsonl"].splitlines()
        assert (json.loads(line)["index"], json.loads(line)["error"]) == (1, "TaskFailed")
        assert json.loads(stage.evidence.files[uid, "overall.json"])["total"] == 2


async def test_a_pod_that_is_lost_is_made_again() -> None:
    async with a_stage() as stage, stage.operator():
        stage.kubelet.pack, stage.kubelet.aggregates_lost = PACK, 1
        stage.apply(run())
        assert (await stage.finished(seconds=40.0))["score"] == "1"
        assert stage.kubelet.aggregates == 2


async def test_a_rule_that_makes_no_score_fails_the_run_in_its_own_words() -> None:
    async with a_stage() as stage, stage.operator():
        stage.kubelet.pack = NO_SCORE
        stage.apply(run())
        status = await stage.finished()
        failed = stage.condition("Failed")
        assert (failed["status"], failed["reason"]) == ("True", "AggregateFailed")
        assert "overall.nowhere" in failed["message"]
        assert "score" not in status


@pytest.mark.parametrize("calls", [14, 18, 22])
async def test_an_operator_that_dies_on_the_way_is_replaced_and_the_score_is_the_same(calls: int) -> None:
    async with a_stage(outcome=failing) as stage:
        stage.kubelet.pack = PACK
        life = Life(calls)
        stage.apply(run())
        async with stage.operator(life):
            await stage.until(lambda: life.dead.is_set() or "score" in stage.status(), 20.0, "an end")
        async with stage.operator():
            assert (await stage.finished())["score"] == "0.66666667"
