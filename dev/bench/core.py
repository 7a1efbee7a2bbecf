"""What the operator costs by itself: the pure step, and whole runs against a fake API server in virtual time."""

from __future__ import annotations

import resource
import statistics
import time
from typing import Any

from support.histories.history import History
from support.histories.world import World, play_world

from casewarden.core.model import AttemptKey, CaseKey, LedgerRow, PlannedCase, RunPolicy, RunView
from casewarden.core.standings import Standings
from casewarden.core.step import step

Figures = dict[str, Any]


def step_at(cases: int, wake_ups: int = 21) -> Figures:
    """Milliseconds of a step in the middle of a run, with 20 pods to be created, at each row that comes.

    ``ms`` is a wake-up as the operator has it, with what was counted kept from one to the next; ``ms_anew`` is the
    first one, when all rows are counted.
    """
    keys = tuple(CaseKey(17, f"case-{number:05}", 0) for number in range(cases))
    rows = [
        LedgerRow(AttemptKey(key, 1), "verdict", "passed", "1", None, None, "ab" * 32, 1.0, "pod", 1.0)
        for key in keys[: cases // 2 + wake_ups]
    ]
    planned = {(key.seed, key.case_id): PlannedCase(key.seed, key.case_id, ("a",), "default", "0" * 64) for key in keys}
    policy = RunPolicy(20, 2, 5, 900.0, suspend=False, deadline=None)
    times, counted, actions = [], None, 0
    for number in range(cases // 2, cases // 2 + wake_ups):
        started = time.process_time()
        view = RunView(policy=policy, cases=keys, rows=tuple(rows[:number]), pods=(), planned=planned)
        counted = Standings.of(view.cases, view.rows, policy, counted)
        actions = len(step(view, 2.0, counted).actions)
        times.append((time.process_time() - started) * 1000)
    return {
        "cases": cases,
        "actions": actions,
        "ms": statistics.median(times[1:]),
        "ms_least": min(times[1:]),
        "ms_most": max(times[1:]),
        "ms_anew": times[0],
    }


def operator_at(cases: int, parallelism: int) -> Figures:
    """CPU and API requests per case of a whole run; the fake API server and kubelet are in the figure of the CPU."""
    history = History(1, cases, parallelism, (("passed",),) * cases, (1.0,) * cases, ())
    ended: list[float] = []

    async def note(world: World) -> bool:
        await world.until(world.is_over, seconds=1e6)
        ended.append(world.seconds())
        return False

    started = time.process_time()
    world = play_world(lambda: World(history, watched=False), note, turns=100_000_000)
    cpu = time.process_time() - started
    by_kind: dict[str, int] = {}
    for _, method, plural, _name in world.requests:
        by_kind[f"{method} {plural}"] = by_kind.get(f"{method} {plural}", 0) + 1
    return {
        "cases": cases,
        "parallelism": parallelism,
        "cpu_ms_per_case": 1000 * cpu / cases,
        "requests_per_case": len(world.requests) / cases,
        "requests": dict(sorted(by_kind.items())),
        "virtual_seconds": ended[0],
        "cases_per_virtual_second": cases / ended[0],
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
