"""What real case pods cost in time: over a tight loop of the same pods, in slots that stand empty, and by phase."""

from __future__ import annotations

import asyncio
import contextlib
import json
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from bench.cluster import Bench, a_bench, until
from casewarden.api.names import (
    ANNOTATION_ATTEMPT,
    ANNOTATION_CASE,
    ANNOTATION_REPEAT,
    ANNOTATION_SEED,
    case_pod_name,
)
from casewarden.ports.kube import PODS, Manifest, NotFound

Figures = dict[str, Any]
CASE_PODS = "casewarden.dev/role=case"
PHASES = ("created", "scheduled", "evidence", "started", "ended", "recorded", "gone")
# Of the loop's pods, so that they are none of those that the operator made.
LOOP_ATTEMPT = 7


@dataclass
class Seen:
    """One pod: as it was made, and when each of its phases was seen, in monotonic seconds."""

    manifest: Manifest
    at: dict[str, float] = field(default_factory=dict)
    message: str = ""

    def note(self, pod: Manifest) -> None:
        """Take the first sight of each phase down."""
        status, now = pod.get("status") or {}, time.monotonic()
        containers = {item["name"]: item["state"] for item in status.get("containerStatuses") or ()}
        sidecar: Manifest = next(iter(status.get("initContainerStatuses") or ()), {})
        conditions = {item["type"]: item["status"] for item in status.get("conditions") or ()}
        reached = {
            "created": True,
            "scheduled": conditions.get("PodScheduled") == "True",
            "evidence": bool(sidecar.get("started")),
            "started": bool(containers) and not any("waiting" in state for state in containers.values()),
            "ended": "terminated" in containers.get("task", {}),
            "recorded": "deletionTimestamp" in pod["metadata"],
        }
        self.message = containers.get("task", {}).get("terminated", {}).get("message", self.message)
        for phase, there in reached.items():
            if there:
                self.at.setdefault(phase, now)


class Watcher:
    """Follows the case pods of a namespace."""

    def __init__(self) -> None:
        self.pods: dict[str, Seen] = {}
        self.changed = asyncio.Event()

    async def follow(self, bench: Bench) -> None:
        """Watch until cancelled."""
        version = [version async for _, version in bench.api.pages(PODS, bench.namespace, CASE_PODS)][-1]
        async for event in bench.api.watch(PODS, bench.namespace, version, CASE_PODS, seconds=3600):
            name = event.object["metadata"].get("name")
            if event.type == "BOOKMARK" or name is None:
                continue
            seen = self.pods.setdefault(name, Seen(event.object))
            seen.note(event.object)
            if event.type == "DELETED":
                seen.at.setdefault("gone", time.monotonic())
            self.changed.set()

    def of(self, run: str) -> list[Seen]:
        """Return the pods of a run in the order of their creation."""
        found = [s for s in self.pods.values() if s.manifest["metadata"]["ownerReferences"][0]["name"] == run]
        return sorted(found, key=lambda seen: seen.at["created"])


@asynccontextmanager
async def _watched(name: str) -> AsyncIterator[tuple[Bench, Watcher]]:
    async with a_bench(name) as bench:
        watcher = Watcher()
        following = asyncio.create_task(watcher.follow(bench))
        try:
            yield bench, watcher
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


def _wall(pods: list[Seen]) -> float:
    return max(seen.at["ended"] for seen in pods) - min(seen.at["created"] for seen in pods)


# The wall time of a run over that of a tight loop.


def wall_ratio(cases: int, at_once: int) -> Figures:
    """First case pod to last verdict of trivial cases, over the time of the very same pods in a tight loop."""
    return asyncio.run(_wall_ratio(cases, at_once))


async def _wall_ratio(cases: int, at_once: int) -> Figures:
    async with _watched("wall") as (bench, watcher):
        run = await bench.apply_run("played", cases, seconds=0, parallelism=at_once)
        await bench.finished("played")
        played = watcher.of("played")
        # Another run of the same cases: its relay takes what the loop's pods bring, and no operator looks at them. Its
        # own candidate is slow, so that it seals nothing before the operator is gone.
        twin = await bench.apply_run("looped", cases, seconds=60, parallelism=1)
        await until(lambda: _is_there(watcher, "looped"), 120, "the first pod of the twin", pause=0.02)
        await bench.scale_operator(0)
        try:
            await _clear(bench)
            pods = [_twin_of(seen.manifest, run["metadata"], twin["metadata"]) for seen in played]
            await asyncio.sleep(2)
            looped = await _loop(bench, watcher, pods, at_once)
        finally:
            await bench.scale_operator(1)
        return {
            "cases": cases,
            "at_once": at_once,
            "run_s": _wall(played),
            "loop_s": _wall(looped),
            "ratio": _wall(played) / _wall(looped),
            "loop_verdicts": sorted({_verdict(seen) for seen in looped}),
        }


async def _is_there(watcher: Watcher, run: str) -> bool:
    return bool(watcher.of(run))


