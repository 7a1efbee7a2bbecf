"""Runs that share a pool, on a fake cluster: never more pods than it has slots, the higher priority first."""

from __future__ import annotations

from typing import Any

from support.stage import CATALOGUE, NAMESPACE, Stage, a_run, a_stage

from casewarden.api.catalogue import Catalogue
from casewarden.core.model import AttemptKey
from casewarden.wiring import Operator


def pooled(concurrency: int) -> Catalogue:
    pools = {"tasks": {"echo": {"concurrency": concurrency}}}
    return Catalogue.model_validate({**CATALOGUE.to_json(), "pools": pools})


def rows(operator: Operator) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in operator.services.slots.table()["runs"]}


async def both_finished(stage: Stage, *names: str) -> None:
    for name in names:
        status = await stage.finished(name, seconds=60)
        assert (status["score"], status["valid"]) == ("1", True)


async def test_two_runs_share_a_pool_and_never_pass_its_limit() -> None:
    async with a_stage(cases=8, work=lambda key: 0.1) as stage, stage.operator(catalogue=pooled(3)) as operator:
        for name in ("one", "two"):
            stage.apply(a_run(name, parallelism=10))
        await stage.until(
            lambda: min(rows(operator)[name]["slots"] for name in ("one", "two")) >= 1, what="both have one"
        )
        await both_finished(stage, "one", "two")
        assert stage.kubelet.most_running == 3
        await stage.until(lambda: not operator.services.slots.table()["runs"], what="nobody has slots")
        assert 'casewarden_slots{pool="echo",side="tasks",state="limit"} 3.0' in _text(operator)
        assert 'casewarden_slots{pool="echo",side="tasks",state="used"} 0.0' in _text(operator)


def _text(operator: Operator) -> str:
    return operator._metrics_text().decode()


async def test_a_run_of_higher_priority_gets_what_comes_free_and_the_other_says_that_it_waits() -> None:
    async with a_stage(cases=6, work=lambda key: 0.2) as stage, stage.operator(catalogue=pooled(1)) as operator:
        stage.apply(a_run("low", parallelism=5))
        await stage.until(lambda: rows(operator)["low"]["used"] == 1, what="low has begun")
        stage.apply(a_run("high", parallelism=5, priority=10))
        await stage.until(lambda: stage.condition("Finished", "low")["reason"] == "WaitingForSlots", what="low waits")
        high = await stage.finished("high", seconds=60)
        low = stage.status("low")
        assert high["progress"] == "6/6"
        assert int(low["progress"].partition("/")[0]) < 6
        await both_finished(stage, "low")
        assert stage.kubelet.most_running == 1


async def test_pods_of_an_operator_before_count_from_the_start() -> None:
    blocked = {"on": True}

    def work(key: AttemptKey) -> float:
        return 1.0 if blocked["on"] else 0.05

    async with a_stage(cases=4, work=work) as stage:
        async with stage.operator(catalogue=pooled(2)) as operator:
            stage.apply(a_run("one", parallelism=4))
            await stage.until(lambda: rows(operator)["one"]["used"] == 2, what="two pods are there")
        blocked["on"] = False
        async with stage.operator(catalogue=pooled(2)):
            stage.apply(a_run("two", parallelism=4))
            await both_finished(stage, "one", "two")
        assert stage.kubelet.most_running == 2


async def test_the_pods_of_a_deleted_run_hold_their_slots_until_they_are_gone() -> None:
    counts = [0]

    async with a_stage(cases=2, work=lambda key: 5.0 if key.case.seed == 17 else 0.05) as stage:

        def count(*_: object) -> None:
            counts.append(sum(pod["status"].get("phase") not in ("Succeeded", "Failed") for pod in stage.pods()))

        stage.api.grace = 0.5
        async with stage.operator(catalogue=pooled(2)) as operator:
            stage.apply(a_run("one", parallelism=2))
            await stage.until(lambda: rows(operator)["one"]["used"] == 2, what="two pods are there")
            stage.api.hooks.append(count)
            stage.api.delete("evalruns", NAMESPACE, "one")
            stage.apply(a_run("two", parallelism=2, seeds={"values": [18]}))
            await both_finished(stage, "two")
    assert max(counts) == 2


async def test_a_pool_without_slots_lets_nothing_start() -> None:
    async with a_stage(cases=1) as stage, stage.operator(catalogue=pooled(0)):
        stage.apply(a_run())
        await stage.until(lambda: stage.condition("Finished")["reason"] == "WaitingForSlots")
        assert stage.kubelet.most_running == 0
