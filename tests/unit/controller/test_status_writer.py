"""Statuses are written seldom, guarded and whole; the patch is exactly the difference."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden.controller.status_writer import Overtaken, RunGone, StatusBudget, StatusWriter, difference
from casewarden.ports.clock import ManualClock
from casewarden.ports.kube import EVAL_RUNS
from casewarden.ports.memory_kube import MemoryKube
from casewarden.ports.metrics import Metric, RecordedMetrics

values = st.recursive(
    st.integers(0, 3) | st.booleans() | st.text(max_size=2) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


def apply(target: Any, patch: Any) -> Any:
    """RFC 7386, as the API server does it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply(result.get(key), value)
    return result


@given(documents, documents)
def test_the_patch_turns_one_status_into_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert apply(copy.deepcopy(old), difference(old, new)) == new


@given(documents)
def test_there_is_no_patch_between_equals(document: dict[str, Any]) -> None:
    assert difference(document, copy.deepcopy(document)) == {}


class Run:
    """A run in the fake API, its writer and everything that the writer reports to."""

    def __init__(self) -> None:
        self.api, self.clock, self.metrics = MemoryKube(), ManualClock(), RecordedMetrics()
        self.observed: list[dict[str, Any]] = []

    async def start(self, budget: StatusBudget | None = None) -> StatusWriter:
        body = await self.api.create(EVAL_RUNS, "evals", {"metadata": {"name": "one"}, "spec": {}})
        return StatusWriter(
            self.api,
            body,
            clock=self.clock,
            budget=budget or StatusBudget(100, 100, self.clock),
            metrics=self.metrics,
            interval=1.0,
            observed=self.observed.append,
        )

    async def status(self) -> Any:
        return (await self.api.get(EVAL_RUNS, "evals", "one")).get("status")

    def writes(self) -> int:
        return sum(1 for verb, _, _ in self.api.calls if verb == "patch")


async def test_the_first_status_is_written_at_once_and_the_next_after_the_interval() -> None:
    run = Run()
    writer = await run.start()
    assert await writer.offer({"a": 1}) is None
    assert await writer.offer({"a": 2}) == pytest.approx(1.0)
    assert await run.status() == {"a": 1}
    await run.clock.advance(1.0)
    assert await writer.offer({"a": 2}) is None
    assert await run.status() == {"a": 2}


async def test_a_terminal_status_does_not_wait() -> None:
    run = Run()
    writer = await run.start(StatusBudget(0.001, 1, run.clock))
    await writer.offer({"a": 1})
    assert await writer.offer({"a": 2}, force=True) is None
    assert await run.status() == {"a": 2}


async def test_an_equal_status_is_no_write() -> None:
    run = Run()
    writer = await run.start()
    for _ in range(3):
        await writer.offer({"a": {"b": [1]}}, force=True)
    assert run.writes() == 1


async def test_all_runs_share_one_budget() -> None:
    clock = ManualClock()
    budget = StatusBudget(2.0, 3, clock)
    assert [budget.take() for _ in range(3)] == [0, 0, 0]
    assert budget.take() == pytest.approx(0.5)
    assert budget.take(force=True) == 0
    await clock.advance(1.0)
    assert budget.take() == 0


async def test_a_change_by_somebody_else_is_read_and_reported_and_the_status_written_over_it() -> None:
    run = Run()
    writer = await run.start()
    await run.api.patch(EVAL_RUNS, "evals", "one", {"spec": {"suspend": True}})
    assert await writer.offer({"a": 1}) is None
    assert await run.status() == {"a": 1}
    assert run.observed[0]["spec"] == {"suspend": True}
    assert run.metrics.totals[(Metric.STATUS_CONFLICTS,)] == 1


async def test_a_status_that_somebody_else_wrote_is_put_right() -> None:
    run = Run()
    writer = await run.start()
    await writer.offer({"a": 1, "b": 1})
    await run.api.patch(EVAL_RUNS, "evals", "one", {"status": {"a": 7, "c": 7}}, subresource="status")
    await writer.offer({"a": 1, "b": 2}, force=True)
    assert await run.status() == {"a": 1, "b": 2}


def finished(**rest: Any) -> dict[str, Any]:
    return {"conditions": [{"type": "Finished", "status": "True"}], **rest}


@pytest.mark.parametrize("theirs", [finished(), {"ledger": {"rows": 3}}, {"seeds": [1]}])
async def test_a_status_of_an_operator_that_is_behind_is_not_written(theirs: dict[str, Any]) -> None:
    run = Run()
    writer = await run.start()
    await run.api.patch(EVAL_RUNS, "evals", "one", {"status": theirs}, subresource="status")
    with pytest.raises(Overtaken):
        await writer.offer({"ledger": {"rows": 2}, "seeds": [2]})
    assert await run.status() == theirs


async def test_a_run_that_ends_for_a_lost_ledger_may_count_less_than_before() -> None:
    run = Run()
    writer = await run.start()
    await writer.offer({"ledger": {"rows": 3}})
    with pytest.raises(Overtaken):
        await writer.offer(finished(), force=True)
    lost = finished()
    lost["conditions"].append({"type": "Failed", "status": "True", "reason": "LedgerLost"})
    assert await writer.offer(lost, force=True) is None
    assert await run.status() == lost


async def test_a_run_that_is_gone_or_another_is_not_written_to() -> None:
    run = Run()
    writer = await run.start()
    await run.api.delete(EVAL_RUNS, "evals", "one")
    with pytest.raises(RunGone):
        await writer.offer({"a": 1})
    await run.api.create(EVAL_RUNS, "evals", {"metadata": {"name": "one"}, "spec": {}})
    with pytest.raises(RunGone, match="another run"):
        await writer.offer({"a": 1})
    assert await run.status() is None
