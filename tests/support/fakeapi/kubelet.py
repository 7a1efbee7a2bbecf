"""A kubelet by script: plans with a real pack, plays cases without any candidate, seals into a fake relay.

What a case comes to is asked of ``outcome``, by attempt. Like the real driver it claims before it starts, seals before
it tells, and seals nothing once it was told to stop.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

from support import pod_json as pj

from casewarden.api.attempt import TerminationMessage
from casewarden.api.names import LABEL_ROLE
from casewarden.core.model import AttemptKey, CaseKey
from casewarden.ports.evidence import MemoryEvidence
from casewarden_sdk.aggregate import aggregate_lines
from casewarden_sdk.bundle import pack_bundle
from casewarden_sdk.canonical import canonical, sha256_bytes
from casewarden_sdk.checks import mutants_of, mutated_fingerprint
from casewarden_sdk.fingerprint import grader_fingerprint
from casewarden_sdk.plan import build_plan, pack_lines, plan_lines
from casewarden_sdk.regrading import GRADE_PREFIX

from .server import FakeApi, Object

NODE = {"spec": {"nodeName": "node-1"}}
DIGEST = "ab" * 32


class Kubelet:
    """Runs every pod that the fake API server gets. Times are in seconds.

    ``control`` says instead of ``outcome`` what comes of a case where runs are of controls.
    """

    def __init__(
        self,
        api: FakeApi,
        evidence: MemoryEvidence,
        pack: Any,
        *,
        start: float = 0.005,
        work: Callable[[AttemptKey], float] = lambda key: 0.01,
        outcome: Callable[[AttemptKey], str] = lambda key: "passed",
        control: Callable[[str, AttemptKey], str] | None = None,
    ) -> None:
        self.api, self.evidence, self.pack = api, evidence, pack
        self.start, self.work, self.outcome, self.control = start, work, outcome, control
        self.claims: dict[str, str] = {}
        self.started: Counter[CaseKey] = Counter()
        self.attempts: Counter[AttemptKey] = Counter()
        self.running: set[str] = set()
        self.most_running = 0
        self.plans = self.aggregates = self.aggregates_lost = 0
        self.gradings = 0
        self.regrade: Callable[[str, dict[str, Any]], str] = lambda control, seal: seal["status"]
        self.mutant: Callable[[str, str, str, str], str] = lambda check, how, control, status: status
        self.plan_again: Callable[[dict[str, Any]], dict[str, Any]] = lambda plan: plan
        self.images = "registry.example/x@sha256:" + "1" * 64
        self.others: dict[str, str] = {}
        self._stopped: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        api.hooks.append(self._on_event)

    def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    def _on_event(self, type_: str, plural: str, item: Object) -> None:
        if plural == "pods" and type_ == "ADDED":
            roles = {"plan": self._plan, "grade": self._grade, "aggregate": self._aggregate}
            play = roles.get(item["metadata"]["labels"].get(LABEL_ROLE), self._case)
            task = asyncio.ensure_future(self._safely(play, item))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _safely(self, play: Any, pod: Object) -> None:
        try:
            await asyncio.sleep(self.start)
            await play(pod)
        except KeyError:
            return
        finally:
            self.running.discard(pod["metadata"]["uid"])

    def _set(self, pod: Object, phase: str, main: list[Object], side: list[Object] | None = None) -> None:
        """Write a status; ``KeyError`` where the pod is gone."""
        current = self.api.get("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
        if current["metadata"]["uid"] != pod["metadata"]["uid"]:
            raise KeyError
        named = {container["name"]: container["image"] for container in pod["spec"]["containers"]}
        for container in (*main, *(side or ())):
            container["imageID"] = self.others.get(named.get(container["name"], ""), self.images)
        status: Object = {"phase": phase, "startTime": pj.time(self.api.clock()), "containerStatuses": main}
        status["conditions"] = [{"type": "PodScheduled", "status": "True"}]
        if side:
            status["initContainerStatuses"] = side
        self.api.update("pods", pod["metadata"]["namespace"], pod["metadata"]["name"], {**NODE, "status": status})

    def _is_stopping(self, pod: Object) -> bool:
        if pod["metadata"]["uid"] in self._stopped:
            return True
        current = self.api.get("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
        return current["metadata"]["uid"] != pod["metadata"]["uid"] or "deletionTimestamp" in current["metadata"]

    def stop(self, pod: Object) -> None:
        """End whatever runs in a pod, as SIGTERM does: it tells nothing and seals nothing."""
        self._stopped.add(pod["metadata"]["uid"])

    async def _store_is_there(self) -> None:
        """Hold claim or seal while the relay is away, as the recorder does."""
        while self.evidence.away:
            await asyncio.sleep(0.05)

    async def _plan(self, pod: Object) -> None:
        self.plans += 1
        self._set(pod, "Running", [pj.running("plan"), pj.running("plan-again")])
        asked = json.loads(_env(pod, "plan")["CASEWARDEN_PLAN"])
        ended, now = [], self.api.clock()
        for name, change in (("plan", lambda plan: plan), ("plan-again", self.plan_again)):
            try:
                plan = change(build_plan(self.pack, asked["seeds"], asked["params"], asked["families"]))
            except ValueError as error:
                said = {"v": 1, "error": str(error), "field": "spec.task.params"}
                ended.append(pj.terminated(name, 2, message=json.dumps(said), at=now))
                continue
            text = canonical(plan)
            where = (pod["metadata"]["namespace"], pod["metadata"]["name"], name)
            self.api.logs[where] = "\n".join(["a line of noise", *plan_lines(plan)]).encode()
            said = {"v": 1, "sha256": sha256_bytes(text.encode()), "bytes": len(text)}
            ended.append(pj.terminated(name, 0, message=json.dumps(said), at=now))
        self._set(pod, "Succeeded", ended)

    async def _grade(self, pod: Object) -> None:
        """Grade what is sealed again; ``regrade`` says what comes of a case, ``mutant`` what of it under a mutation."""
        self.gradings += 1
        fetch = json.loads(_env(pod, "fetch", "initContainers")["CASEWARDEN_FETCH"])
        asked = json.loads(_env(pod, "grade")["CASEWARDEN_GRADE"])
        verdicts, found = [], []
        for uid in (run["uid"] for run in fetch["runs"]):
            control = self._control_named(pod, uid)
            for (of, seed, case, repeat), seal in sorted(self.evidence.seals.items()):
                if of == uid:
                    status = self.regrade(control, seal)
                    who = {"run": uid, "seed": seed, "case_id": case, "repeat": repeat}
                    reason = "Exited" if status == "agent_error" else None
                    verdicts.append(
                        who | {"digest": seal["digest"], "checks": {"echo": status == "passed"}, "status": status,
                               "passed": status == "passed", "error": None, "reason": reason, "metrics": {}}
                    )  # fmt: skip
                    found.append((control, who, status))
        grader = grader_fingerprint(self.pack.sources)
        document = {"v": 1, "task": {"id": self.pack.id, "version": self.pack.version}, "grader": grader}
        document["verdicts"] = verdicts
        if asked["mutants"]:
            document["mutants"] = []
            for check, how in mutants_of(list(self.pack.grader_checks)):
                judged = ((who, status, self.mutant(check, how, control, status)) for control, who, status in found)
                document["mutants"].append(
                    {"check": check, "mutation": how, "grader": mutated_fingerprint(grader, check, how),
                     "changes": [who | {"status": now, "checks": str(int(now == "passed"))}
                                 for who, before, now in judged if before != now]}
                )  # fmt: skip
        text, ended = canonical(document), []
        for name in ("grade", "grade-again"):
            where = (pod["metadata"]["namespace"], pod["metadata"]["name"], name)
            self.api.logs[where] = "\n".join(pack_lines(GRADE_PREFIX, text)).encode()
            said = {"v": 1, "sha256": sha256_bytes(text.encode()), "bytes": len(text)}
            ended.append(pj.terminated(name, 0, message=json.dumps(said), at=self.api.clock()))
        self._set(pod, "Succeeded", ended, [pj.terminated("fetch", 0, at=self.api.clock())])

    def _control_named(self, pod: Object, uid: str) -> str:
        runs = (item for item in self.api.all("evalruns") if item["metadata"]["uid"] == uid)
        return str(next(runs)["spec"]["candidate"].get("control"))

    async def _aggregate(self, pod: Object) -> None:
        """Apply the pack's own rule to what lies in the pod's ConfigMaps."""
        self.aggregates += 1
        if self.aggregates <= self.aggregates_lost:
            self.api.delete("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
            return
        packed = b""
        for source in pod["spec"]["volumes"][0]["projected"]["sources"]:
            packed += base64.b64decode(await self._mounted(pod, source["configMap"]["name"]))
        now = self.api.clock()
        try:
            text = canonical(self.pack.aggregate([json.loads(line) for line in zlib.decompress(packed).splitlines()]))
        except ValueError as error:
            said = {"v": 1, "error": str(error), "field": None}
            self._set(pod, "Failed", [pj.terminated("aggregate", 2, message=json.dumps(said), at=now)])
            return
        where = (pod["metadata"]["namespace"], pod["metadata"]["name"], "aggregate")
        self.api.logs[where] = "\n".join(["a line of noise", *aggregate_lines(text)]).encode()
        said = {"v": 1, "sha256": sha256_bytes(text.encode()), "bytes": len(text)}
        self._set(pod, "Succeeded", [pj.terminated("aggregate", 0, message=json.dumps(said), at=now)])

    async def _mounted(self, pod: Object, name: str) -> str:
        """Wait for a ConfigMap, as a kubelet does that mounts it."""
        while True:
            with contextlib.suppress(KeyError):
                found = self.api.get("configmaps", pod["metadata"]["namespace"], name)
                return str(found["binaryData"]["outputs"])
            self.api.get("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
            await asyncio.sleep(0.005)

    def _keep_bundle(self, run_uid: str, key: AttemptKey, answer: str) -> None:
        """Leave a bundle with the record of a sample of AgentBench's."""
        content = next(case.content for case in self.pack.cases(key.case.seed, {}) if case.id == key.case.case_id)
        output = {"index": content["index"], "status": "completed", "result": {"answer": answer, "gold": "passed"}}
        record = {"output": {**output, "history": []}}
        files = {"case.json": canonical(dict(content)).encode(), "record.json": canonical(record).encode()}
        self.evidence.bundles[run_uid, str(key), False] = (DIGEST, pack_bundle(files, lambda data: data))

    async def _case(self, pod: Object) -> None:
        told = json.loads(_env(pod, "evidence", "initContainers")["CASEWARDEN_ATTEMPT"])
        key = AttemptKey(CaseKey(told["seed"], told["case_id"], told["repeat"]), told["attempt"])
        uid = pod["metadata"]["uid"]
        await self._store_is_there()
        if self._is_stopping(pod):
            return
        self.attempts[key] += 1
        sealed = (told["run_uid"], told["seed"], told["case_id"], told["repeat"]) in self.evidence.seals
        if sealed or self.claims.setdefault(f"{told['run_uid']}/{key}", uid) != uid:
            self._end(pod, TerminationMessage(status="superseded").format(), 0)
            return
        self.running.add(uid)
        self.most_running = max(self.most_running, len(self.running))
        self.started[key.case] += 1
        self._set(pod, "Running", [pj.running("candidate"), pj.running("task")], [pj.running("evidence")])
        await asyncio.sleep(self.work(key))
        status = self.outcome(key) if self.control is None else self.control(self._control_of(pod), key)
        await self._store_is_there()
        if self._is_stopping(pod) or status == "lost":
            return
        self.running.discard(uid)
        if status == "environment_error":
            self._end(pod, pj.told(status, "-", None, reason="TaskFailed", error="told to"), 3)
            return
        if hasattr(self.pack, "aggregate"):
            self._keep_bundle(told["run_uid"], key, status)
        seal = {name: told[name] for name in ("run_uid", "seed", "case_id", "repeat", "attempt")}
        checks = "1" if status == "passed" else "0"
        reason = {"reason": "Exited"} if status == "agent_error" else {}
        self.evidence.seal(
            seal | {"v": 1, "pod_uid": uid, "digest": DIGEST, "status": status, "checks": checks, "error": None}
            | {"reason": None, "seconds": 0.5} | reason
        )  # fmt: skip
        self._end(pod, pj.told(status, checks, DIGEST, seconds=0.5, **reason), 0)

    def _control_of(self, pod: Object) -> str:
        """Which control of an audit a case pod runs."""
        (owner,) = pod["metadata"]["ownerReferences"]
        run = self.api.get("evalruns", pod["metadata"]["namespace"], owner["name"])
        return str(run["spec"]["candidate"].get("control"))

    def _end(self, pod: Object, message: str, code: int) -> None:
        now = self.api.clock()
        ended = [pj.terminated("candidate", 0, at=now), pj.terminated("task", code, message=message, at=now)]
        self._set(pod, "Succeeded" if code == 0 else "Failed", ended, [pj.terminated("evidence", 0, at=now)])


def _env(pod: Object, container: str, kind: str = "containers") -> dict[str, str]:
    found = next(item for item in pod["spec"][kind] if item["name"] == container)
    return {item["name"]: item.get("value", "").replace("$$", "$") for item in found["env"]}
