"""Records graded again on a fake cluster: a finished run's by ``regradeOf``, an audit's by the grader's mutants."""

from __future__ import annotations

import json
from typing import Any

from support.stage import NAMESPACE, Stage, a_run, a_stage, an_audit, good_grader

from casewarden.core.model import AttemptKey


def left(stage: Stage) -> list[str]:
    """Grading pods that nobody has deleted."""
    return [pod["metadata"]["name"] for pod in stage.pods("grade") if "deletionTimestamp" not in pod["metadata"]]


def mixed(key: AttemptKey) -> str:
    return {"case-000": "passed", "case-001": "agent_error"}.get(key.case.case_id, "failed")


async def test_an_equal_grader_changes_nothing_and_the_results_are_byte_for_byte_the_same() -> None:
    async with a_stage(cases=3, outcome=mixed) as stage, stage.operator():
        first = stage.apply(a_run())
        await stage.finished()
        again = stage.apply(a_run("again", regradeOf={"evalRun": "one"}))
        status = await stage.finished("again")
        before = stage.status()
        assert (status["valid"], status["score"], status["cases"]) == (True, before["score"], before["cases"])
        assert status["regrade"] == {
            "evalRun": "one", "digest": before["evidence"]["digest"], "task": "echo@0.1.0",
            "grader": before["fingerprints"]["grader"], "graded": 3, "kept": 0, "changed": 0, "score": before["score"],
            "changes": [],
        }  # fmt: skip
        files = stage.evidence.files
        assert files[first["metadata"]["uid"], "results.jsonl"] == files[again["metadata"]["uid"], "results.jsonl"]
        document = json.loads(files[again["metadata"]["uid"], "run.json"])
        uid = first["metadata"]["uid"]
        assert document["regrade"] == {"name": "one", "uid": uid, "digest": before["evidence"]["digest"]}
        assert stage.kubelet.gradings == 1
        assert sum(stage.kubelet.started.values()) == 3, "no candidate ran again"


async def test_what_another_grader_judges_otherwise_is_in_the_status() -> None:
    async with a_stage(cases=3, outcome=mixed) as stage, stage.operator():
        stage.apply(a_run())
        await stage.finished()
        stage.kubelet.regrade = lambda control, seal: "passed" if seal["case_id"] == "case-002" else seal["status"]
        stage.apply(a_run("again", regradeOf={"evalRun": "one"}))
        status = await stage.finished("again")
        change = {"case": "case-002", "seed": 17, "repeat": 0, "before": "failed", "after": "passed"}
        assert status["regrade"]["changes"] == [change | {"dimensions": ["echo"]}]
        assert (status["regrade"]["score"], status["score"]) == (stage.status()["score"], "0.66666667")
        assert "1 verdicts changed" in stage.condition("Complete", "again")["message"]


async def test_a_regrade_goes_on_through_a_restart_and_counts_nothing_twice() -> None:
    async with a_stage(cases=3, outcome=mixed) as stage:
        async with stage.operator():
            stage.apply(a_run())
            await stage.finished()
            stage.kubelet.start = 0.3
            stage.apply(a_run("again", regradeOf={"evalRun": "one"}))
            await stage.until(lambda: stage.pods("grade"))
        stage.kubelet.start = 0.005
        async with stage.operator():
            status = await stage.finished("again")
        assert (status["progress"], status["regrade"]["changed"]) == ("3/3", 0)
        assert status["ledger"]["rows"] == 3
        assert not left(stage)


async def test_records_of_another_run_are_refused_by_field() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"regradeOf": {"evalRun": "nobody"}}, "there is no such run"),
        ({"candidate": {"control": "reference"}}, "spec.candidate is another there"),
        ({"seeds": {"values": [41]}}, "spec.seeds is another there"),
        ({"repeats": 2}, "spec.repeats is another there"),
        ({"limits": {"caseSeconds": 3}}, "spec.limits is another there"),
    ]
    async with a_stage(cases=1) as stage, stage.operator():
        stage.apply(a_run())
        await stage.finished()
        for number, (spec, said) in enumerate(cases):
            stage.apply(a_run(f"again-{number}", **({"regradeOf": {"evalRun": "one"}} | spec)))
            await stage.finished(f"again-{number}")
            accepted = stage.condition("Accepted", f"again-{number}")
            assert (accepted["status"], accepted["reason"]) == ("False", "RegradeRefused")
            assert said in accepted["message"]
        assert stage.kubelet.gradings == 0


