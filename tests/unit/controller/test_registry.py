"""What comes of a change of a pod whose run nobody plays: its slots are given on, and what is left over is deleted."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock, create_autospec

import pytest
from support import pod_json as pj

from casewarden.controller.pod_store import PodStore
from casewarden.controller.registry import Registry
from casewarden.controller.slots import Slots
from casewarden.controller.timers import Timers
from casewarden.ports.clock import ManualClock
from casewarden.ports.kube import PODS, Unavailable


def a_registry() -> tuple[Registry, Mock]:
    slots = create_autospec(Slots, instance=True)
    return Registry(SimpleNamespace(slots=slots)), slots  # type: ignore[arg-type]


class Late:
    """A run that is over, and a pod of it that comes afterwards."""

    def __init__(self) -> None:
        self.clock, self.api = ManualClock(100.0), AsyncMock()
        self.timers = Timers(self.clock)
        self.pods = PodStore(lambda uid: self.registry.wake(uid))
        self.registry = Registry(
            SimpleNamespace(  # type: ignore[arg-type]
                slots=create_autospec(Slots, instance=True), pods=self.pods, api=self.api, timers=self.timers,
                clock=self.clock,
            )
        )  # fmt: skip
        self.pod = pj.pod_json(pj.attempt())

    def ends(self, **spec: Any) -> None:
        conditions = [{"type": "Finished", "status": "True"}]
        meta = {"namespace": "evals", "name": "one", "uid": pj.RUN_UID}
        self.registry.eval_run(None, {"metadata": meta, "spec": spec, "status": {"conditions": conditions}})

    async def deleted(self) -> list[str]:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert all(call.args[0] == PODS for call in self.api.delete.await_args_list)
        return [call.kwargs["uid"] for call in self.api.delete.await_args_list]


@pytest.mark.parametrize("first", ["the run", "the pod"])
async def test_a_pod_that_comes_after_its_runs_end_is_deleted(first: str) -> None:
    late = Late()
    if first == "the run":
        late.ends()
        assert await late.deleted() == []
        late.pods.changed(late.pod)
    else:
        late.pods.changed(late.pod)
        assert await late.deleted() == []
        late.ends()
    assert await late.deleted() == [late.pod["metadata"]["uid"]]


async def test_pods_that_a_run_keeps_for_a_look_are_left_alone() -> None:
    late = Late()
    late.pods.changed(late.pod)
    late.ends(keepPods="OnFailure")
    assert await late.deleted() == []


async def test_what_cannot_be_deleted_now_is_deleted_later() -> None:
    late = Late()
    late.api.delete.side_effect = Unavailable(0, "", "away")
    late.ends()
    late.pods.changed(late.pod)
    turning = asyncio.create_task(late.timers.run())
    assert len(await late.deleted()) == 1
    await late.clock.advance(61)
    assert len(await late.deleted()) == 2
    turning.cancel()


def test_a_change_of_a_pod_whose_run_nobody_plays_is_told_to_the_slots() -> None:
    registry, slots = a_registry()
    registry.wake("a run that has ended")
    slots.pods_changed.assert_called_once_with()


def test_the_end_of_an_audit_is_no_change_of_pods() -> None:
    registry, slots = a_registry()
    registry.wake_all()
    slots.pods_changed.assert_not_called()
