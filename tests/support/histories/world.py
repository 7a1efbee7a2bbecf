"""Plays one history: a fake cluster and relay, operators that come and go, and the steps in their time."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest import mock

from support import pod_json as pj
from support.fakeapi import FakeApi, Kubelet
from support.fakeapi.kubelet import _env
from support.fakeapi.server import Object
from support.stage import CATALOGUE, NAMESPACE, _Events, a_pack, a_run

from casewarden.adapters.kube.connection import Connection
from casewarden.adapters.kube.informer import Informer
from casewarden.api.conditions import is_true
from casewarden.controller.services import Tuning
from casewarden.core.model import AttemptKey
from casewarden.ports.evidence import MemoryEvidence
from casewarden.ports.kube import EVAL_RUNS
from casewarden.ports.metrics import NoMetrics
from casewarden.settings import Settings
from casewarden.wiring import Operator

from .history import History, Step
from .invariants import Invariants, Key, read_rows
from .virtual import MOST_TURNS, LoopClock, play
from .wire import Fate, Wire, WireClient, WireEvidence

SETTINGS = Settings(host="127.0.0.1", port=0, relay_address="10.0.0.9")
# As in production, but that nobody looks whether a run still exists only every five minutes.
TUNING = Tuning()
SEED = 17
PATIENCE = 3 * 3600.0


Script = Callable[["World"], Awaitable[bool]]
"""More that happens after the steps; True ends the history there, without the run's end."""


class _NoServer:
    addresses = (("127.0.0.1", 0),)

    async def cleanup(self) -> None:
        pass


async def _serve(*_: object) -> _NoServer:
    return _NoServer()


