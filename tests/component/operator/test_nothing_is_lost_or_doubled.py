"""Operators that are killed, API servers that go away, events that are lost: every case counts once all the same."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter

import pytest
from support.stage import CATALOGUE, NAMESPACE, Life, Stage, a_run, a_stage

from casewarden.api.catalogue import Catalogue
from casewarden.core.model import AttemptKey
from casewarden_sdk.contract import Case

RUN_UID = "casewarden.dev/run-uid"


def check_counts(stage: Stage, total: int) -> None:
    """Hold what must be true of every finished run: one row an attempt, one verdict a case, the one that was sealed."""
    status, rows = stage.status(), stage.rows()
    keys = [(row["seed"], row["case_id"], row["repeat"], row["attempt"]) for row in rows]
    assert len(keys) == len(set(keys)), "an attempt is in the ledger twice"
    verdicts = [row for row in rows if row["kind"] == "verdict"]
    assert len(verdicts) == total
    assert len({(row["seed"], row["case_id"], row["repeat"]) for row in verdicts}) == total
    counts = status["cases"]
    assert (
        sum(counts[name] for name in ("pending", "running", "passed", "failed", "agentErrors", "environmentErrors"))
        == total
    )
    assert status["progress"] == f"{total}/{total}"
    assert status["attempts"]["total"] == len(rows) == status["ledger"]["rows"]
    assert len(stage.evidence.seals) == total
    for row in verdicts:
        seal = next(s for key, s in stage.evidence.seals.items() if key[2] == row["case_id"] and key[1] == row["seed"])
        assert (row["status"], row["digest"], row["pod_uid"]) == (seal["status"], seal["digest"], seal["pod_uid"])


@pytest.mark.parametrize("seed", range(8))
async def test_an_operator_that_is_killed_anywhere_loses_and_doubles_nothing(seed: int) -> None:
    chance = random.Random(seed)
    async with a_stage(cases=6, work=lambda key: 0.02) as stage:
        stage.apply(a_run(parallelism=3))
        for _ in range(4):
            life = Life(chance.randrange(2, 40), takes_effect=chance.random() < 0.5)
            async with stage.operator(life):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await life.dead.wait()
        async with stage.operator():
            await stage.finished(seconds=40)
            check_counts(stage, 6)
            await stage.until(lambda: not stage.api.all("pods"), what="no pod left")
        assert all(count == 1 for count in stage.kubelet.attempts.values()), "an attempt got two pods"
        sealed = {(s["seed"], s["case_id"], s["repeat"]): s["attempt"] for s in stage.evidence.seals.values()}
        for key in stage.kubelet.attempts:
            assert key.attempt <= sealed[key.case.seed, key.case.case_id, key.case.repeat], f"{key} ran after the seal"


async def test_what_ended_while_no_operator_looked_is_counted_by_the_next() -> None:
    async with a_stage(cases=4) as stage:
        stage.apply(a_run(parallelism=4))
        async with stage.operator():
            await stage.until(lambda: len(stage.pods()) >= 1)
        await asyncio.sleep(0.3)
        async with stage.operator():
            await stage.finished()
        check_counts(stage, 4)


async def test_suspend_stops_the_pods_and_resume_loses_nothing() -> None:
    async with a_stage(cases=6, work=lambda key: 0.3) as stage, stage.operator():
        stage.apply(a_run(parallelism=3))
        await stage.until(lambda: len(stage.kubelet.running) == 3)
        stage.api.update("evalruns", NAMESPACE, "one", {"spec": {"suspend": True}})
        await stage.until(lambda: stage.condition("Suspended")["status"] == "True")
        await stage.until(lambda: not stage.pods(), what="no pod while suspended")
        done = stage.status()["cases"]["passed"]
        await asyncio.sleep(0.3)
        assert not stage.pods()
        stage.api.update("evalruns", NAMESPACE, "one", {"spec": {"suspend": False}})
        status = await stage.finished()
        check_counts(stage, 6)
        assert status["attempts"]["suspended"] >= 3 - done
        assert status["attempts"]["interruptions"] == 0


async def test_a_run_that_is_applied_suspended_starts_when_it_may() -> None:
    async with a_stage(cases=1) as stage, stage.operator():
        stage.apply(a_run(suspend=True))
        await stage.until(lambda: stage.condition("Suspended")["status"] == "True")
        await asyncio.sleep(0.2)
        assert not stage.api.all("pods")
        stage.api.update("evalruns", NAMESPACE, "one", {"spec": {"suspend": False}})
        await stage.finished()


async def test_parallelism_can_be_raised_and_lowered_while_a_run_goes_on() -> None:
    async with a_stage(cases=12, work=lambda key: 0.15) as stage, stage.operator():
        stage.apply(a_run(parallelism=1))
        await stage.until(lambda: stage.kubelet.running)
        stage.api.update("evalruns", NAMESPACE, "one", {"spec": {"parallelism": 5}})
        await stage.until(lambda: len(stage.kubelet.running) == 5)
        stage.api.update("evalruns", NAMESPACE, "one", {"spec": {"parallelism": 2}})
        await stage.finished()
        assert stage.kubelet.most_running == 5
        check_counts(stage, 12)


async def test_a_pod_that_somebody_deletes_is_tried_again_and_counted() -> None:
    def work(key: AttemptKey) -> float:
        return 5.0 if key.attempt == 1 and key.case.case_id == "case-000" else 0.01

    async with a_stage(cases=3, work=work) as stage, stage.operator():
        stage.apply(a_run())
        await stage.until(lambda: stage.status()["progress"] == "2/3")
        (pod,) = [p for p in stage.pods() if p["metadata"]["annotations"]["casewarden.dev/case"] == "case-000"]
        stage.api.delete("pods", NAMESPACE, pod["metadata"]["name"])
        status = await stage.finished()
        assert status["attempts"] == {"total": 4, "environmentRetries": 0, "interruptions": 1, "suspended": 0}
        check_counts(stage, 3)


async def test_a_pod_that_vanishes_without_an_event_is_found_and_tried_again() -> None:
    def work(key: AttemptKey) -> float:
        return 5.0 if key.attempt == 1 else 0.01

    async with a_stage(cases=1, work=work) as stage, stage.operator():
        stage.apply(a_run())
        await stage.until(lambda: stage.kubelet.running)
        await asyncio.sleep(0.2)
        stage.api.lose("pods", 1)
        stage.api.delete("pods", NAMESPACE, stage.pods()[0]["metadata"]["name"], now_=True)
        status = await stage.finished()
        assert status["attempts"]["interruptions"] == 1


async def test_a_run_outlives_an_api_server_that_is_away() -> None:
    async with a_stage(cases=6, work=lambda key: 0.05) as stage, stage.operator() as operator:
        stage.apply(a_run(parallelism=2))
        await stage.until(lambda: stage.status()["cases"]["passed"] >= 1)
        with stage.api.away():
            await asyncio.sleep(1.5)
            problems = [line for line in _health(operator) if "stands still" in line]
            assert not problems
        await stage.finished(seconds=30)
        check_counts(stage, 6)


@pytest.mark.parametrize("seed", range(3))
async def test_a_run_outlives_a_busy_and_broken_api_server(seed: int) -> None:
    chance = random.Random(seed)
    async with a_stage(cases=6) as stage, stage.operator():
        for _ in range(25):
            status = chance.choice([429, 500, 503, 504])
            method = chance.choice(["GET", "POST", "PATCH", "DELETE"])
            stage.api.fail(
                1,
                status,
                method=method,
                path=chance.choice(["pods", "configmaps", "evalruns"]),
                after=chance.random() < 0.5,
            )
        stage.apply(a_run(parallelism=3))
        await stage.finished(seconds=40)
        check_counts(stage, 6)


async def test_lost_events_of_pods_are_healed_by_the_next_list() -> None:
    async with a_stage(cases=6) as stage, stage.operator():
        stage.apply(a_run(parallelism=3))
        for _ in range(4):
            stage.api.lose("pods", 3)
            await asyncio.sleep(0.2)
            stage.api.compact()
        await stage.finished(seconds=30)
        check_counts(stage, 6)


async def test_a_relay_that_is_away_is_waited_for() -> None:
    def outcome(key: AttemptKey) -> str:
        return "lost" if key.attempt == 1 else "passed"

    async with a_stage(cases=1, outcome=outcome) as stage, stage.operator():
        stage.apply(a_run())
        await stage.until(lambda: stage.kubelet.started)
        stage.evidence.away = True
        stage.api.delete("pods", NAMESPACE, stage.pods()[0]["metadata"]["name"])
        await asyncio.sleep(0.4)
        assert stage.kubelet.attempts.total() == 1, "nothing is tried again before the store was asked"
        assert stage.condition("Finished")["reason"] == "StoreUnavailable"
        stage.evidence.away = False
        await stage.finished()
        check_counts(stage, 1)


async def test_an_exhausted_quota_is_waited_for() -> None:
    message = 'pods "x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2'
    async with a_stage(cases=2) as stage, stage.operator():
        stage.apply(a_run())
        await stage.until(lambda: stage.pods("plan"))
        stage.api.fail(1, 403, method="POST", path="/pods", reason="Forbidden", message=message)
        await stage.until(lambda: stage.condition("Finished")["reason"] == "QuotaExceeded")
        await stage.finished(seconds=30)
        check_counts(stage, 2)


async def test_a_create_that_is_refused_for_good_fails_the_run_with_the_servers_words() -> None:
    async with a_stage(cases=2) as stage, stage.operator():
        stage.apply(a_run())
        await stage.until(lambda: stage.pods("plan"))
        stage.api.fail(
            9, 403, method="POST", path="/pods", reason="Forbidden", message="violates PodSecurity restricted"
        )
        await stage.finished()
        assert stage.condition("Failed")["reason"] == "Refused"
        assert "violates PodSecurity" in stage.condition("Failed")["message"]


async def test_a_namespace_that_is_deleted_is_left_alone() -> None:
    async with a_stage(cases=6, work=lambda key: 0.2) as stage, stage.operator() as operator:
        stage.apply(a_run(parallelism=2))
        await stage.until(lambda: stage.kubelet.running)
        stage.api.delete_namespace(NAMESPACE)
        await stage.until(lambda: len(operator.registry) == 0, what="the run is left alone")
        assert not [key for key in stage.api.objects if key[1] == NAMESPACE]


async def test_a_run_that_is_deleted_leaves_nothing_and_stops() -> None:
    async with a_stage(cases=6, work=lambda key: 0.2) as stage, stage.operator() as operator:
        stage.apply(a_run(parallelism=2))
        await stage.until(lambda: stage.kubelet.running)
        stage.api.delete("evalruns", NAMESPACE, "one")
        await stage.until(lambda: len(operator.registry) == 0)
        await stage.until(lambda: not [k for k in stage.api.objects if k[0] not in ("events",)], what="nothing left")


async def test_a_run_of_the_same_name_is_another_run() -> None:
    async with a_stage(cases=2, work=lambda key: 0.2) as stage, stage.operator():
        stage.apply(a_run())
        await stage.until(lambda: stage.kubelet.running)
        stage.api.delete("evalruns", NAMESPACE, "one")
        uid = stage.apply(a_run())["metadata"]["uid"]
        await stage.finished()
        assert {row["attempt"] for row in stage.rows()} == {1}
        assert all(item["metadata"]["labels"].get(RUN_UID) == uid for item in stage.api.all("configmaps"))


async def test_a_deleted_shard_of_the_ledger_is_made_again_from_the_store() -> None:
    async with a_stage(cases=6, work=lambda key: 0.1) as stage:
        stage.apply(a_run(parallelism=1))
        async with stage.operator():
            await stage.until(lambda: stage.status()["ledger"]["rows"] >= 3)
        (shard,) = [item for item in stage.api.all("configmaps") if "ledger" in item["metadata"]["name"]]
        stage.api.delete("configmaps", NAMESPACE, shard["metadata"]["name"])
        async with stage.operator():
            await stage.finished()
        check_counts(stage, 6)
        assert all(count == 1 for count in Counter(key.case for key in stage.kubelet.attempts).values())


async def test_a_lost_ledger_that_the_store_does_not_explain_fails_the_run() -> None:
    async with a_stage(cases=4, work=lambda key: 0.1) as stage:
        stage.apply(a_run(parallelism=1))
        async with stage.operator():
            await stage.until(lambda: stage.status()["ledger"]["rows"] >= 2)
        (shard,) = [item for item in stage.api.all("configmaps") if "ledger" in item["metadata"]["name"]]
        stage.api.delete("configmaps", NAMESPACE, shard["metadata"]["name"])
        stage.evidence.seals.clear()
        async with stage.operator():
            await stage.finished()
        assert stage.condition("Failed")["reason"] == "LedgerLost"
        await stage.until(lambda: not stage.api.all("pods"), what="no pod left")


async def test_a_ledger_that_somebody_changed_under_the_operator_is_read_again() -> None:
    async with a_stage(cases=6, work=lambda key: 0.1) as stage, stage.operator():
        stage.apply(a_run(parallelism=1))
        await stage.until(lambda: stage.status()["ledger"]["rows"] >= 2)
        (shard,) = [item for item in stage.api.all("configmaps") if "ledger" in item["metadata"]["name"]]
        stage.api.update("configmaps", NAMESPACE, shard["metadata"]["name"], {"metadata": {"annotations": {"a": "b"}}})
        await stage.finished()
        check_counts(stage, 6)


async def test_a_run_goes_on_with_the_catalogue_that_it_was_planned_with() -> None:
    async with a_stage(cases=6, work=lambda key: 0.1) as stage:
        stage.apply(a_run(parallelism=1))
        async with stage.operator():
            await stage.until(lambda: stage.status()["ledger"]["rows"] >= 1)
        before = len(stage.api.created)
        async with stage.operator(catalogue=Catalogue()):
            await stage.finished()
        check_counts(stage, 6)
        later = [item for item in stage.api.created[before:] if item["kind"] == "Pod"]
        assert {pod["spec"]["containers"][0]["image"] for pod in later} == {"registry.example/python:1"}
        assert {pod["spec"]["containers"][-1]["image"] for pod in later} == {"registry.example/x@sha256:" + "1" * 64}


async def test_a_run_whose_image_moves_while_it_goes_on_fails() -> None:
    async with a_stage(cases=6, work=lambda key: 0.1) as stage, stage.operator():
        stage.apply(a_run(parallelism=1))
        await stage.until(lambda: stage.status()["ledger"]["rows"] >= 1)
        stage.kubelet.images = "registry.example/x@sha256:" + "2" * 64
        status = await stage.finished()
        assert stage.condition("Failed")["reason"] == "PlanUnstable"
        assert "by digest" in stage.condition("Failed")["message"]
        assert "score" not in status


async def test_cases_of_two_classes_may_have_two_images() -> None:
    def make(seed: int, params: object = None) -> list[Case]:
        return [Case(kind, ("echo",), {"id": kind, "requests": [seed]}, kind) for kind in ("default", "other")]

    catalogue = CATALOGUE.model_copy(update={"images": {**CATALOGUE.images, "other": "registry.example/other:1"}})
    async with a_stage() as stage, stage.operator(catalogue=catalogue):
        stage.kubelet.pack.make = make
        stage.kubelet.pack.kinds = {
            name: {"candidate": {"image": image}, "environments": []}
            for name, image in (("default", "python"), ("other", "other"))
        }
        stage.kubelet.others = {"registry.example/other:1": "registry.example/other@sha256:" + "2" * 64}
        stage.apply(a_run())
        status = await stage.finished()
        assert status["score"] == "1", status["conditions"]
        images = status["fingerprints"]["images"]
        assert images["candidate"] != images["other/candidate"] == stage.kubelet.others["registry.example/other:1"]


async def test_the_clock_of_a_run_stands_while_it_is_suspended_and_starts_anew() -> None:
    async with a_stage(cases=1, work=lambda key: 0.3) as stage, stage.operator():
        stage.apply(a_run(activeDeadlineSeconds=2, suspend=True))
        await asyncio.sleep(3.0)
        assert stage.condition("Finished")["status"] == "False"
        stage.api.update("evalruns", NAMESPACE, "one", {"spec": {"suspend": False}})
        status = await stage.finished()
        assert status["score"] == "1", status["conditions"]


async def test_a_run_that_is_not_over_by_its_deadline_fails_and_stops() -> None:
    async with a_stage(cases=4, work=lambda key: 30.0) as stage, stage.operator():
        stage.apply(a_run(activeDeadlineSeconds=2))
        status = await stage.finished()
        assert stage.condition("Failed")["reason"] == "DeadlineExceeded"
        assert status["valid"] is False
        assert "score" not in status
        await stage.until(lambda: not stage.api.all("pods"), what="no pod left")


async def test_two_operators_at_once_count_no_attempt_twice() -> None:
    async with a_stage(cases=8, work=lambda key: 0.05) as stage:
        stage.apply(a_run(parallelism=2, seeds={"random": 2}))
        async with stage.operator(), stage.operator():
            await stage.finished(seconds=40)
        check_counts(stage, 16)


def _health(operator: object) -> list[str]:
    from casewarden.controller.health import Health, LoopLag
    from casewarden.wiring import Operator

    assert isinstance(operator, Operator)
    services = operator.services
    lag = LoopLag(services.clock, services.metrics)
    turns = operator._informer_turns
    return Health(services.clock, lag, turns, operator.registry.turns, operator._ended_parts, lambda: True).problems()
