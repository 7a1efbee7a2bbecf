"""The assigner's hands: who is told what, when; pods that nobody plays; what the pages show."""

from __future__ import annotations

import asyncio
from typing import Any

from support import pod_json as pj

from casewarden.api.catalogue import CataloguePools
from casewarden.controller.pod_store import PodStore
from casewarden.controller.slots import Slots, pool_limits
from casewarden.core.assigner import LIFT_SECONDS
from casewarden.ports.clock import ManualClock
from casewarden.ports.metrics import Metric, RecordedMetrics


class Setup:
    def __init__(self, concurrency: int = 3) -> None:
        self.clock, self.metrics, self.woken = ManualClock(100.0), RecordedMetrics(), list[str]()
        self.pods = PodStore(lambda uid: None)
        pools = CataloguePools.model_validate(
            {"tasks": {"kv": {"concurrency": concurrency}}, "agents": {"gpt": {"concurrency": 9}}}
        )
        self.slots = Slots(
            pool_limits(pools), self.pods, clock=self.clock, metrics=self.metrics, wake=self.woken.append
        )

    def join(self, *uids: str, **spec: Any) -> None:
        for uid in uids:
            meta = {"namespace": "evals", "name": f"run-{uid}", "uid": uid}
            self.slots.join({"metadata": meta, "spec": {"task": {"name": "kv"}} | spec})

    def step(self, uid: str, used: int, wanted: int, priority: int = 0) -> int | None:
        """A run's turn: it uses all that it may, up to what it wants."""
        slots = self.slots.before(uid, used, priority)
        assert slots is not None
        used = max(used, min(slots, wanted))
        self.slots.after(uid, used, wanted)
        return used

    def row(self, uid: str) -> dict[str, Any]:
        return next(row for row in self.slots.table()["runs"] if row["name"] == f"run-{uid}")


async def turn() -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_a_run_in_no_pool_has_no_limit_and_is_not_shown() -> None:
    setup = Setup()
    setup.join("free", task={"name": "another"})
    assert not setup.slots.limits("free")
    assert setup.slots.before("free", 0, 0) is None
    assert setup.slots.table()["runs"] == []


async def test_a_run_that_wants_slots_is_woken_when_it_has_some() -> None:
    setup = Setup()
    setup.join("a")
    assert setup.step("a", 0, 5) == 0
    await turn()
    assert setup.woken == ["a"]
    assert setup.step("a", 0, 5) == 3


async def test_a_slot_that_comes_free_goes_to_who_waits_and_not_to_whose_pod_ended() -> None:
    setup = Setup()
    setup.join("a")
    setup.step("a", 0, 5)
    await turn()
    setup.step("a", 0, 5)
    await setup.clock.advance(1)
    setup.join("b")
    setup.step("b", 0, 5)
    await turn()
    assert setup.woken == ["a"]
    assert setup.step("a", 2, 5) == 2
    assert setup.woken == ["a", "b"]
    assert setup.step("b", 0, 5) == 1


async def test_a_run_that_stops_gives_back_what_it_does_not_use() -> None:
    setup = Setup()
    setup.join("a", "b")
    setup.step("a", 0, 5)
    await turn()
    setup.slots.pause("a")
    setup.step("b", 0, 5)
    await turn()
    assert setup.step("b", 0, 5) == 3


async def test_nothing_is_given_out_while_there_are_pods_of_runs_that_were_not_seen() -> None:
    setup = Setup()
    setup.pods.changed(pj.pod_json(pj.attempt()))
    setup.join("a")
    setup.step("a", 0, 5)
    await turn()
    assert setup.woken == []
    setup.join(pj.RUN_UID)
    await turn()
    assert setup.step("a", 0, 5) == 2
    setup.slots.close()


async def test_what_was_not_seen_is_waited_for_30_seconds_and_no_longer() -> None:
    setup = Setup()
    setup.pods.changed(pj.pod_json(pj.attempt()))
    setup.join("a")
    setup.step("a", 0, 5)
    await setup.clock.advance(31)
    assert setup.step("a", 0, 4) == 0
    await turn()
    assert setup.step("a", 0, 4) == 3
    setup.slots.close()


async def test_pods_of_a_run_that_left_hold_their_slots_until_they_are_gone() -> None:
    setup = Setup()
    body = pj.pod_json(pj.attempt())
    setup.pods.changed(body)
    setup.join("a", pj.RUN_UID)
    setup.step("a", 0, 5)
    setup.slots.leave(pj.RUN_UID)
    await turn()
    assert setup.step("a", 0, 5) == 2
    setup.pods.gone(body["metadata"]["namespace"], body["metadata"]["name"], body["metadata"]["uid"])
    setup.slots.pods_changed()
    await turn()
    assert setup.step("a", 2, 5) == 3
    assert [row["name"] for row in setup.slots.table()["runs"]] == ["run-a"]


async def test_the_table_and_the_gauges_say_who_has_what() -> None:
    setup = Setup(concurrency=1)
    setup.join("a", candidate={"model": {"endpoint": "gpt", "name": "m"}})
    setup.join("b", priority=2)
    setup.step("a", 0, 2)
    await turn()
    setup.step("a", 0, 2)
    setup.step("b", 0, 4, priority=2)
    await turn()
    await setup.clock.advance(LIFT_SECONDS)
    a, b = setup.row("a"), setup.row("b")
    assert (a["agents"], a["tasks"], a["used"], a["slots"], a["wanted"], a["waitingSeconds"]) == (
        "gpt",
        "kv",
        1,
        1,
        2,
        0,
    )
    assert (b["agents"], b["priority"], b["used"], b["slots"], b["waitingSeconds"]) == (None, 2, 0, 0, LIFT_SECONDS)
    pool = next(row for row in setup.slots.table()["pools"] if row["side"] == "tasks")
    assert pool == {"side": "tasks", "name": "kv", "limit": 1, "used": 1, "assigned": 1, "wanted": 6, "kept": 0}
    setup.slots.measure()
    assert setup.metrics.gauges[str(Metric.SLOTS), "pool=kv", "side=tasks", "state=used"] == 1
    assert setup.metrics.gauges[(str(Metric.SLOTS_LONGEST_WAIT),)] == LIFT_SECONDS