async def _clear(bench: Bench) -> None:
    async def clear() -> bool:
        left = False
        async for pods, _ in bench.api.pages(PODS, bench.namespace, CASE_PODS):
            for pod in pods:
                left = True
                with contextlib.suppress(NotFound):
                    await bench.api.delete(PODS, bench.namespace, pod["metadata"]["name"], grace_seconds=0)
        return not left

    await until(clear, 60, "the pods of the twin to go")


def _twin_of(pod: Manifest, run: Manifest, twin: Manifest) -> Manifest:
    """Return the pod of another run for the same case, with the candidate that it has."""
    text = json.dumps({"metadata": pod["metadata"], "spec": pod["spec"]})
    made = json.loads(text.replace(run["uid"], twin["uid"]))
    notes = made["metadata"]["annotations"]
    notes[ANNOTATION_ATTEMPT] = str(LOOP_ATTEMPT)
    case = int(notes[ANNOTATION_SEED]), notes[ANNOTATION_CASE], int(notes[ANNOTATION_REPEAT])
    name = case_pod_name(twin["name"], twin["uid"], *case, LOOP_ATTEMPT)
    made["spec"].pop("nodeName", None)
    for variable in made["spec"]["initContainers"][0]["env"]:
        if variable["name"] == "CASEWARDEN_ATTEMPT":
            told = json.loads(variable["value"]) | {"attempt": LOOP_ATTEMPT, "pod_name": name}
            variable["value"] = json.dumps(told)
    owner = made["metadata"]["ownerReferences"][0] | {"name": twin["name"]}
    meta = {"name": name, "labels": made["metadata"]["labels"], "annotations": notes, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": made["spec"]}


async def _loop(bench: Bench, watcher: Watcher, pods: list[Manifest], at_once: int) -> list[Seen]:
    """Keep so many pods going until all have ended; who has ended is deleted."""
    names = {pod["metadata"]["name"] for pod in pods}
    waiting, going, over = list(pods), set[str](), set[str]()
    tasks: set[asyncio.Task[Any]] = set()
    while len(over) < len(names):
        ended = {name for name in going if "ended" in watcher.pods.get(name, Seen({})).at}
        going -= ended
        over |= ended
        for name in ended:
            tasks.add(asyncio.create_task(bench.api.delete(PODS, bench.namespace, name)))
        while waiting and len(going) < at_once:
            pod = waiting.pop(0)
            going.add(pod["metadata"]["name"])
            tasks.add(asyncio.create_task(bench.api.create(PODS, bench.namespace, pod)))
        watcher.changed.clear()
        async with asyncio.timeout(300):
            await watcher.changed.wait()
    await asyncio.gather(*tasks)
    return [watcher.pods[name] for name in names]


def _verdict(seen: Seen) -> str:
    """Return what the driver of a loop's pod told: all must be verdicts, or the loop had less to do."""
    return str(json.loads(seen.message).get("status")) if seen.message else "none"


# Slots that stand empty.


def occupancy(cases: int, at_once: int, seconds: float) -> Figures:
    """Slots that are taken, over those that there are, from the first pod until no more are to be started."""
    return asyncio.run(_occupancy(cases, at_once, seconds))


async def _occupancy(cases: int, at_once: int, seconds: float) -> Figures:
    async with _watched("slots") as (bench, watcher):
        await bench.apply_run("slots", cases, seconds=seconds, parallelism=at_once)
        await bench.finished("slots")
        pods = watcher.of("slots")
    begin, end = pods[at_once - 1].at["created"], pods[-1].at["created"]
    taken = sum(max(0.0, min(seen.at["ended"], end) - max(seen.at["created"], begin)) for seen in pods)
    return {
        "cases": cases,
        "at_once": at_once,
        "case_s": seconds,
        "measured_s": end - begin,
        "occupied": taken / (at_once * (end - begin)),
    }


# One pod, by phase.


def phases(cases: int) -> Figures:
    """Milliseconds of each phase of a case pod that is alone on its node, as a watch sees them; medians."""
    return asyncio.run(_phases(cases))


async def _phases(cases: int) -> Figures:
    async with _watched("phases") as (bench, watcher):
        await bench.apply_run("phases", cases, seconds=0, parallelism=1)
        await bench.finished("phases")
        pods = watcher.of("phases")
        await until(lambda: _all_gone(pods), 60, "the pods to go")
    steps: dict[str, Any] = {
        f"{one} to {other} ms": round(_median(pods, one, other)) for one, other in pairwise(PHASES)
    }
    return {"cases": cases, **steps, "created to ended ms": round(_median(pods, "created", "ended"))}


async def _all_gone(pods: list[Seen]) -> bool:
    return all("gone" in seen.at for seen in pods)


def _median(pods: list[Seen], one: str, other: str) -> float:
    return statistics.median(_spans(pods, one, other))


def _spans(pods: list[Seen], one: str, other: str) -> Iterator[float]:
    return (1000 * (seen.at[other] - seen.at[one]) for seen in pods)
