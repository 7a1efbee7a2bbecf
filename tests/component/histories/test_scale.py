"""Many cases and many runs: what is written stays small and seldom, and what is kept stays bounded."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from support.histories.history import History
from support.histories.world import SETTINGS, World, play_world
from support.packs import EchoPack

from casewarden.api.plan import Plan
from casewarden.controller.identity import RunIdentity
from casewarden.controller.ledger import Ledger
from casewarden.core.model import AttemptKey, CaseKey, LedgerRow, RunPolicy
from casewarden.core.outcome import clean
from casewarden.core.status import StatusInput, build_status
from casewarden.core.tally import plan_facts
from casewarden.ports.kube import CONFIG_MAPS, list_all
from casewarden.ports.memory_kube import MemoryKube
from casewarden_sdk.contract import Case
from casewarden_sdk.plan import build_plan

MANY = 10_000
HOSTILE = "<script>\x1b[31m\udcff\x00" * (1 << 17)
ERROR = clean(HOSTILE)


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")


def a_row(number: int) -> LedgerRow:
    return LedgerRow(
        key=AttemptKey(CaseKey(17, f"case-{number:05}-{'x' * 80}", 0), 1), kind="verdict", status="agent_error",
        checks="0", reason="Exited", error=ERROR, digest="ab" * 32, seconds=1.0, pod_uid="u" * 36,
        ended_at=1.0,
    )  # fmt: skip


def test_a_status_of_ten_thousand_cases_with_hostile_errors_stays_under_16_kib() -> None:
    assert len(HOSTILE) >= 1 << 20
    rows = tuple(a_row(number) for number in range(MANY))
    pack = EchoPack(make=lambda seed, params: [Case(r.key.case.case_id, ("echo",), {"id": 1}) for r in rows])
    plan = plan_facts(Plan.model_validate(build_plan(pack, [17], {}, [])), "0" * 64)
    given = StatusInput(
        generation=1, now=2.0, policy=RunPolicy(20, 2, 5, 900.0, suspend=False, deadline=None), seeds=(17,),
        plan=plan, rows=rows,
    )  # fmt: skip
    status = build_status(given)
    assert status["progress"] == f"{MANY}/{MANY}"
    assert len(status["failures"]) == 20
    assert len(json.dumps(status).encode()) < 16 << 10


async def test_a_ledger_of_ten_thousand_rows_is_written_in_batches_and_its_shards_fit() -> None:
    api = MemoryKube()
    run = RunIdentity.of({"metadata": {"name": "one", "namespace": "evals", "uid": "u-1"}})
    ledger = Ledger(api, run)
    await ledger.load()
    rows = [a_row(number) for number in range(MANY)]
    for first in range(0, MANY, 500):
        await ledger.write(rows[first : first + 500])
    shards = await list_all(api, CONFIG_MAPS, "evals")
    sizes = [sum(len(text.encode()) for text in shard["data"].values()) for shard in shards]
    writes = sum(len(shard["data"]) for shard in shards)
    assert max(sizes) < 1 << 20
    assert writes < MANY / 25
    again = Ledger(api, run)
    await again.load()
    assert (again.digest, len(again.rows)) == (ledger.digest, MANY)


def test_two_hundred_runs_at_once_stay_under_the_budget_of_status_writes() -> None:
    runs, writes = 200, Counter[int]()
    history = History(1, 2, 2, (("passed",),) * 2, (5.0, 9.0), ())

    def make() -> World:
        world = World(history, watched=False, runs=runs)
        world.api.hooks.append(
            lambda type_, plural, item: writes.update(
                [int(world.seconds())] if plural == "evalruns" and type_ == "MODIFIED" else []
            )
        )
        return world

    world = play_world(make, turns=3_000_000)
    assert world.is_over()
    assert len(world.rows()) == 2 * runs
    # First, planned and last words are written at once, on credit; all else waits for its turn.
    forced = 4 * runs
    seconds = max(writes) - min(writes) + 1
    assert sum(writes.values()) <= SETTINGS.status_qps * (seconds + 1) + forced
    statuses = [item["status"] for item in world.api.all("evalruns")]
    assert {status["score"] for status in statuses} == {"1"}
