"""What was sent holds its place, a taken name is looked at, and a store that is silent is never taken for a no."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from casewarden.api.names import LABEL_RUN_UID
from casewarden.controller.executor import Executor
from casewarden.core.model import AttemptKey, CaseKey, DeletePod
from casewarden.ports.clock import ManualClock
from casewarden.ports.evidence import MemoryEvidence
from casewarden.ports.kube import PODS, Forbidden, Invalid, KubeError, Unavailable
from casewarden.ports.memory_kube import MemoryKube
from casewarden.ports.metrics import Metric, RecordedMetrics

KEY = AttemptKey(CaseKey(17, "case", 0), 1)
SEAL = {
    "v": 1, "run_uid": "uid-1", "seed": 17, "case_id": "case", "repeat": 0, "attempt": 1, "pod_uid": "p",
    "digest": "d" * 64, "status": "passed", "checks": "1", "reason": None, "error": None, "seconds": 1.0,
}  # fmt: skip


class Setup:
    def __init__(self) -> None:
        self.api, self.evidence, self.clock = MemoryKube(), MemoryEvidence(), ManualClock()
        self.metrics, self.wakes, self.pokes = RecordedMetrics(), 0, 0
        self.executor = Executor(
            self.api, self.evidence, namespace="evals", run_uid="uid-1", clock=self.clock, metrics=self.metrics,
            wake=self._wake, poke=self._poke,
        )  # fmt: skip

    def _wake(self) -> None:
        self.wakes += 1

    def _poke(self) -> None:
        self.pokes += 1

    async def create(self, name: str = "pod-1") -> None:
        self.executor.create(KEY, manifest(name))
        await self.clock.advance(0)

    def places(self) -> int:
        return len(self.executor.in_flight(frozenset()))


def manifest(name: str, run_uid: str = "uid-1", **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {LABEL_RUN_UID: run_uid}} | meta}


@pytest.fixture
async def setup() -> AsyncIterator[Setup]:
    made = Setup()
    yield made
    await made.executor.close()


async def test_a_create_holds_its_place_until_it_is_seen(setup: Setup) -> None:
    await setup.create()
    assert setup.places() == 1
    assert setup.executor.in_flight(frozenset({KEY})) == ()
    assert setup.places() == 0


async def test_a_create_that_is_never_seen_loses_its_place_and_asks_for_a_list(setup: Setup) -> None:
    await setup.create()
    await setup.clock.advance(11)
    assert setup.places() == 0
    assert setup.pokes == 1


async def test_a_taken_name_of_ours_is_success(setup: Setup) -> None:
    await setup.api.create(PODS, "evals", manifest("pod-1"))
    await setup.create()
    assert setup.places() == 1
    assert setup.executor.refusals() == ()
    assert setup.pokes == 1


async def test_a_taken_name_of_a_terminating_pod_is_waited_for_and_not_taken_for_success(setup: Setup) -> None:
    await setup.api.create(PODS, "evals", manifest("pod-1", deletionTimestamp="2026-11-30T00:00:00Z"))
    await setup.create()
    assert setup.places() == 1
    await setup.clock.advance(2.1)
    assert setup.places() == 0


async def test_a_taken_name_of_somebody_else_is_a_refusal_that_says_so(setup: Setup) -> None:
    await setup.api.create(PODS, "evals", manifest("pod-1", run_uid="another"))
    await setup.create()
    ((reason, message),) = setup.executor.refusals()
    assert reason == "AlreadyExists"
    assert "pod-1" in message
    assert setup.places() == 0


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Forbidden(403, "Forbidden", "exceeded quota: q"), "Forbidden"),
        (Forbidden(403, "Forbidden", "no", ("NamespaceTerminating",)), "NamespaceTerminating"),
        (Invalid(422, "Invalid", "spec.x"), "Invalid"),
    ],
)
async def test_a_refusal_is_told_to_the_next_step_once(setup: Setup, error: KubeError, reason: str) -> None:
    setup.api.fail(error)
    await setup.create()
    assert setup.executor.refusals() == ((reason, error.message),)
    assert setup.executor.refusals() == ()
    assert setup.wakes


async def test_a_full_quota_is_counted(setup: Setup) -> None:
    setup.api.fail(Forbidden(403, "Forbidden", "exceeded quota: q"))
    await setup.create()
    assert setup.metrics.totals[Metric.CREATES_THROTTLED, "cause=quota"] == 1


async def test_a_server_that_is_away_is_no_refusal(setup: Setup) -> None:
    setup.api.fail(Unavailable(0, "NoConnection", "away"))
    await setup.create()
    assert setup.executor.refusals() == ()
    assert setup.places() == 1
    await setup.clock.advance(5.1)
    assert setup.places() == 0


async def test_a_pod_is_deleted_once_and_by_force_again(setup: Setup) -> None:
    pod = await setup.api.create(PODS, "evals", manifest("pod-1"))
    action = DeletePod("pod-1", pod["metadata"]["uid"], "why")
    for _ in range(3):
        setup.executor.delete(action)
        await setup.clock.advance(0)
    assert [verb for verb, _, _ in setup.api.calls].count("delete") == 1
    assert setup.executor.stopped == {action.uid}
    setup.executor.delete(DeletePod("pod-1", action.uid, "why", grace_seconds=0))
    await setup.clock.advance(0)
    assert [verb for verb, _, _ in setup.api.calls].count("delete") == 2


async def test_a_deletion_is_tried_again_when_the_server_was_away(setup: Setup) -> None:
    pod = await setup.api.create(PODS, "evals", manifest("pod-1"))
    setup.api.fail(Unavailable(0, "NoConnection", "away"), Unavailable(0, "NoConnection", "away"))
    setup.executor.delete(DeletePod("pod-1", pod["metadata"]["uid"], "why"))
    await setup.clock.advance(60)
    assert not setup.api.objects


async def test_a_pod_of_another_uid_is_left_alone(setup: Setup) -> None:
    await setup.api.create(PODS, "evals", manifest("pod-1"))
    setup.executor.delete(DeletePod("pod-1", "the one before", "why"))
    await setup.clock.advance(0)
    assert setup.api.objects


async def test_a_seal_is_found_and_none_is_an_answer_too(setup: Setup) -> None:
    setup.executor.look_up(KEY)
    await setup.clock.advance(0)
    assert setup.executor.seals == {KEY: None}
    setup.executor.settle(frozenset({KEY}))
    setup.evidence.seal(SEAL)
    setup.executor.look_up(KEY)
    await setup.clock.advance(0)
    found = setup.executor.seals[KEY]
    assert found is not None
    assert (found.status, found.digest, found.attempt) == ("passed", "d" * 64, 1)


async def test_a_store_that_is_away_is_asked_until_it_answers(setup: Setup) -> None:
    setup.evidence.away = True
    setup.executor.look_up(KEY)
    await setup.clock.advance(30)
    assert setup.executor.seals == {}
    assert setup.executor.looking == {KEY}
    assert setup.executor.store_away_since is not None
    setup.evidence.away = False
    await setup.clock.advance(11)
    assert setup.executor.seals == {KEY: None}
    assert (setup.executor.looking, setup.executor.store_away_since) == (set(), None)


async def test_a_seal_that_breaks_the_invariants_is_no_answer(setup: Setup) -> None:
    setup.evidence.seal(SEAL | {"checks": "0"})
    setup.executor.look_up(KEY)
    await setup.clock.advance(5)
    assert setup.executor.seals == {}
    assert setup.executor.store_away_since is not None


async def test_closing_ends_what_is_under_way(setup: Setup) -> None:
    setup.evidence.away = True
    setup.executor.look_up(KEY)
    await setup.clock.advance(1)
    await asyncio.wait_for(setup.executor.close(), 1)
    assert setup.executor.looking == set()
