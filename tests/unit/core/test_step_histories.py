"""Any history of a run: pods evicted, deleted, lost, late; stores slow; operators killed. What must hold, holds.

``World.check`` has the invariants and looks at them after every step. Whatever happened, a run ends once all goes well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import pod_json as pj
from support.simulated_run import SimulatedPod, World

from casewarden.core.facts import FORSAKEN_SECONDS
from casewarden.core.model import CaseKey, RunPolicy

VERDICTS = ("passed", "failed", "agent_error")
UP = ("pending", "running", "sealed", "forsaken")
ANY = (*UP, "ended")


def policy(parallelism: int = 2, environment: int = 1, interruptions: int = 2) -> RunPolicy:
    return RunPolicy(parallelism, environment, interruptions, 900.0, False, None)


def go_well(world: World, *, answered: bool = True) -> bool:
    """Let the next good thing happen; False where nothing moves."""
    for key in sorted(world.asked) if answered else ():
        world.answer(key)
        return True
    for pod in world.objects:
        if pod.is_lost or (pod.deleted is None and pod.state == "ended"):
            continue
        world.now += 0.5
        if pod.deleted is not None:
            world.remove(pod)
        elif pod.state == "pending":
            world.start(pod)
        elif pod.state == "running":
            world.seal(pod, VERDICTS[pod.key.attempt % 3])
        elif pod.state == "forsaken":
            world.now += FORSAKEN_SECONDS
        else:
            world.tell(pod)
        return True
    return False


# What happens to a pod.


def _evict(message: str) -> Callable[[World, SimulatedPod], None]:
    def evict(world: World, pod: SimulatedPod) -> None:
        pod.status = {"phase": "Failed", "reason": "Evicted", "message": message}
        pod.end(143, world.now)

    return evict


def _drain(world: World, pod: SimulatedPod) -> None:
    pod.conditions = (pj.disruption("EvictionByEvictionAPI", world.now),)
    pod.deleted = pod.deleted or world.now


def _delete(world: World, pod: SimulatedPod) -> None:
    pod.deleted = pod.deleted or world.now


def _lose_node(world: World, pod: SimulatedPod) -> None:
    pod.record()
    pod.is_lost = True
    pod.deleted = pod.deleted or world.now
    pod.conditions = (pj.disruption("DeletionByTaintManager", world.now),)


def _forsake(world: World, pod: SimulatedPod) -> None:
    world.start(pod)
    if pod.state == "running":
        pod.state, pod.died = "forsaken", world.now


def _progress(world: World, pod: SimulatedPod) -> None:
    if pod.deleted is not None and not pod.is_lost:
        world.remove(pod)
    elif pod.state == "pending":
        world.start(pod)
    elif pod.state == "running":
        world.seal(pod, VERDICTS[pod.key.attempt % 3])
    elif pod.state == "sealed" and not pod.is_lost:
        world.tell(pod)


def _give_up(world: World, pod: SimulatedPod) -> None:
    pod.end(3, world.now, pj.told("environment_error", "-", None, reason="StoreUnavailable"))


HAPPENINGS: dict[str, tuple[tuple[str, ...], Callable[[World, SimulatedPod], None]]] = {
    "goes on": (ANY, _progress),
    "crashes": (("running", "sealed"), lambda world, pod: pod.end(1, world.now)),
    "gives up": (("running",), _give_up),
    "loses its candidate's container": (("pending",), _forsake),
    "is evicted": (UP, _evict("low on memory")),
    "fills its volume": (("running", "sealed"), _evict('Usage of EmptyDir volume "state" exceeds the limit')),
    "is drained": (ANY, _drain),
    "is deleted by hand": (ANY, _delete),
    "vanishes": (ANY, lambda world, pod: world.remove(pod)),
    "loses its node": (("running", "sealed"), _lose_node),
}


def _happen(name: str) -> Callable[[World, int], None]:
    states, happen = HAPPENINGS[name]

    def to_a_pod(world: World, which: int) -> None:
        # A pod whose object is gone may still run, on a node that was lost.
        found = [p for p in world.pods if p.state in states and (not p.is_gone or (p.is_lost and name == "goes on"))]
        if found:
            happen(world, found[which % len(found)])

    return to_a_pod


# What the operator does, and users to it.


def _see_and_step(world: World, which: int) -> None:
    world.sync()
    world.step(("land", "land", "land", "late", "quota")[which % 5])


def _step_blindly(world: World, which: int) -> None:
    world.step(("land", "late")[which % 2])


def _be_killed(world: World, which: int) -> None:
    world.sync()
    world.step(until=which)


def _be_refused(world: World, which: int) -> None:
    if which == 0:
        world.sync()
        world.step("refused")


def _answer(world: World, which: int) -> None:
    asked = sorted(world.asked)
    if asked:
        world.answer(asked[which % len(asked)])


def _store_goes(world: World, _: int) -> None:
    if world.asked and world.store_away_since is None:
        world.store_away_since = world.now


def _land_late(world: World, which: int) -> None:
    if world.late:
        world.land(world.late.pop(which % len(world.late)), late=True)


def _toggle_suspend(world: World, _: int) -> None:
    world.policy = replace(world.policy, suspend=not world.policy.suspend)


def _change_parallelism(world: World, which: int) -> None:
    world.policy = replace(world.policy, parallelism=1 + which % 3)


def _go_well(world: World, which: int) -> None:
    for _ in range(which + 1):
        go_well(world, answered=which % 2 == 0)
        world.sync()
        world.step()


EVENTS: dict[str, Callable[[World, int], None]] = {
    "nothing": lambda world, which: None,
    "the operator sees and steps": _see_and_step,
    "the operator steps on old news": _step_blindly,
    "the operator is killed in a step": _be_killed,
    "the operator is restarted": lambda world, which: world.restart(with_index=which % 2 == 0),
    "the API server refuses a pod": _be_refused,
    "the store answers": _answer,
    "the store goes away": _store_goes,
    "a late create lands": _land_late,
    "the user suspends or resumes": _toggle_suspend,
    "the user changes the parallelism": _change_parallelism,
    "time passes": lambda world, which: world.pass_time((1, 7, 40, 100, 40, 7)[which]),
    "things go well for a while": _go_well,
    **{f"a pod {name}": _happen(name) for name in HAPPENINGS},
}
# Histories are worth their time where pods get somewhere and the operator looks.
OFTEN = ("the operator sees and steps", "the store answers", "things go well for a while", "a pod goes on")
NAMES = (*EVENTS, *OFTEN, *OFTEN, *OFTEN, *OFTEN)

histories = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 5)), min_size=40, max_size=80)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 2), histories)
def test_whatever_happens_every_case_is_counted_once_and_the_run_ends(cases, parallelism, retries, history):
    world = World(policy(parallelism, retries), tuple(CaseKey(17, f"case-{n}", 0) for n in range(cases)))
    for name, which in history:
        EVENTS[name](world, which)
    _end_well(world)


def _end_well(world: World) -> None:
    world.policy = replace(world.policy, suspend=False)
    world.store_away_since = None
    for _ in range(400):
        world.sync()
        world.step()
        if world.finished is not None:
            return
        if not go_well(world) and not world.has_news:
            # Nothing moves and no event is on its way: the step must have said when to come again.
            assert world.wake_at is not None, "nothing moves and nobody will look again"
            world.now = world.wake_at
    raise AssertionError("the run never ends")
