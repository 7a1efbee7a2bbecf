"""A whole release without a cluster: a fake API server with a kubelet, a fake relay, and the real operator."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

from support.fakeapi import FakeApi, Kubelet
from support.packs import EchoPack

from casewarden.adapters.kube.client import KubeClient, RetryBudget
from casewarden.adapters.kube.connection import Connection
from casewarden.adapters.kube.informer import Informer
from casewarden.api.catalogue import Catalogue
from casewarden.api.conditions import is_true
from casewarden.controller.services import Tuning
from casewarden.core.model import AttemptKey
from casewarden.ports.clock import SystemClock
from casewarden.ports.evidence import MemoryEvidence
from casewarden.ports.kube import AUDIT_RUNS, EVAL_RUNS
from casewarden.ports.metrics import NoMetrics
from casewarden.settings import Settings
from casewarden.wiring import Operator
from casewarden_sdk.contract import Case

NAMESPACE = "evals"
TUNING = Tuning(status_interval=0.05, retry_ceiling=0.2, workspace_patience=0.5, store_patience=3.0)
SETTINGS = Settings(qps=5000, burst=500, status_qps=1000, relist_seconds=0.5, host="127.0.0.1", port=0)
CATALOGUE = Catalogue.model_validate(
    {
        "tasks": {"echo": {"image": "registry.example/x:1", "command": ["casewarden-task", "echo"]}},
        "images": {"python": "registry.example/python:1"},
        "relayUrl": "http://casewarden-relay.casewarden-system.svc:8080",
    }
)


def a_pack(cases: int) -> EchoPack:
    """A pack of so many cases for each seed."""

    def make(seed: int, params: Any = None) -> list[Case]:
        ids = [f"case-{number:03d}" for number in range(cases)]
        return [Case(case, ("echo",), {"id": case, "requests": [seed]}) for case in ids]

    return EchoPack(make=make)


def a_run(name: str = "one", **spec: Any) -> dict[str, Any]:
    """The manifest of a run of the control ``null-agent``."""
    base = {"task": {"name": "echo"}, "seeds": {"values": [17]}, "candidate": {"control": "null-agent"}}
    return {
        "apiVersion": "casewarden.dev/v1alpha1",
        "kind": "EvalRun",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": base | spec,
    }


def an_audit(name: str = "trial", **spec: Any) -> dict[str, Any]:
    """The manifest of an audit of the pack."""
    base = {"task": {"name": "echo"}, "seeds": {"values": [17]}, "referenceRepeats": 2}
    return {
        "apiVersion": "casewarden.dev/v1alpha1",
        "kind": "AuditRun",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": base | spec,
    }


def good_grader(control: str, key: AttemptKey) -> str:
    """What comes of the controls of the pack where its grader is right."""
    return {"reference": "passed", "crashing-agent": "agent_error"}.get(control, "failed")


class Life:
    """How many calls an operator makes before it is killed, and whether the last of them still has its effect."""

    def __init__(self, calls: int | None = None, *, takes_effect: bool = True) -> None:
        self._left, self._takes_effect = calls, takes_effect
        self.dead = asyncio.Event()

    async def call(self, function: Callable[..., Any], *args: Any, **rest: Any) -> Any:
        last = False
        if self._left is not None and not self.dead.is_set():
            self._left -= 1
            last = self._left < 0
        if self.dead.is_set() or (last and not self._takes_effect):
            await self._end()
        answer = await function(*args, **rest)
        if last or self.dead.is_set():
            await self._end()
        return answer

    async def _end(self) -> None:
        self.dead.set()
        await asyncio.Event().wait()


class Mortal:
    """Stands before a client; once its operator is dead no call returns."""

    def __init__(self, target: Any, life: Life) -> None:
        self._target, self._life = target, life

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._target, name)
        if name in ("pages", "watch"):
            return function

        async def call(*args: Any, **rest: Any) -> Any:
            return await self._life.call(function, *args, **rest)

        return call


class _Events:
    def __init__(self, tell: Callable[[str | None, dict[str, Any]], None]) -> None:
        self._tell = tell
        self._bodies: dict[tuple[str, str], Any] = {}

    def changed(self, manifest: dict[str, Any]) -> None:
        meta = manifest["metadata"]
        self._bodies[meta["namespace"], meta["name"]] = manifest
        self._tell(None, manifest)

    def gone(self, namespace: str, name: str, uid: str) -> None:
        self._tell("DELETED", self._bodies.pop((namespace, name)))


class Stage:
    """What a story plays on."""

    def __init__(self, api: FakeApi, kubelet: Kubelet, evidence: MemoryEvidence) -> None:
        self.api, self.kubelet, self.evidence = api, kubelet, evidence

    @asynccontextmanager
    async def operator(
        self,
        life: Life | None = None,
        *,
        tuning: Tuning = TUNING,
        settings: Settings = SETTINGS,
        catalogue: Catalogue = CATALOGUE,
    ) -> AsyncIterator[Operator]:
        """Run an operator; at the end it is stopped as abruptly as a task can be."""
        life = life or Life()
        budget = RetryBudget(tries=3, seconds=1.0, base=0.01)
        async with KubeClient(Connection(self.api.url), budget=budget, request_seconds=5.0) as client:
            operator = Operator(
                Connection(self.api.url),
                catalogue,
                settings,
                tuning=tuning,
                api=Mortal(client, life),  # type: ignore[arg-type]
                evidence=Mortal(self.evidence, life),  # type: ignore[arg-type]
            )
            async with operator:
                registry = operator.registry
                sources = [
                    asyncio.create_task(
                        Informer(
                            client, kind, None, "", _Events(tell), clock=SystemClock(), metrics=NoMetrics(),
                            relist_seconds=settings.relist_seconds, retry_ceiling=0.1,
                        ).run()
                    )
                    for kind, tell in ((EVAL_RUNS, registry.eval_run), (AUDIT_RUNS, registry.audit_run))
                ]  # fmt: skip
                try:
                    yield operator
                finally:
                    for source in sources:
                        source.cancel()

    def apply(self, manifest: dict[str, Any]) -> dict[str, Any]:
        return self.api.put(f"{manifest['kind'].lower()}s", manifest)

    def audit(self, name: str = "trial") -> dict[str, Any]:
        found: dict[str, Any] = self.api.get("auditruns", NAMESPACE, name).get("status") or {}
        return found

    async def audited(self, name: str = "trial", seconds: float = 20.0) -> dict[str, Any]:
        await self.until(lambda: is_true(self.audit(name)["conditions"], "Finished"), seconds, f"audit {name} finished")
        return self.audit(name)

    def status(self, name: str = "one") -> dict[str, Any]:
        found: dict[str, Any] = self.api.get("evalruns", NAMESPACE, name).get("status") or {}
        return found

    def condition(self, type_: str, name: str = "one") -> dict[str, Any]:
        return next(item for item in self.status(name)["conditions"] if item["type"] == type_)

    async def until(self, holds: Callable[[], Any], seconds: float = 20.0, what: str = "") -> None:
        """Wait until something holds; what the runs say is in the error."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    with contextlib.suppress(KeyError, StopIteration):
                        if holds():
                            return
                    await asyncio.sleep(0.005)
        except TimeoutError:
            said = [item.get("status") for item in (*self.api.all("evalruns"), *self.api.all("auditruns"))]
            pods = [(p["metadata"]["name"], p["status"]) for p in self.api.all("pods")]
            raise AssertionError(f"{what or 'it'} did not come to hold; runs: {said}; pods: {pods[:3]}") from None

    async def finished(self, name: str = "one", seconds: float = 20.0) -> dict[str, Any]:
        await self.until(lambda: is_true(self.status(name)["conditions"], "Finished"), seconds, f"{name} finished")
        return self.status(name)

    def pods(self, role: str = "case") -> list[dict[str, Any]]:
        return [p for p in self.api.all("pods") if p["metadata"]["labels"]["casewarden.dev/role"] == role]

    def rows(self) -> list[dict[str, Any]]:
        """Every row of every ledger."""
        return list(self._rows())

    def _rows(self) -> Iterator[dict[str, Any]]:
        import json

        for item in self.api.all("configmaps"):
            if item["metadata"].get("labels", {}).get("casewarden.dev/role") == "ledger":
                for text in item["data"].values():
                    yield from (json.loads(line) for line in text.splitlines())


@asynccontextmanager
async def a_stage(cases: int = 4, **kubelet: Any) -> AsyncIterator[Stage]:
    """Set one up; ``kubelet`` are arguments of ``Kubelet``."""
    evidence = MemoryEvidence()
    async with FakeApi(bookmarks=0.2) as api:
        fake = Kubelet(api, evidence, a_pack(cases), **kubelet)
        try:
            yield Stage(api, fake, evidence)
        finally:
            fake.close()


def key_of(attempt: AttemptKey) -> tuple[int, str, int, int]:
    """An attempt as a row of the ledger says it."""
    return attempt.case.seed, attempt.case.case_id, attempt.case.repeat, attempt.attempt
