"""A pack out of an AgentBench environment: one case per index, scored by the task's own ``calculate_overall``."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from casewarden_sdk.canonical import canonical, sha256_bytes
from casewarden_sdk.contract import DEFAULT_KINDS, JSON, Case, Control, Limits, Verdict
from casewarden_sdk.errors import CandidateError, ContractError, EnvironmentFailure
from casewarden_sdk.runtime import Chat, Runtime

from .messages import ChatItem, SampleIndex, TaskOutput
from .overall import missing_output, overall_document, score_of, score_text
from .sample import play_sample
from .session import Session
from .task import Task
from .verdicts import early_verdict, late_verdict, output_of

__all__ = ["SOURCES", "AgentBenchPack", "case_id_of"]

_HERE = Path(__file__).parent
SOURCES: Tuple[str, ...] = tuple(
    str(_HERE / name) for name in ("messages.py", "overall.py", "pack.py", "statuses.py", "verdicts.py")
)
"""What of this package decides verdicts and scores; every pack's ``sources`` have it."""

_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_NUMBER = re.compile(r"-?[0-9]+\Z")
# The evidence sidecar keeps the time of the case; this is how much later the driver ends a task that asks nothing.
_LATE_SECONDS = 5.0


def case_id_of(index: SampleIndex) -> str:
    """Return the case id of an index; different indices have different ids, also 7 and "7"."""
    if isinstance(index, bool) or not isinstance(index, (int, str)):
        raise ContractError(f"index {index!r}: AgentBench's indices are whole numbers and texts")
    if isinstance(index, int) and index >= 0:
        return str(index)
    text = str(index)
    if isinstance(index, str) and _PLAIN.match(text) and not _NUMBER.match(text):
        return text
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:60]
    return f"{readable or 'index'}-{sha256_bytes(canonical(index).encode('ascii'))[:10]}"