async def test_evidence_that_is_not_what_the_status_says_is_not_graded() -> None:
    async with a_stage(cases=1) as stage, stage.operator():
        uid = stage.apply(a_run())["metadata"]["uid"]
        await stage.finished()
        stage.evidence.files[uid, "results.jsonl"] = b""
        stage.apply(a_run("again", regradeOf={"evalRun": "one"}))
        await stage.finished("again")
        assert stage.condition("Failed", "again")["reason"] == "GradingFailed"
        assert stage.kubelet.gradings == 0


def one_check_counts(check: str, how: str, control: str, status: str) -> str:
    """A grader of which only the check ``same`` decides anything here; nobody tests ``ended``."""
    if check == "ended" or status == "agent_error":
        return status
    return "passed" if how == "dropped" else {"passed": "failed", "failed": "passed"}[status]


async def test_a_passed_audit_names_the_mutants_of_its_grader_that_no_control_notices() -> None:
    async with a_stage(cases=2, control=good_grader) as stage, stage.operator():
        stage.kubelet.mutant = one_check_counts
        uid = stage.apply(an_audit(graderMutants=True))["metadata"]["uid"]
        status = await stage.audited()
        assert status["passed"] is True
        assert status["graderMutants"] == {
            "total": 4, "noticed": 2, "unnoticed": ["ended:dropped", "ended:inverted"],
        }  # fmt: skip
        lines = [json.loads(line) for line in stage.evidence.files[uid, "mutants.jsonl"].splitlines()]
        assert len({line["grader"] for line in lines} | {status["fingerprints"]["grader"]}) == 5
        dropped = next(line for line in lines if (line["check"], line["mutation"]) == ("same", "dropped"))
        assert "deaf: is not caught in echo" in " ".join(dropped["problems"])
        assert sum(stage.kubelet.attempts.values()) == len(stage.evidence.seals), "no candidate ran again"
        assert not left(stage)


async def test_an_audit_that_does_not_pass_has_no_mutants() -> None:
    async with a_stage(cases=1, control=lambda control, key: "passed") as stage, stage.operator():
        stage.apply(an_audit(graderMutants=True))
        status = await stage.audited()
        assert status["passed"] is False
        assert "graderMutants" not in status
        assert stage.kubelet.gradings == 0


async def test_a_grader_that_judges_its_own_records_otherwise_fails_the_audit() -> None:
    async with a_stage(cases=1, control=good_grader) as stage, stage.operator():
        stage.kubelet.regrade = lambda control, seal: "passed"
        stage.apply(an_audit(graderMutants=True))
        status = await stage.audited()
        failed = next(item for item in status["conditions"] if item["type"] == "Failed")
        assert (failed["status"], failed["reason"]) == ("True", "GradingFailed")
        assert "was failed and is now passed" in failed["message"]
        assert "passed" not in status


async def test_a_run_is_compared_with_its_baseline_family_by_family() -> None:
    async with a_stage(cases=4, outcome=mixed) as stage, stage.operator():
        stage.apply(a_run(seeds={"values": [17, 41]}))
        await stage.finished()
        stage.kubelet.outcome = lambda key: "passed" if key.case.case_id > "case-001" else "failed"
        stage.apply(a_run("two", seeds={"values": [17, 97]}, baseline={"evalRun": "one"}))
        status = await stage.finished("two")
        assert status["baseline"] == {
            "evalRun": "one", "score": stage.status()["score"], "difference": "0.25", "pValue": "1",
            "method": "sign-flip test on family means", "families": 4, "matched": 4, "unmatched": 8,
            "regressed": ["case-000"], "improved": ["case-002", "case-003"],
        }  # fmt: skip


async def test_a_baseline_that_cannot_be_compared_says_why_and_fails_nothing() -> None:
    async with a_stage(cases=1) as stage, stage.operator():
        stage.apply(a_run("slower", limits={"caseSeconds": 7}))
        await stage.finished("slower")
        for name, baseline, said in (
            ("one", "nobody", "there is no EvalRun of that name"),
            ("two", "slower", "it differs in conditions"),
            ("three", "three", "it is this very run"),
        ):
            stage.apply(a_run(name, baseline={"evalRun": baseline}))
            status = await stage.finished(name)
            assert status["valid"] is True
            assert status["baseline"]["evalRun"] == baseline
            assert said in status["baseline"]["problem"]
            assert stage.api.get("evalruns", NAMESPACE, name)
