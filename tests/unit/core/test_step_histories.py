"""Any history of a run: pods evicted, deleted, lost, late; stores slow; operators killed. What must hold, holds."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from support import pod_json as pj
from support.simulated_run import SimulatedPod, World

from casewarden.core.model import CaseKey, RunPolicy

VERDICTS = ("passed", "failed", "agent_error")


def policy(parallelism: int = 2, environment: int = 1, interruptions: int = 2, **changes) -> RunPolicy:
    return RunPolicy(parallelism, environment, interruptions, 900.0, False, None, **changes)


def _evict(message: str):
    def evict(world: World, pod: SimulatedPod, _: str) -> None:
        if pod.is_gone:
            return
        pod.status = {"phase": "Failed", "reason": "Evicted", "message": message}
        pod.end(143, world.now)

    return evict


def _drain(world: World, pod: SimulatedPod, _: str) -> None:
    pod.conditions = (pj.disruption("EvictionByEvictionAPI", world.now),)
    pod.deleted = pod.deleted or world.now


def _delete(world: World, pod: SimulatedPod, _: str) -> None:
    pod.deleted = pod.deleted or world.now


def _lose_node(world: World, pod: SimulatedPod, _: str) -> None:
    pod.record()
    pod.is_lost = True
    pod.deleted = pod.deleted or world.now
    pod.conditions = (pj.disruption("DeletionByTaintManager", world.now),)


def _go(world: World, pod: SimulatedPod, _: str) -> None:
    if pod.deleted is not None and not pod.is_lost:
        world.remove(pod)


def _give_up(world: World, pod: SimulatedPod, _: str) -> None:
    pod.end(3, world.now, pj.told("environment_error", "-", None, reason="StoreUnavailable"))


ANY = ("pending", "running", "sealed", "ended")
HAPPENINGS = {
    "it starts": (("pending",), lambda world, pod, _: world.start(pod)),
    "its verdict is sealed": (("running",), lambda world, pod, status: world.seal(pod, status)),
    "its driver tells": (("sealed",), lambda world, pod, _: world.tell(pod)),
    "its driver crashes": (("running", "sealed"), lambda world, pod, _: pod.end(1, world.now)),
    "its driver gives up": (("running",), _give_up),
    "it is evicted": (("pending", "running", "sealed"), _evict("low on memory")),
    "its candidate fills its volume": (
        ("running", "sealed"),
        _evict('Usage of EmptyDir volume "state" exceeds the limit'),
    ),
    "it is drained": (ANY, _drain),
    "it is deleted by hand": (ANY, _delete),
    "it vanishes at once": (ANY, lambda world, pod, _: world.remove(pod)),
    "it goes, being deleted": (ANY, _go),
    "its node is lost": (("running", "sealed"), _lose_node),
}


class Histories(RuleBasedStateMachine):
    @initialize(cases=st.integers(1, 4), parallelism=st.integers(1, 3), retries=st.integers(0, 2))
    def begin(self, cases, parallelism, retries):
        keys = tuple(CaseKey(17, f"case-{number}", 0) for number in range(cases))
        self.world = World(policy(parallelism, retries), keys)

    def up(self) -> list[SimulatedPod]:
        return [pod for pod in self.world.pods if pod.is_up or not pod.is_gone]

    @precondition(lambda self: self.up())
    @rule(data=st.data(), happening=st.sampled_from(sorted(HAPPENINGS)), status=st.sampled_from(VERDICTS))
    def something_happens_to_a_pod(self, data, happening, status):
        states, happen = HAPPENINGS[happening]
        found = [pod for pod in self.up() if pod.state in states]
        if found:
            happen(self.world, data.draw(st.sampled_from(found)), status)

    @precondition(lambda self: self.world.finished is None)
    @rule(rounds=st.integers(1, 8), answered=st.booleans())
    def things_go_well_for_a_while(self, rounds, answered):
        for _ in range(rounds):
            self._something_good_happens(answered)
            self.world.sync()
            self.world.step()

    @precondition(lambda self: self.world.late)
    @rule(data=st.data())
    def a_late_create_lands(self, data):
        key = data.draw(st.sampled_from(self.world.late))
        self.world.late.remove(key)
        self.world.land(key, late=True)

    # What the operator does, and users to it.

    @rule()
    def the_operator_sees(self):
        self.world.sync()

    @rule(creates=st.sampled_from(["land", "land", "land", "late", "quota"]), fresh=st.booleans())
    def the_operator_steps(self, creates, fresh):
        if fresh:
            self.world.sync()
        self.world.step(creates)

    @rule(until=st.integers(0, 5))
    def the_operator_is_killed_in_the_middle_of_a_step(self, until):
        self.world.sync()
        self.world.step(until=until)

    @rule()
    def the_operator_is_restarted(self):
        self.world.restart()

    @precondition(lambda self: self.world.asked)
    @rule(data=st.data())
    def the_store_answers(self, data):
        self.world.answer(data.draw(st.sampled_from(sorted(self.world.asked))))

    @precondition(lambda self: self.world.asked and self.world.store_away_since is None)
    @rule()
    def the_store_is_away(self):
        self.world.store_away_since = self.world.now

    @rule(seconds=st.sampled_from([1, 7, 40, 100]))
    def time_passes(self, seconds):
        self.world.pass_time(seconds)

    @rule()
    def the_user_suspends_or_resumes(self):
        self.world.policy = replace(self.world.policy, suspend=not self.world.policy.suspend)

    @rule(parallelism=st.integers(1, 3))
    def the_user_changes_the_parallelism(self, parallelism):
        self.world.policy = replace(self.world.policy, parallelism=parallelism)

    # And in the end, when nothing goes wrong any more.

    def teardown(self):
        if not hasattr(self, "world"):
            return
        world = self.world
        world.policy = replace(world.policy, suspend=False)
        world.store_away_since = None
        for _ in range(400):
            world.sync()
            world.step()
            if world.finished is not None:
                break
            if not self._something_good_happens(answered=True) and not world.has_news:
                # Nothing moves and no event is on its way: the step must have said when to come again.
                assert world.wake_at is not None, "nothing moves and nobody will look again"
                world.now = world.wake_at
        assert world.finished is not None, "the run never ends"

    def _moves(self, pod: SimulatedPod) -> bool:
        return not pod.is_lost and (pod.deleted is not None or pod.state != "ended")

    def _something_good_happens(self, answered: bool) -> bool:
        world = self.world
        for key in sorted(world.asked) if answered else ():
            world.answer(key)
            return True
        for pod in world.objects:
            if not self._moves(pod):
                continue
            world.now += 0.5
            if pod.deleted is not None:
                world.remove(pod)
            elif pod.state == "pending":
                world.start(pod)
            elif pod.state == "running":
                world.seal(pod, "passed")
            else:
                world.tell(pod)
            return True
        return False


Histories.TestCase.settings = settings(
    max_examples=300, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestHistories = Histories.TestCase
