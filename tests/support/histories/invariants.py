"""What must be true after every single step of a history, whatever befell it, and what at its end."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from typing import Any

from support.fakeapi.parts import Address, Object

from casewarden.api.conditions import is_true

DONE = ("passed", "failed", "agentErrors", "environmentErrors")
Key = tuple[int, str, int]
# As long as a request to stop a pod may be under way.
STOP_SECONDS = 60.0


class Violation(AssertionError):
    """An invariant does not hold; the message says which, and when."""


class Invariants:
    """Watches the fake API server's every write and the operator's every request. The first violation is kept."""

    def __init__(self, world: Any, parallelism: int, *, enabled: bool = True) -> None:
        self.world, self.enabled = world, enabled
        self.limit = parallelism
        self.found: Violation | None = None
        self._status: Object = {}
        self._batches: dict[tuple[str, str], str] = {}
        self._done = 0
        self._over_since: dict[str, float] = {}
        self.ran: Counter[tuple[Key, int]] = Counter()

    def check(self, holds: object, what: str) -> None:
        """Keep the first thing that does not hold: what raises in a hook would only look like a server's fault."""
        if not holds and self.found is None:
            self.found = Violation(f"at {self.world.seconds():.3f} s: {what}")

    # After every write.

    def wrote(self, type_: str, plural: str, item: Object) -> None:
        """Look at one write to the API server."""
        if plural == "evalruns" and type_ != "DELETED":
            self._look_at_run(item)
        elif plural == "configmaps" and _role(item) == "ledger":
            self._look_at_ledger(type_, item)
        elif plural == "pods" and type_ == "ADDED" and _role(item) == "case":
            self._look_at_parallelism()
        if plural == "pods" and _over(item):
            self._over_since.setdefault(item["metadata"]["uid"], self.world.seconds())

    def _look_at_run(self, item: Object) -> None:
        meta, status = item["metadata"], item.get("status") or {}
        self.check(not meta.get("finalizers"), "the run has a finalizer")
        if not status:
            return
        was_over = is_true(self._status.get("conditions") or (), "Finished")
        changed = [name for name in {**status, **self._status} if status.get(name) != self._status.get(name)]
        self.check(not was_over or not changed, f"of the status of a finished run changed {changed}")
        counts = status.get("cases") or {}
        if counts:
            parts = sum(counts.get(name, 0) for name in ("pending", "running", "excluded", *DONE))
            self.check(parts == counts["total"], f"counts do not sum to the total: {counts}")
            done = sum(counts[name] for name in DONE)
            self.check(done >= self._done, f"finished counts fell from {self._done} to {done}")
            self._done = done
        score = status.get("score")
        self.check(score is None or status.get("valid") is True, "a score without being valid")
        if self._status.get("seeds"):
            self.check(status.get("seeds") == self._status["seeds"], "the seeds changed")
        rows = (status.get("ledger") or {}).get("rows", 0)
        self.check(
            self.world.tampered or rows <= len(self.world.rows()),
            f"the status counts {rows} rows, the ledger has fewer",
        )
        self._status = status

    def _look_at_ledger(self, type_: str, item: Object) -> None:
        name = item["metadata"]["name"]
        if type_ == "DELETED":
            self.check(self.world.tampered, "a shard of the ledger was deleted")
            self._batches = {key: text for key, text in self._batches.items() if key[0] != name}
            return
        for key, text in item["data"].items():
            before = self._batches.setdefault((name, key), text)
            self.check(before == text, f"{name}/{key} was written a second time")
        gone = [key for key in self._batches if key[0] == name and key[1] not in item["data"]]
        self.check(not gone, f"rows vanished: {gone}")
        rows = self.world.rows()
        attempts = Counter((row["seed"], row["case_id"], row["repeat"], row["attempt"]) for row in rows)
        twice = [key for key, count in attempts.items() if count > 1]
        self.check(not twice, f"attempts with two rows: {twice}")
        verdicts = Counter(_key(row) for row in rows if row["kind"] == "verdict")
        self.check(all(count == 1 for count in verdicts.values()), f"two verdicts count: {verdicts}")
        for row in rows:
            seal = self.world.seal(_key(row))
            if row["kind"] == "verdict" and row["digest"] is not None:
                self.check(seal is not None, f"a verdict of {_key(row)} that was not sealed")
                same = seal is not None and (row["status"], row["digest"]) == (seal["status"], seal["digest"])
                self.check(same, f"the verdict of {_key(row)} is not the first that was sealed")

    def _look_at_parallelism(self) -> None:
        # One whose row is written, or that no kubelet ended at its deadline, was given up: its node is lost.
        recorded = {(*_key(row), row["attempt"]) for row in self.world.rows()}
        alive = [
            pod
            for pod in self.world.pods()
            if not _over(pod)
            and _attempt(pod) not in recorded
            and self.world.age(pod) < pod["spec"]["activeDeadlineSeconds"]
        ]
        # A create that a dead operator sent may land late, and nobody alive can know of it.
        allowed = self.limit + self.world.strays
        self.check(len(alive) <= allowed, f"{len(alive)} pods live where {allowed} may")

    # Before every request.

    def asked(self, method: str, address: Address) -> None:
        """Look at one request of the operator's."""
        if method != "DELETE" or address.plural != "pods" or not self.enabled:
            return
        pod = self.world.api.objects.get(("pods", address.namespace, address.name))
        if pod is None or _role(pod) != "case" or not _over(pod) or self._is_finished():
            return
        if self._over_since.get(pod["metadata"]["uid"], 0.0) <= self.world.suspended_until + STOP_SECONDS:
            # A suspended run stops what runs, and this one came to its end on the way.
            return
        *case, attempt = _attempt(pod)
        key = tuple(case)
        rows = [row for row in self.world.rows() if _key(row) == key]
        known = any(row["attempt"] == attempt or row["kind"] == "verdict" for row in rows)
        self.check(known, f"the ended pod of {key} attempt {attempt} is deleted before its row is written")

    def started(self, key: Key, attempt: int) -> None:
        """Look at a candidate that starts now."""
        if not self.enabled:
            return
        self.ran[key, attempt] += 1
        self.check(self.ran[key, attempt] == 1, f"attempt {attempt} of {key} ran twice")
        self.check(self.world.seal(key) is None, f"{key} runs again after it was sealed")

    def _is_finished(self) -> bool:
        # Then the rows are closed, and what is left of pods is cleared away.
        return is_true(self._status.get("conditions") or (), "Finished")

    # At the end.

    def at_the_end(self, cases: int) -> None:
        """Hold what must be true when the run is over and nothing moves any more."""
        if not self.enabled:
            return
        status, rows = self.world.status(), self.world.rows()
        conditions = {item["type"]: item for item in status["conditions"]}
        verdicts = {_key(row): row for row in rows if row["kind"] == "verdict"}
        self.check(not self.world.pods(), "pods are left")
        self.check(status["attempts"]["total"] == len(rows), "attempts and rows differ")
        if conditions["Failed"]["status"] == "True":
            reason = conditions["Failed"]["reason"]
            self.check(reason in self.world.may_fail, f"the run failed for {reason}: {conditions['Failed']['message']}")
            self.check("score" not in status, "a failed run has a score")
            return
        self.check(status["progress"] == f"{cases}/{cases}", f"progress {status['progress']} at the end")
        for key in self.world.cases():
            seal = self.world.seal(key)
            if seal is not None:
                self.check(key in verdicts, f"the seal of {key} is not counted")
        passed = sum(row["status"] == "passed" for row in verdicts.values())
        if len(verdicts) == cases:
            self.check(status["valid"] is True, "every case has a verdict, and the run is not valid")
            right = Decimal(passed) / Decimal(cases)
            self.check(abs(Decimal(status["score"]) - right) < Decimal("1e-7"), f"score {status['score']} for {right}")
        else:
            self.check("score" not in status, "a score although cases were not assessed")


def _role(item: Object) -> str:
    return str((item["metadata"].get("labels") or {}).get("casewarden.dev/role", ""))


def _over(pod: Object) -> bool:
    return pod["status"]["phase"] in ("Succeeded", "Failed")


def _attempt(pod: Object) -> tuple[int, str, int, int]:
    notes = {name.removeprefix("casewarden.dev/"): text for name, text in pod["metadata"]["annotations"].items()}
    return int(notes["seed"]), notes["case"], int(notes["repeat"]), int(notes["attempt"])


def _key(row: dict[str, Any]) -> Key:
    return row["seed"], row["case_id"], row["repeat"]


def read_rows(shards: list[Object]) -> list[dict[str, Any]]:
    """Return every row of a ledger, in order."""
    ordered = sorted(shards, key=lambda item: int(item["metadata"]["name"].rpartition("-")[2]))
    return [
        json.loads(line) for item in ordered for key in sorted(item["data"]) for line in item["data"][key].splitlines()
    ]
