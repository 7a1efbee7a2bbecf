"""How a run gets the score of its task's own rule: all outputs from the relay, a pod that is given them, three files.

Everything is made anew from the ledger and the store, so that a restart in the middle changes nothing.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import zlib
from collections.abc import Mapping
from typing import Any, Final

from casewarden.api.reasons import RunReason
from casewarden.controller.ended import Ended, guarded
from casewarden.controller.hands import Hands
from casewarden.controller.plans import LOG_BYTES
from casewarden.controller.services import Services
from casewarden.controller.state import RunState
from casewarden.core import facts
from casewarden.core.agentbench import assessed_lines, outcome_row, own_files, own_score, places, read_aggregate
from casewarden.core.aggregate_pod import AGGREGATE, aggregate_pod
from casewarden.core.bundle_check import strict_json
from casewarden.core.model import CaseKey, LedgerRow, PodRecord
from casewarden.core.policies.pending import pending
from casewarden.core.run_conditions import Why
from casewarden.core.scoring import OwnScore
from casewarden.core.tally import tally
from casewarden.ports.kube import CONFIG_MAPS, PODS, AlreadyExists, Conflict, Forbidden, Kind, Manifest, NotFound
from casewarden_sdk.aggregate import read_aggregate_lines
from casewarden_sdk.canonical import sha256_bytes

__all__ = ["Aggregating"]

log = logging.getLogger(__name__)
_AT_ONCE: Final = 8
_TRIES: Final = 3
_PART_BYTES: Final = 700 << 10
# Of all outputs with their histories, as JSON; the operator holds them once.
_MOST_BYTES: Final = 96 << 20
_LOOK_SECONDS: Final = 10.0
_QUOTA_SECONDS: Final = 5.0


def _as_it_is(archive: bytes, limit: int) -> bytes:
    """Take an archive that the port has unpacked already."""
    return archive


class Aggregating:
    """Aggregates one run."""

    def __init__(self, services: Services, state: RunState, hands: Hands) -> None:
        self._services, self._state, self._hands = services, state, hands

    async def aggregate(self) -> OwnScore | None:
        """Write the files and return the score; None where nothing was played. ``Ended`` where there can be none."""
        state = self._state
        if state.plan is None or state.spec is None or state.context is None:
            raise RuntimeError("a run is aggregated before it was planned")
        counted = tally(state.plan, state.spec.repeats, state.ledger.rows, state.policy(None))
        if not counted.settled:
            return None
        rows = await self._rows({key: counted.settled[key] for key, _ in counted.cases if key in counted.settled})
        lines = assessed_lines(rows)
        if len(lines) > _MOST_BYTES:
            raise self._failed(f"the outputs of all cases have {len(lines)} bytes; {_MOST_BYTES} is the most")
        score, overall = await self._ask(zlib.compress(lines, 6), bool(lines))
        files = own_files(rows, overall)
        for name, data in files.items():
            await self._hands.evidence(lambda name=name, data=data: self._put(name, data))  # type: ignore[misc]
        return own_score(score, files)

    async def _put(self, name: str, data: bytes) -> None:
        await self._services.evidence.put_file(self._state.run.uid, name, data)

    async def _rows(self, settled: Mapping[CaseKey, LedgerRow]) -> list[dict[str, Any]]:
        evidence, uid = self._services.evidence, self._state.run.uid
        found = places(await self._hands.evidence(lambda: evidence.index(uid)), settled)
        at_once = asyncio.Semaphore(_AT_ONCE)
        params = self._state.plan.plan.params if self._state.plan is not None else {}

        async def row_of(key: CaseKey, row: LedgerRow) -> dict[str, Any]:
            place, bundle = found.get(key), None
            if place is not None:
                async with at_once:
                    bundle = await evidence.bundle(uid, str(place.attempt), partial=place.partial)
            if row.digest is not None and (bundle is None or bundle[0] != row.digest):
                raise self._failed(f"the bundle of case {key} is not the one that was counted")
            try:
                archive = None if bundle is None else bundle[1]
                return await asyncio.to_thread(outcome_row, key, row, params, archive, _as_it_is)
            except ValueError as error:
                raise self._failed(f"the bundle of case {key}: {error}") from None

        async def all_rows() -> list[dict[str, Any]]:
            return list(await asyncio.gather(*(row_of(key, row) for key, row in settled.items())))

        return await self._hands.evidence(all_rows)

    async def _ask(self, packed: bytes, any_assessed: bool) -> tuple[str | None, dict[str, Any]]:
        why = ""
        try:
            for attempt in range(1, _TRIES + 1):
                pod = await self._play(packed, attempt)
                ended = pod.container(AGGREGATE) if pod is not None else None
                if pod is None or ended is None or ended.state != "terminated" or facts.was_deleted(pod):
                    why = "its pod was interrupted"
                    continue
                if ended.exit_code != 0:
                    said = ended.message.strip() or ended.reason or "it said nothing"
                    raise self._failed(f"the task's aggregate ended with exit code {ended.exit_code}: {said[-400:]}")
                return await self._read(pod, ended.message, any_assessed)
            raise self._failed(f"the task's aggregate came to nothing in {_TRIES} tries: {why}")
        finally:
            await self._clear()

    async def _play(self, packed: bytes, attempt: int) -> PodRecord | None:
        """Create the pod and wait until it has ended; None where it was gone before it did."""
        name = await self._created(packed, attempt)
        expected = self._services.clock.now() + _LOOK_SECONDS
        while True:
            now = self._services.clock.now()
            pod = next((item for item in self._services.pods.pods(self._state.run.uid) if item.name == name), None)
            if pod is None and now >= expected:
                return None
            if pod is not None:
                ended = pod.container(AGGREGATE)
                over = pod.phase in ("Succeeded", "Failed") or (ended is not None and ended.state == "terminated")
                lost = facts.will_end(pod)
                if over or pod.deleted_at is not None or (lost is not None and now >= lost):
                    return pod
                slow = pending(pod, self._hands.policy(), ())
                if slow is not None and slow.is_given_up(now):
                    raise self._failed(f"its pod cannot start: {slow.trouble.reason}: {slow.trouble.detail}")
            await self._hands.rest(now + (0.5 if pod is None else _LOOK_SECONDS))

    async def _created(self, packed: bytes, attempt: int) -> str:
        """Create the pod, then its input, which goes with it: the operator deletes no ConfigMaps."""
        run, context = self._state.run, self._state.context
        assert context is not None
        parts = [packed[start : start + _PART_BYTES] for start in range(0, len(packed), _PART_BYTES)]
        bodies = [
            run.config_map(
                f"outputs-{attempt}-{number}",
                "planned",
                immutable=True,
                binaryData={"outputs": base64.b64encode(part).decode("ascii")},
            )
            for number, part in enumerate(parts)
        ]
        manifest = aggregate_pod(context, [body["metadata"]["name"] for body in bodies], attempt)
        name = str(manifest["metadata"]["name"])
        pod = await self._make(PODS, manifest)
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"]}
        for body in bodies:
            body["metadata"]["ownerReferences"] = [owner]
            await self._make(CONFIG_MAPS, body)
        return name

    async def _make(self, kind: Kind, body: Manifest) -> Manifest:
        """Create an object, or take the one that is there; a quota that is spent is waited for, as a pod's start is."""
        api, namespace, now = self._services.api, self._state.run.namespace, self._services.clock.now
        give_up = now() + self._hands.policy().pending_seconds
        while True:
            try:
                made = await guarded(api.create(kind, namespace, body))
                self._state.wait = None
                return made
            except AlreadyExists:
                self._services.poke()
                return await api.get(kind, namespace, str(body["metadata"]["name"]))
            except Forbidden as error:
                if now() >= give_up:
                    raise self._failed(f"there is no room for what it needs: {error.message}") from None
                self._state.wait = Why(RunReason.QUOTA_EXCEEDED, error.message)
            await self._hands.rest(now() + _QUOTA_SECONDS)

    async def _read(self, pod: PodRecord, message: str, any_assessed: bool) -> tuple[str | None, dict[str, Any]]:
        text = await self._services.api.pod_log(pod.namespace, pod.name, AGGREGATE, LOG_BYTES)
        try:
            made = read_aggregate_lines(text.decode("utf-8", "replace").splitlines())
            if sha256_bytes(made.encode("ascii")) != strict_json(message.encode()).get("sha256"):
                raise ValueError("what was read has not the digest that the pod told")
            return read_aggregate(strict_json(made.encode()), any_assessed=any_assessed)
        except (ValueError, AttributeError) as error:
            raise self._failed(f"what the task's aggregate wrote cannot be read: {error}") from None

    async def _clear(self) -> None:
        api, run = self._services.api, self._state.run
        for pod in self._services.pods.pods(run.uid):
            if pod.role == AGGREGATE:
                with contextlib.suppress(NotFound, Conflict):
                    await api.delete(PODS, pod.namespace, pod.name, uid=pod.uid)

    def _failed(self, why: str) -> Ended:
        log.warning("run %s: no score of its own: %s", self._state.run, why)
        return Ended.failed(RunReason.AGGREGATE_FAILED, why)
