"""The verb ``drive``: one case, from the claim to the termination message.

The order is what makes a verdict honest: claim, play, stop and await the candidate, grade, seal, tell. On SIGTERM the
process ends at once with 143 and seals nothing (``__main__``).
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import sys
import time
import traceback
from typing import Any, Mapping, Optional

from .canonical import canonical
from .connection import Connection, ConnectionLost, Refusal
from .contract import ENVIRONMENT_ERROR, JSON, Case, Limits, Pack, Verdict, check_bits
from .errors import CandidateError, EnvironmentFailure
from .judging import candidate_error_record, judge
from .runtime import Runtime
from .termination import encode_termination
from .wire import WIRE_VERSION, WireError

__all__ = ["EXIT_ENVIRONMENT", "EXIT_SEALED", "EXIT_TERMINATED", "Places", "drive"]

EXIT_SEALED = 0
EXIT_ENVIRONMENT = 3
EXIT_TERMINATED = 143
# For forcing a task, and for handing over what there is; with a pack's grace it is less than the pod's.
_LEAVE_SECONDS = 8.0
_TERMINATED = "the pod was told to end before the case was over"
_CONNECT_SECONDS = 60.0
# The recorder bounds every answer itself (its hold time is minutes); this only ends a driver whose recorder hangs.
_ANSWER_SECONDS = 7200.0


class Superseded(Exception):
    """Another attempt holds the claim or has sealed; this one has nothing more to do."""


@dataclasses.dataclass(frozen=True)
class Places:
    """Where the driver finds its peers and leaves its message; the defaults are those of a case pod."""

    evidence: str = "/casewarden/task/evidence.sock"
    environments: str = "/casewarden/env"
    termination: str = "/dev/termination-log"

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> Places:
        """Read ``CASEWARDEN_EVIDENCE_SOCKET``, ``CASEWARDEN_ENVIRONMENTS`` and ``CASEWARDEN_TERMINATION_LOG``."""
        here = cls()
        return cls(
            variables.get("CASEWARDEN_EVIDENCE_SOCKET", here.evidence),
            variables.get("CASEWARDEN_ENVIRONMENTS", here.environments),
            variables.get("CASEWARDEN_TERMINATION_LOG", here.termination),
        )


async def drive(pack: Pack, spec: str, places: Places) -> int:
    """Play the case that ``spec`` names (``CASEWARDEN_CASE``), write the termination message, return the exit code."""
    driver = _Driver(pack, places)
    driver.listen_for_the_end()
    try:
        told = await driver.run(spec)
        return EXIT_TERMINATED if driver.terminated else driver.tell(*told)
    except Superseded:
        return EXIT_TERMINATED if driver.terminated else driver.tell("superseded")
    finally:
        await driver.close()


class _Driver:
    def __init__(self, pack: Pack, places: Places) -> None:
        self._pack = pack
        self._places = places
        self._case: Optional[Case] = None
        self._connection: Optional[Connection] = None
        self._playing: Optional[Runtime] = None
        self.terminated = False

    async def run(self, spec: str) -> Any:
        """Return what ``tell`` takes: status, checks, digest, reason, error, seconds."""
        record: Optional[JSON] = None
        try:
            self._case, seed = case_of(self._pack, spec)
            runtime = await self._open(self._case, seed)
            record = await self._play(self._case, runtime)
            if self.terminated:
                raise EnvironmentFailure("Deleted", _TERMINATED)
            verdict = _judged(self._pack, self._case, record)
            if verdict.status != ENVIRONMENT_ERROR:
                return await self._seal(verdict, record)
            failure = EnvironmentFailure(verdict.reason or "Unknown", verdict.error or "the pack gave no reason")
        except EnvironmentFailure as error:
            failure = error
        print(f"casewarden: environment error: {failure}", file=sys.stderr)
        await self._abandon(failure, record)
        unassessed = "-" * len(self._case.dimensions) if self._case else ""
        return ENVIRONMENT_ERROR, unassessed, None, failure.reason, failure.message, None

    def listen_for_the_end(self) -> None:
        """Answer SIGTERM: let a pack that wants it end its case in order, with nothing sealed; else end at once."""
        loop = asyncio.get_running_loop()

        # No handler of the loop's: a pack whose code holds the loop up must be ended too.
        def terminate(*_: Any) -> None:
            if self._playing is None or not self._playing.is_heard:
                os._exit(EXIT_TERMINATED)
            self.terminated = True
            signal.signal(signal.SIGALRM, lambda *_: os._exit(EXIT_TERMINATED))
            signal.setitimer(signal.ITIMER_REAL, float(getattr(self._pack, "grace_seconds", 0.0)) + _LEAVE_SECONDS)
            loop.call_soon_threadsafe(self._playing.stop, EnvironmentFailure("Deleted", _TERMINATED))

        signal.signal(signal.SIGTERM, terminate)

    async def close(self) -> None:
        """Let the recorder see the end of the connection."""
        if self._connection is not None:
            await self._connection.close()

    def tell(
        self,
        status: str,
        checks: str = "",
        digest: Optional[str] = None,
        reason: Optional[str] = None,
        error: Optional[str] = None,
        seconds: Optional[float] = None,
    ) -> int:
        """Write the termination message and return the exit code that belongs to it."""
        with open(self._places.termination, "w", encoding="ascii") as message:
            message.write(encode_termination(status, checks, digest, reason, error, seconds))
        return EXIT_ENVIRONMENT if status == ENVIRONMENT_ERROR else EXIT_SEALED

    async def _open(self, case: Case, seed: int) -> Runtime:
        self._connection = Connection(*(await _dial(self._places.evidence)))
        hello = {"op": "hello", "v": WIRE_VERSION, "case_id": case.id, "seed": seed, "case_sha256": case.sha256}
        answer = await self._ask(hello)
        await self._ask({"op": "case"}, canonical(dict(case.content)).encode("ascii"))
        return Runtime(
            self._connection,
            tightened(self._pack.limits, answer["limits"]),
            seed,
            self._places.environments,
            str(answer.get("candidate", "program")),
        )

    async def _play(self, case: Case, runtime: Runtime) -> JSON:
        self._playing = runtime
        try:
            try:
                record = await self._pack.drive(case, runtime)
            except CandidateError as error:
                record = candidate_error_record(error)
            finally:
                self._playing = None
                await runtime.close()
            canonical(record)
        except EnvironmentFailure:
            raise
        except Exception as error:
            raise _task_failed("drive", error) from error
        return record

    async def _seal(self, verdict: Verdict, record: JSON) -> Any:
        document = verdict.to_json()
        answer = await self._ask({"op": "seal", "verdict": document}, canonical(record).encode("ascii"))
        return (
            verdict.status,
            check_bits(verdict.checks),
            answer["digest"],
            verdict.reason,
            verdict.error,
            answer["seconds"],
        )

    async def _abandon(self, failure: EnvironmentFailure, record: Optional[JSON]) -> None:
        if self._connection is None:
            return
        payload = b"" if record is None else canonical(record).encode("ascii")
        request = {"op": "abandon", "reason": failure.reason, "error": failure.message}
        try:
            await self._connection.ask(request, payload, 30.0)
        except (Refusal, ConnectionLost, WireError, asyncio.TimeoutError) as error:
            print(f"casewarden: no partial evidence was kept: {error}", file=sys.stderr)

    async def _ask(self, header: Mapping[str, Any], payload: bytes = b"") -> Mapping[str, Any]:
        assert self._connection is not None
        try:
            return (await self._connection.ask(dict(header), payload, _ANSWER_SECONDS))[0]
        except Refusal as refusal:
            if refusal.header.get("superseded") is True:
                raise Superseded from None
            raise EnvironmentFailure(refusal.reason, refusal.message) from None
        except WireError as error:
            raise EnvironmentFailure("TaskFailed", f"{header['op']}: {error}") from None
        except (ConnectionLost, asyncio.TimeoutError) as error:
            raise EnvironmentFailure("EvidenceFailed", f"the evidence sidecar is gone: {error}") from None


def case_of(pack: Pack, spec: str) -> tuple[Case, int]:
    """Return the case and seed that ``CASEWARDEN_CASE`` names; ``EnvironmentFailure`` where the pack has none such."""
    try:
        wanted = json.loads(spec)
        seed, case_id = wanted["seed"], wanted["case_id"]
        cases = pack.cases(seed, wanted.get("params", {}))
        return next(case for case in cases if case.id == case_id), seed
    except StopIteration:
        message = f"{pack.id} {pack.version} has no case {case_id!r} for seed {seed}"
        raise EnvironmentFailure("CaseMismatch", message) from None
    except Exception as error:
        raise _task_failed("the case", error) from error


def tightened(limits: Limits, answer: Mapping[str, Any]) -> Limits:
    """Return the pack's limits with what the run says in place; what only the recorder knows of is left out."""
    known = {field.name for field in dataclasses.fields(Limits)}
    return dataclasses.replace(limits, **{name: value for name, value in answer.items() if name in known})


def _judged(pack: Pack, case: Case, record: JSON) -> Verdict:
    try:
        return judge(pack, case, record)
    except Exception as error:
        raise _task_failed("grade", error) from error


def _task_failed(what: str, error: Exception) -> EnvironmentFailure:
    traceback.print_exception(type(error), error, error.__traceback__)
    return EnvironmentFailure("TaskFailed", f"{what}: {type(error).__name__}: {error}")


async def _dial(path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    until = time.monotonic() + _CONNECT_SECONDS
    while True:
        try:
            return await asyncio.open_unix_connection(path)
        except OSError as error:
            if time.monotonic() > until:
                message = f"no evidence sidecar at {path} within {_CONNECT_SECONDS:g} s: {error.strerror}"
                raise EnvironmentFailure("EvidenceFailed", message) from None
        await asyncio.sleep(0.05)


def main(pack: Pack) -> int:
    """Run ``drive`` with what the container's environment says."""
    return asyncio.run(drive(pack, os.environ["CASEWARDEN_CASE"], Places.from_environment(os.environ)))
