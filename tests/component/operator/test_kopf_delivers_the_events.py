"""kopf against the fake API server: its events reach the operator, and it leaves no trace on any object."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from support.stage import CATALOGUE, NAMESPACE, SETTINGS, TUNING, Stage, a_run, a_stage, an_audit, good_grader

from casewarden.adapters.kube.connection import Connection
from casewarden.handlers.operator import run


@asynccontextmanager
async def the_operator(stage: Stage) -> AsyncIterator[None]:
    """Run it as ``python -m casewarden operator`` does, until the block ends."""
    stop, ready = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(
        run(Connection(stage.api.url), CATALOGUE, SETTINGS, stop, ready, evidence=stage.evidence, tuning=TUNING)
    )
    await asyncio.wait([task, asyncio.ensure_future(ready.wait())], return_when=asyncio.FIRST_COMPLETED)
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, 20)


async def test_a_run_is_played_and_kopf_leaves_no_trace() -> None:
    async with a_stage(cases=2) as stage, the_operator(stage):
        stage.apply(a_run())
        status = await stage.finished()
        assert status["score"] == "1"
        meta = stage.api.get("evalruns", NAMESPACE, "one")["metadata"]
        assert "finalizers" not in meta
        assert "annotations" not in meta


async def test_runs_that_were_applied_before_are_picked_up_and_a_change_of_the_spec_is_heard() -> None:
    async with a_stage(cases=2, work=lambda key: 0.2) as stage:
        stage.apply(a_run(suspend=True))
        async with the_operator(stage):
            await stage.until(lambda: stage.condition("Suspended")["status"] == "True")
            stage.api.update("evalruns", NAMESPACE, "one", {"spec": {"suspend": False}})
            await stage.finished()


async def test_an_audit_run_is_taken_up() -> None:
    async with a_stage(cases=1, control=good_grader) as stage, the_operator(stage):
        stage.apply(an_audit())
        assert (await stage.audited())["passed"] is True


async def test_only_the_namespaces_that_it_was_given_are_worked_in() -> None:
    settings = dataclasses.replace(SETTINGS, namespaces=("elsewhere",))
    async with a_stage(cases=1) as stage:
        stop, ready = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(
            run(Connection(stage.api.url), CATALOGUE, settings, stop, ready, evidence=stage.evidence, tuning=TUNING)
        )
        await asyncio.wait_for(ready.wait(), 10)
        stage.apply(a_run())
        await asyncio.sleep(0.5)
        assert stage.status() == {}
        stop.set()
        await asyncio.wait_for(task, 20)
