"""The twelve schedules that lost or doubled a verdict in an earlier design, each by its number."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from support.histories.history import History, Step
from support.histories.world import World, play_history
from support.stage import NAMESPACE


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL")


def a_history(*steps: Step, cases: int = 1, parallelism: int = 1, work: float = 15.0, seed: int = 1) -> History:
    return History(seed, cases, parallelism, (("passed",),) * cases, (work,) * cases, steps)


def runs(world: World) -> dict[str, int]:
    """How often the candidate of each case was started."""
    return {key.case_id: count for key, count in world.kubelet.started.items()}


def test_r1_an_attempt_whose_pod_went_while_no_operator_lived_is_tried_again_once() -> None:
    world = play_history(
        a_history(Step(5, "kill", 0, "before", seconds=10), Step(6, "evict", 1), Step(7, "node_gone", 1))
    )
    assert world.lives == 2
    assert runs(world) == {"case-000": 2}
    assert [row["attempt"] for row in world.rows()] == [1, 2]


def test_r2_a_create_that_lands_after_its_twin_was_counted_runs_nothing() -> None:
    history = a_history(Step(0.9, "fate", 1, "late", "POST pods", 20.0), cases=6, work=8.0)
    world = play_history(history)
    assert set(runs(world).values()) == {1}
    assert len(world.rows()) == 6
    made = Counter(pod["metadata"]["name"] for pod in world.api.created if pod["kind"] == "Pod")
    assert max(made.values()) == 2, "the late create landed"


def test_r3_the_name_of_a_pod_that_is_going_is_not_taken_for_a_living_one() -> None:
    world = play_history(a_history(Step(5, "suspend", seconds=0.2)))
    assert [(row["attempt"], row["kind"]) for row in world.rows()] == [(1, "suspended"), (2, "verdict")]
    assert world.status()["attempts"]["suspended"] == 1


@pytest.mark.parametrize("how", ["evict", "drain", "delete", "delete_now", "node_gone"])
def test_r4_what_was_sealed_before_the_pod_was_taken_away_counts_and_is_not_tried_again(how: str) -> None:
    """Between its seal and its exit nobody but the store knows of a verdict."""

    async def script(world: World) -> bool:
        (pod,) = world.pods()
        world.seal_by(pod, "failed")
        await world.take(Step(5, how, 1))
        return False

    world = play_history(a_history(Step(5, "resume")), script)
    assert runs(world) == {"case-000": 1}
    assert [(row["attempt"], row["status"]) for row in world.rows()] == [(1, "failed")]


def test_r5_a_verdict_is_held_while_the_store_is_away_and_not_run_again() -> None:
    world = play_history(a_history(Step(5, "relay_away", seconds=240.0)))
    assert runs(world) == {"case-000": 1}
    assert [(row["attempt"], row["status"]) for row in world.rows()] == [(1, "passed")]


@pytest.mark.parametrize("sealed", [True, False])
def test_r6_a_suspend_against_a_seal_leaves_the_one_that_came_first(sealed: bool) -> None:
    async def script(world: World) -> bool:
        if sealed:
            world.seal_by(world.pods()[0])
        await world.take(Step(5, "suspend", seconds=5.0))
        return False

    world = play_history(a_history(Step(5, "resume")), script)
    assert runs(world) == {"case-000": 1 if sealed else 2}
    assert [row["kind"] for row in world.rows()] == (["verdict"] if sealed else ["suspended", "verdict"])


@pytest.mark.parametrize("seconds", [-100, 100])
def test_a_clock_that_jumps_in_the_middle_of_a_case_costs_no_attempt(seconds: int) -> None:
    world = play_history(a_history(Step(5, "clock", seconds), Step(9, "clock", -seconds), cases=2))
    assert set(runs(world).values()) == {1}
    assert world.status()["score"] == "1"


def test_r7_a_namespace_that_goes_with_the_operator_alive_is_left_alone() -> None:
    async def script(world: World) -> bool:
        world.api.delete_namespace(NAMESPACE)
        (operator,) = world.operators
        end = world.seconds() + 400
        while len(operator.registry) and world.seconds() < end:
            await asyncio.sleep(1)
        assert len(operator.registry) == 0
        assert not [key for key in world.api.objects if key[1] == NAMESPACE]
        return True

    play_history(a_history(Step(5, "resume")), script)


def test_r8_two_operators_write_no_row_over_another() -> None:
    steps = (Step(3, "second", 50), Step(4, "fate", 3, "slow", "PATCH configmaps", 2.0))
    world = play_history(a_history(*steps, cases=5, parallelism=2, work=1.0))
    assert world.answers["PATCH", "configmaps", 409] + world.answers["POST", "configmaps", 409] > 0
    assert len(world.rows()) == 5
    assert max(runs(world).values()) == 1


def test_r9_an_operator_that_comes_back_lists_the_pods_before_it_reads_the_ledger() -> None:
    world = play_history(a_history(Step(5, "kill", 0, "before", seconds=1.0), Step(5.5, "touch_ledger")))
    assert world.lives == 2
    read = [plural for life, method, plural, name in world.requests if life == 2 and method == "GET" and not name]
    assert read.index("pods") < read.index("configmaps")


@pytest.mark.parametrize("operator", ["alive", "away"])
def test_r10_a_shard_of_the_ledger_that_somebody_deletes_comes_back_from_the_store(operator: str) -> None:
    steps = [Step(9, "delete_ledger")]
    if operator == "away":
        steps.insert(0, Step(8.9, "kill", 0, "before", seconds=5.0))
    world = play_history(a_history(*steps, cases=4, work=2.0))
    assert len(world.rows()) == 4
    assert max(runs(world).values()) == 1
    assert world.status()["score"] == "1"


@pytest.mark.parametrize("how", ["before", "after", "late"])
@pytest.mark.parametrize("request_", range(0, 24, 2))
def test_r11_a_plan_outlives_whoever_was_killed_while_reading_it(request_: int, how: str) -> None:
    world = play_history(a_history(Step(0, "kill", request_, how, seconds=2.0), work=0.1))
    assert world.lives == 2
    assert world.status()["score"] == "1"
    assert world.status()["conditions"][1] == {**world.status()["conditions"][1], "type": "Planned", "status": "True"}


@pytest.mark.parametrize("second", [1, 2, 6, 12])
def test_r12_events_that_are_lost_are_made_good_by_the_next_list(second: int) -> None:
    async def script(world: World) -> bool:
        await world.until(world.is_over)
        assert world.seconds() < 340 + 60, "no later than the next full list"
        return False

    play_history(a_history(*(Step(second, "lose", 3) for _ in range(3)), cases=2, work=5.0), script)