class AgentBenchPack:
    """A subclass says what its environment is; see ``casewarden_sdk.contract.Pack`` for the attributes of a pack.

    It must set ``id``, ``version``, ``description``, ``contract``, ``controls``, ``score`` and ``passes``, list its own
    files in ``sources`` beside ``SOURCES``, and define ``task`` and ``passed``.
    """

    id: str
    version: str
    description: str
    contract: str
    controls: Sequence[Control]
    score: str
    """The dotted path of the score in what ``calculate_overall`` returns, ``overall.acc``."""
    passes: str
    """What ``passed`` means here, in one sentence for people."""
    dimensions: Mapping[str, str] = {"success": "1"}
    protocol: str = "chat"
    candidates: Tuple[str, ...] = ("program", "server", "model")
    aggregation: str = "agentbench/v1"
    limits: Limits = Limits(
        case_seconds=900, response_seconds=240, start_seconds=120, output_bytes=4 << 20, request_bytes=1 << 20
    )
    default_argv: Tuple[str, ...] = ("{python}", "-I", "-B", "main.py")
    sources: Tuple[str, ...] = SOURCES
    exclusions: Mapping[str, str] = {}
    kinds: Mapping[str, JSON] = DEFAULT_KINDS
    unfaulted: Mapping[str, str] = {}
    seeded: bool = False
    """Whether the samples are generated from the seed; a data set has the one seed 0."""
    blames_agent: bool = False
    """Whether what the task raises after a turn of the agent's is the agent's doing; see ``verdicts``."""
    threaded: bool = False
    """Whether the task may hold up the loop that it runs in: then it gets a thread, and none of the runtime."""
    setup_seconds: float = 300.0
    """How long a task may take until it first asks the agent."""
    grace_seconds: float = 20.0
    """How long a task has to return once it was cancelled."""

    # What an environment defines.

    def task(self, params: Mapping[str, JSON], seed: int) -> Task:
        """Make the task; ``ContractError`` naming ``spec.task.params.x`` for what is wrong with ``params``.

        Called in the plan pod, in every case's pod, and to aggregate.
        """
        raise NotImplementedError(f"{type(self).__name__} has no task")

    def content(self, task: Task, index: SampleIndex) -> Mapping[str, JSON]:
        """Return what of the sample goes into the case beside its index, so that its digest pins it: the data row."""
        return {}

    def dimensions_of(self, task: Task, index: SampleIndex) -> Tuple[str, ...]:
        """Return the dimensions that a sample checks; all of them unless a pack says otherwise."""
        return tuple(self.dimensions)

    def kind_of(self, task: Task, index: SampleIndex) -> str:
        """Return the class of containers that a sample needs."""
        return "default"

    def passed(self, case: Case, output: TaskOutput, facts: Mapping[str, JSON]) -> bool:
        """Tell whether a sample is passed; pure."""
        raise NotImplementedError(f"{type(self).__name__} does not say what passed means")

    def checks(self, case: Case, output: TaskOutput, facts: Mapping[str, JSON]) -> Mapping[str, bool]:
        """Return the check of every dimension of the case; ``passed`` for each unless a pack says otherwise; pure."""
        return dict.fromkeys(case.dimensions, bool(self.passed(case, output, facts)))

    def metrics(self, case: Case, output: TaskOutput, facts: Mapping[str, JSON]) -> Mapping[str, Any]:
        """Return a reward, an F1: numbers by name; pure."""
        return {}

    def explain(self, case: Case, output: TaskOutput, facts: Mapping[str, JSON]) -> Optional[str]:
        """Say why a sample is not passed, in one sentence for people; pure."""
        return None

    # What Casewarden asks.

    def cases(self, seed: int, params: Mapping[str, JSON]) -> Sequence[Case]:
        """Return a case per index, in the task's order."""
        if not self.seeded and seed != 0:
            raise ContractError(f"spec.seeds: {self.id} reads a data set, which has the one seed 0; got {seed}")
        with self._made(params, seed) as task:
            made = [self._case(task, index, params, seed) for index in task.get_indices()]
        twice = [name for name, count in Counter(case.id for case in made).items() if count > 1]
        if twice:
            raise ContractError(f"{self.id}: get_indices has {twice[0]!r} twice")
        if not made:
            raise ContractError(f"{self.id}: get_indices is empty: the data set has no sample")
        return made

    async def drive(self, case: Case, runtime: Runtime) -> JSON:
        """Play the sample and return the record (``sample``)."""
        with self._made(case.content["params"], case.content["task_seed"]) as task:
            conversation = _Conversation(runtime)
            session = Session(conversation.ask, case, runtime)
            runtime.on_stop(session.cancel)
            conversation.watch(session, self.setup_seconds)
            try:
                return await play_sample(
                    task, case.content["index"], session, self.grace_seconds, self.blames_agent, self.threaded
                )
            finally:
                await conversation.close()

    def grade(self, case: Case, record: JSON) -> Verdict:
        """Judge a record by the table of ``verdicts``; pure."""
        early = early_verdict(case, record)
        if early is not None:
            return early
        output, facts = output_of(record), record["facts"]
        metrics = {name: score_text(Decimal(str(value))) for name, value in self.metrics(case, output, facts).items()}
        checks = dict(self.checks(case, output, facts))
        error = None if all(checks.values()) else self.explain(case, output, facts)
        return late_verdict(case, record, checks, error, metrics)

    def aggregate(self, rows: Sequence[Mapping[str, JSON]]) -> JSON:
        """Return ``{"score", "overall"}`` over the assessed cases of a run.

        A row has ``seed``, ``repeat``, ``params``, ``index``, ``status`` (of the verdict) and ``output`` (of the
        record, null where the agent broke before there was one). Each repeat of each seed is one pass over the samples
        with a ``calculate_overall`` of its own; the score is their mean.
        """
        passes: Dict[Tuple[int, int], List[TaskOutput]] = {}
        for row in rows:
            output = TaskOutput.parse_obj(row["output"] or missing_output(row["index"]))
            passes.setdefault((row["seed"], row["repeat"]), []).append(output)
        if not passes:
            return {"score": None, "overall": overall_document([], None)}
        customs = []
        for (seed, _), outputs in sorted(passes.items()):
            with self._made(rows[0]["params"], seed) as task:
                customs.append(_plain_json(task.calculate_overall(list(outputs))))
        overall = overall_document([output for _, outputs in sorted(passes.items()) for output in outputs], customs[0])
        if len(customs) > 1:
            overall["passes"] = customs
        return {"score": score_of(customs, self.score), "overall": overall}

    @contextlib.contextmanager
    def _made(self, params: Mapping[str, JSON], seed: int) -> Any:
        # What a task prints must not get among the lines that verbs write.
        with contextlib.redirect_stdout(sys.stderr):
            task = self.task(params, seed)
            try:
                yield task
            finally:
                try:
                    task.release()
                except Exception as error:
                    sys.stderr.write(f"casewarden: release of {self.id} failed: {type(error).__name__}: {error}\n")

    def _case(self, task: Task, index: SampleIndex, params: Mapping[str, JSON], seed: int) -> Case:
        name = case_id_of(index)
        known = {"id": name, "index": index, "params": dict(params), "task_seed": seed}
        return Case(
            name, self.dimensions_of(task, index), {**self.content(task, index), **known}, self.kind_of(task, index)
        )


class _Conversation:
    """Starts the agent when it is first asked, and ends a sample whose time is over although it asks nothing."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._chat: Optional[Chat] = None
        self._session: Optional[Session] = None
        self._timer: Optional[asyncio.TimerHandle] = None

    def watch(self, session: Session, setup_seconds: float) -> None:
        """End ``session`` where the task does not ask anything for so long."""
        self._session = session
        message = f"the task asked the agent nothing within {setup_seconds:g} s"
        self._after(setup_seconds, EnvironmentFailure("TaskFailed", message))

    async def ask(self, shown: Sequence[ChatItem]) -> str:
        """Return the agent's reply to a history."""
        # From the latest turn on: a judge that the task asks between turns takes its own time, not the agent's.
        seconds = self._runtime.limits.case_seconds
        self._after(
            seconds + self._runtime.limits.start_seconds + _LATE_SECONDS,
            CandidateError("TimeLimit", f"the case took more than {seconds:g} s"),
        )
        if self._chat is None:
            self._chat = await self._runtime.chat()
        roles = {"user": "user", "agent": "assistant"}
        message = await self._chat.action([{"role": roles[item.role], "content": item.content} for item in shown])
        content = message.get("content")
        return content if isinstance(content, str) else ""

    async def close(self) -> None:
        """Stop the agent; how it ends is not held against it any more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._chat is not None:
            await self._chat.close()

    def _after(self, seconds: float, cause: Any) -> None:
        assert self._session is not None
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._session.cancel, cause)


def _plain_json(value: Any) -> JSON:
    try:
        canonical(value)
    except (TypeError, ValueError) as error:
        raise ContractError(f"calculate_overall returned what is no plain JSON: {error}") from None
    return value