class World:
    """What a history plays in. ``may_fail`` are the reasons for which its run may fail."""

    def __init__(self, history: History, *, watched: bool = True, runs: int = 1) -> None:
        self.runs = runs
        self.history, self.rng = history, Random(history.seed)
        self.clock = LoopClock()
        self.api = FakeApi(grace=1.0, bookmarks=60.0, clock=self.clock.now, new_uid=self._uid)
        self.evidence = MemoryEvidence()
        self.fates: list[Fate] = []
        self.api_away = False
        self.requests: list[tuple[int, str, str, str]] = []
        self.answers: Counter[tuple[str, str, int]] = Counter()
        self.lives = 0
        self._operators: list[Operator] = []
        self.jumped = 0.0
        self.strays, self.tampered = 0, False
        self.suspended_until = float("-inf")
        self.may_fail: set[str] = {"CircuitBreaker"}
        self.invariants = Invariants(self, history.parallelism, enabled=watched)
        self._next: Wire | None = None
        self._lives: dict[asyncio.Task[None], Wire] = {}
        if watched:
            self.api.hooks.append(self.invariants.wrote)
        self.kubelet = Kubelet(
            self.api, self.evidence, a_pack(history.cases), start=0.5, work=self._work, outcome=self._outcome
        )

    # What is there.

    def _uid(self) -> str:
        return f"{self.rng.getrandbits(128):032x}"

    def seconds(self) -> float:
        """Seconds since the beginning."""
        return asyncio.get_running_loop().time()

    def age(self, pod: Object) -> float:
        """Seconds since a pod was made, at most."""
        return self.jumped + self.clock.now() - datetime.fromisoformat(pod["metadata"]["creationTimestamp"]).timestamp()

    def status(self) -> Object:
        found: Object = self.api.get("evalruns", NAMESPACE, "one").get("status") or {}
        return found

    def is_over(self) -> bool:
        found = [(item.get("status") or {}).get("conditions") or () for item in self.api.all("evalruns")]
        return all(is_true(conditions, "Finished") for conditions in found)

    def pods(self) -> list[Object]:
        return [p for p in self.api.all("pods") if p["metadata"]["labels"]["casewarden.dev/role"] == "case"]

    def shards(self) -> list[Object]:
        found = self.api.all("configmaps")
        return [i for i in found if (i["metadata"].get("labels") or {}).get("casewarden.dev/role") == "ledger"]

    def rows(self) -> list[dict[str, Any]]:
        return read_rows(self.shards())

    def cases(self) -> list[Key]:
        return [(SEED, f"case-{number:03d}", 0) for number in range(self.history.cases)]

    def seal_by(self, pod: Object, status: str = "passed") -> None:
        """Seal what a pod runs now, as its recorder does, without its driver's telling."""
        told = json.loads(_env(pod, "evidence", "initContainers")["CASEWARDEN_ATTEMPT"])
        seal = {name: told[name] for name in ("run_uid", "seed", "case_id", "repeat", "attempt")}
        checks = "1" if status == "passed" else "0"
        self.evidence.seal(
            seal | {"v": 1, "pod_uid": pod["metadata"]["uid"], "digest": "cd" * 32, "status": status, "checks": checks}
            | {"error": None, "reason": None, "seconds": 0.5}
        )  # fmt: skip

    def seal(self, key: Key) -> dict[str, Any] | None:
        return next((seal for where, seal in self.evidence.seals.items() if where[1:] == key), None)

    def _work(self, key: AttemptKey) -> float:
        self.invariants.started((key.case.seed, key.case.case_id, key.case.repeat), key.attempt)
        return self.history.works[int(key.case.case_id.partition("-")[2])]

    def _outcome(self, key: AttemptKey) -> str:
        return self.history.outcome(int(key.case.case_id.partition("-")[2]), key.attempt)

    # Operators.

    def later(self, seconds: float, effect: Callable[[], Any], *, makes_a_pod: bool) -> None:
        """Let a request land whose sender has long given up."""
        self.strays += makes_a_pod
        asyncio.get_running_loop().call_later(seconds, effect)

    def start(self, kill_at: int | None = None, how: str = "before", pause: float = 1.0) -> asyncio.Task[None]:
        """Start an operator; one that is killed at its request number ``kill_at`` comes back after ``pause``."""
        self.lives += 1
        wire = Wire(self, kill_at, how, self.rng)
        task = asyncio.create_task(self._life(wire))
        self._lives[task] = wire

        def over(done: asyncio.Task[None]) -> None:
            self._lives.pop(done, None)
            if not done.cancelled() and (error := done.exception()) is not None:
                self.invariants.check(False, f"the operator ended: {error!r}")
            if kill_at is not None:
                asyncio.get_running_loop().call_later(pause, lambda: self._lives or self.start())

        task.add_done_callback(over)
        return task

    @property
    def operators(self) -> list[Operator]:
        """Those that are alive."""
        return self._operators

    async def _life(self, wire: Wire) -> None:
        client = WireClient(wire, self.clock)
        operator = Operator(
            Connection("http://fake"), CATALOGUE, SETTINGS, clock=self.clock, tuning=TUNING, api=client,
            evidence=WireEvidence(wire, self.evidence),  # type: ignore[arg-type]
        )  # fmt: skip
        self._operators.append(operator)
        async with operator:
            events = _Events(operator.registry.eval_run)
            runs = Informer(client, EVAL_RUNS, None, "", events, clock=self.clock, metrics=NoMetrics())
            source = asyncio.create_task(runs.run())
            try:
                await wire.dead.wait()
            finally:
                wire.dead.set()
                self._operators.remove(operator)
                source.cancel()
                await asyncio.gather(source, return_exceptions=True)

    # Steps.

    async def take(self, step: Step) -> None:
        """Let a step happen."""
        act = getattr(self, f"_{step.kind}")
        act(step)
        await asyncio.sleep(0)

    def _kill(self, step: Step) -> None:
        """End the operators that live after so many more requests, and start another when they are dead."""
        for task, wire in list(self._lives.items()):
            wire._kill_at, wire._how = wire.sent + step.number, step.how
            task.add_done_callback(
                lambda _: asyncio.get_running_loop().call_later(step.seconds, lambda: self._lives or self.start())
            )

    def _second(self, step: Step) -> None:
        if len(self._lives) < 2:
            # Each of two keeps the limit, and neither knows what the other has on its way.
            self.strays += self.invariants.limit
            self.start(kill_at=20 * step.number, how="after")

    def _fate(self, step: Step) -> None:
        method, _, what = step.what.partition(" ")
        self.fates.append(Fate(step.how, method, what, step.number, step.seconds))

    def _lose(self, step: Step) -> None:
        self.api.lose("pods" if step.number % 2 else "evalruns", step.number)

    def _repeat(self, step: Step) -> None:
        self.api.repeat("pods", step.number)

    def _compact(self, step: Step) -> None:
        self.api.compact()

    def _api_away(self, step: Step) -> None:
        self.api_away = True
        self.api._break_watches()
        asyncio.get_running_loop().call_later(step.seconds, setattr, self, "api_away", False)

    def _relay_away(self, step: Step) -> None:
        self.evidence.away = True
        asyncio.get_running_loop().call_later(step.seconds, setattr, self.evidence, "away", False)

    def _spec(self, **spec: Any) -> None:
        if not self.is_over():
            self.api.update("evalruns", NAMESPACE, "one", {"spec": spec})

    def _suspend(self, step: Step) -> None:
        self.suspended_until = float("inf")
        self._spec(suspend=True)
        asyncio.get_running_loop().call_later(step.seconds, self._resume)

    def _resume(self, step: Step | None = None) -> None:
        self.suspended_until = min(self.suspended_until, self.seconds())
        self._spec(suspend=False)

    def _parallelism(self, step: Step) -> None:
        self.invariants.limit = max(self.invariants.limit, step.number)
        self._spec(parallelism=step.number)

    def _victims(self, step: Step) -> Iterator[Object]:
        yield from self.pods()[: step.number]

    def _delete(self, step: Step) -> None:
        for pod in self._victims(step):
            self.api.delete("pods", NAMESPACE, pod["metadata"]["name"])

    def _delete_now(self, step: Step) -> None:
        for pod in self._victims(step):
            self.api.delete("pods", NAMESPACE, pod["metadata"]["name"], now_=True)

    def _mark(self, pod: Object, reason: str, phase: str | None) -> None:
        target = pj.disruption(reason, at=self.clock.now(), message="told to")
        status = {"conditions": [*pod["status"].get("conditions", ()), target]}
        if phase is not None and pod["status"]["phase"] not in ("Succeeded", "Failed"):
            status |= {"phase": phase, "reason": "Evicted", "message": "The node was low on resource: memory."}  # type: ignore[dict-item]
        self.api.update("pods", NAMESPACE, pod["metadata"]["name"], {"status": status})

    def _evict(self, step: Step) -> None:
        """Evict by node pressure: whatever still runs in the pod is stopped, and seals nothing."""
        for pod in self._victims(step):
            if pod["status"]["phase"] not in ("Succeeded", "Failed"):
                self._mark(pod, "TerminationByKubelet", "Failed")
                self.kubelet.stop(pod)

    def _drain(self, step: Step) -> None:
        for pod in self._victims(step):
            self._mark(pod, "EvictionByEvictionAPI", None)
            self.api.delete("pods", NAMESPACE, pod["metadata"]["name"])

    def _node_gone(self, step: Step) -> None:
        """Remove pods without an event, as the pod collector does while nobody watches."""
        for pod in self._victims(step):
            self.api.lose("pods", 1)
            self.api.delete("pods", NAMESPACE, pod["metadata"]["name"], now_=True)

    def _touch_ledger(self, step: Step) -> None:
        for shard in self.shards():
            note = {"metadata": {"annotations": {"touched": str(step.at)}}}
            self.api.update("configmaps", NAMESPACE, shard["metadata"]["name"], note)

    def _delete_ledger(self, step: Step) -> None:
        self.tampered = True
        self.may_fail.add("LedgerLost")
        for shard in self.shards():
            self.api.delete("configmaps", NAMESPACE, shard["metadata"]["name"])

    def _clock(self, step: Step) -> None:
        self.clock.jump += step.number
        self.jumped += abs(step.number)

    # The whole.

    async def run(self, script: Script | None = None) -> None:
        """Play the history, then the script, then let everything be well again and wait for the run's end."""
        self.api.put("evalruns", a_run(parallelism=self.history.parallelism))
        for number in range(1, self.runs):
            self.api.put("evalruns", a_run(f"run-{number}", parallelism=self.history.parallelism))
        self.start()
        for step in self.history.steps:
            await asyncio.sleep(max(0.0, step.at - self.seconds()))
            await self.take(step)
            self._stop_at_violation()
        if script is not None and await script(self):
            return
        while not self.is_over() or self.pods() or not self._settled():
            await asyncio.sleep(1.0)
            self._stop_at_violation()
            if self.seconds() > PATIENCE:
                self.invariants.check(False, f"the run does not end: {self.status().get('conditions')}")
                self._stop_at_violation()
        self.invariants.at_the_end(self.history.cases)
        self._stop_at_violation()

    def _settled(self) -> bool:
        return not self.api_away and not self.evidence.away

    def _stop_at_violation(self) -> None:
        if self.invariants.found is not None:
            raise self.invariants.found

    async def until(self, holds: Callable[[], Any], seconds: float = 600.0) -> None:
        """Wait until something holds."""
        end = self.seconds() + seconds
        while not holds():
            assert self.seconds() < end, f"it did not come to hold: {self.status()}"
            await asyncio.sleep(0.01)

    async def close(self) -> None:
        lives = list(self._lives)
        self._lives = {asyncio.ensure_future(asyncio.sleep(0)): Wire(self, None, "", self.rng)}
        for task in lives:
            task.cancel()
        await asyncio.gather(*lives, return_exceptions=True)
        self.kubelet.close()
        for task in self.api._tasks:
            task.cancel()


async def _whole(world: World, script: Script | None) -> World:
    try:
        await world.run(script)
        return world
    finally:
        await world.close()


def play_history(history: History, script: Script | None = None) -> World:
    """Play a history and return its world as it was at the end; ``Violation`` where an invariant does not hold."""
    return play_world(lambda: World(history), script)


def play_world(make: Callable[[], World], script: Script | None = None, turns: int = MOST_TURNS) -> World:
    """As ``play_history``, in a world of one's own making, for so many turns of the loop at most."""
    rng = Random(0)
    chance = SimpleNamespace(Random=lambda: Random(rng.random()))
    places = ("controller.run_task", "adapters.kube.informer", "adapters.kube.client")

    async def whole() -> World:
        return await _whole(make(), script)

    with contextlib.ExitStack() as stack:
        for place in places:
            stack.enter_context(mock.patch(f"casewarden.{place}.random", chance))
        stack.enter_context(mock.patch("casewarden.wiring.serve", _serve))
        return play(whole(), turns)
