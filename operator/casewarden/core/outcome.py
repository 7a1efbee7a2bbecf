"""Who caused it: the one closed table that says what an attempt came to.

The question in each row is whether the candidate could have caused the fact. Then it is the candidate's and assessed;
else it is the environment's, and tried again within a budget. The first row that matches wins. Much of rows 2 to 5 is
seen inside the pod and arrives sealed, which is row 1; the operator asks those rows only of a pod that sealed nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from casewarden.api.attempt import BadMessageError, TerminationMessage, cut_utf8
from casewarden.api.names import CANDIDATE, EVIDENCE
from casewarden.api.reasons import AttemptReason, RunReason
from casewarden.core import facts
from casewarden.core.model import PodRecord, Sealed

__all__ = [
    "TABLE",
    "Budget",
    "Context",
    "Kind",
    "Outcome",
    "Row",
    "as_markdown",
    "classify",
    "clean",
    "run_reasons",
    "told",
]

Kind = Literal["verdict", "environment", "interruption", "suspended"]
Budget = Literal["none", "environment", "interruption"]
MAX_ERROR_BYTES: Final = 300


@dataclass(frozen=True, slots=True)
class Context:
    """What is known of an attempt beside its pod.

    ``stopped`` is why the run itself had the pod deleted (``Suspended``, or the reason for which the run fails), None
    where it did not. ``given_up`` is the trouble for which waiting for the pod to start was ended. ``superfluous`` says
    that the case was settled without this attempt. ``width`` is how many dimensions the case checks, None if unknown.
    """

    now: float = 0.0
    stopped: str | None = None
    given_up: facts.Trouble | None = None
    superfluous: bool = False
    width: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attempt came to: the fields of its ledger row, the budget that it draws on and the row that said so."""

    kind: Kind
    status: str
    reason: str | None
    budget: Budget
    error: str | None = None
    sealed: Sealed | None = None
    row: int = 0


@dataclass(frozen=True, slots=True)
class _Ended:
    """One attempt that is over, with all that the rows may ask of."""

    pod: PodRecord | None
    sealed: Sealed | None
    message: TerminationMessage | None
    context: Context

    @property
    def disturbed(self) -> bool:
        """Tell whether the pod as a whole was stopped, so that what its containers did says nothing."""
        pod = self.pod
        return (
            pod is None
            or facts.disruption(pod, self.context.now) is not None
            or facts.was_deleted(pod)
            or facts.was_told_to_stop(pod)
            or facts.past_deadline(pod)
            or self.context.stopped is not None
        )


# What a predicate answers: nothing, or the reason and the words for people.
_Found = tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table. ``find`` is None where the operator never sees the fact by itself; ``seen`` says who does."""

    number: int
    fact: str
    kind: Kind | None
    status: str | None
    budget: Budget
    reasons: tuple[str, ...]
    seen: str
    find: Callable[[_Ended], _Found] | None = None


def _message_of(pod: PodRecord | None) -> TerminationMessage | None:
    task = facts.task_of(pod) if pod is not None else None
    if task is None or not task.message:
        return None
    try:
        return TerminationMessage.parse(task.message)
    except BadMessageError:
        return None


def told(pod: PodRecord, attempt: int, width: int | None = None) -> Sealed | None:
    """Return the sealed verdict that the pod's termination message tells of, or None where the store must be asked.

    A claim counts only when its checksum is right, the task exited 0 and the checks are the case's: the driver exits 0
    when its seal was accepted and in no other case, and the kubelet cuts long messages silently.
    """
    task, message = facts.task_of(pod), _message_of(pod)
    if task is None or task.exit_code != 0 or message is None or message.digest is None:
        return None
    if message.status not in ("passed", "failed", "agent_error"):
        return None
    if width is not None and len(message.checks) != width:
        return None
    return Sealed(
        attempt, pod.uid, message.digest, message.status, message.checks, message.reason, message.error, message.seconds
    )


def _candidate_over_its_limits(ended: _Ended) -> _Found:
    pod = ended.pod
    if pod is None:
        return None
    culprit = facts.storage_culprit(pod)
    if culprit is not None and culprit[0] == "candidate":
        return AttemptReason.STORAGE_LIMIT, culprit[1]
    killed = facts.is_oom_killed(pod.container(CANDIDATE)) and not facts.never_played(pod)
    if killed and not ended.disturbed:
        return AttemptReason.OOM_KILLED, "the candidate went over its memory limit and its container was killed"
    return None


def _candidate_container_failed(ended: _Ended) -> _Found:
    pod = ended.pod
    if pod is None or ended.disturbed:
        return None
    candidate = pod.container(CANDIDATE)
    if candidate is None or not facts.is_shim_killed(pod, candidate) or facts.never_played(pod):
        return None
    return AttemptReason.SHIM_LOST, f"its container ended with exit code {candidate.exit_code} before the case did"


def _sandbox_overfilled(ended: _Ended) -> _Found:
    culprit = facts.storage_culprit(ended.pod) if ended.pod is not None else None
    return (AttemptReason.SANDBOX_KILLED, culprit[1]) if culprit is not None and culprit[0] == "sandbox" else None


def _stopped_by_the_cluster(ended: _Ended) -> _Found:
    pod = ended.pod
    reason = facts.disruption(pod, ended.context.now) if pod is not None else None
    if pod is None or reason is None:
        return None
    said = pod.message or next((item.message for item in pod.conditions if item.type == "DisruptionTarget"), "")
    return reason, said or pod.reason or "the pod's node is not heard from any more"


def _is_gone(ended: _Ended) -> bool:
    """Tell whether the pod was deleted before its task ended, and not for what had become of it."""
    if ended.pod is not None and facts.was_forsaken(ended.pod):
        return False
    if ended.pod is None or facts.was_deleted(ended.pod):
        return True
    # What was last seen of a pod that vanished may well be that it ran.
    return ended.context.given_up is None and not facts.has_ended(ended.pod, ended.context.now)


def _stopped_by_the_run(ended: _Ended) -> _Found:
    stopped = ended.context.stopped
    if stopped is None or not _is_gone(ended):
        return None
    if stopped == AttemptReason.SUSPENDED:
        return stopped, "the run was suspended"
    return stopped, f"the run was stopped: {stopped}"


def _deleted(ended: _Ended) -> _Found:
    if ended.message is not None and ended.message.status == "superseded":
        return AttemptReason.SUPERSEDED, "its claim was lost to an earlier pod of the attempt, which sealed nothing"
    return (AttemptReason.DELETED, "the pod was deleted before its case ended") if _is_gone(ended) else None


def _service_away(ended: _Ended) -> _Found:
    message = ended.message
    if message is None or message.reason not in (AttemptReason.MODEL_UNAVAILABLE, AttemptReason.STORE_UNAVAILABLE):
        return None
    return message.reason, message.error or "it was away for longer than the pod may wait"


_OWN_FAILURES = (
    AttemptReason.EVIDENCE_FAILED, AttemptReason.TASK_FAILED, AttemptReason.ENVIRONMENT_FAILED,
    AttemptReason.CASE_MISMATCH,
)  # fmt: skip


def _own_container_failed(ended: _Ended) -> _Found:
    pod = ended.pod
    if pod is None or ended.context.given_up is not None or _certain_trouble(pod) is not None:
        return None
    if ended.message is not None and ended.message.reason in _OWN_FAILURES:
        words = [ended.message.error or "the driver gave the case up"]
        if ended.message.reason == AttemptReason.EVIDENCE_FAILED and (why := _how_evidence_ended(pod)):
            # The driver sees no more than that the recorder is gone.
            words.append(why)
        return ended.message.reason, "; ".join(words)
    if facts.past_deadline(pod):
        return AttemptReason.TASK_FAILED, pod.message or "the pod was stopped at its deadline and had sealed nothing"
    if why := _how_evidence_ended(pod):
        return AttemptReason.EVIDENCE_FAILED, why
    for container in pod.containers:
        if container.name.startswith(facts.ENVIRONMENT_PREFIX) and facts.ended_by_itself(pod, container):
            why = f"{container.name} ended with exit code {container.exit_code} {container.reason}".rstrip()
            return AttemptReason.ENVIRONMENT_FAILED, why
    if ended.message is not None:
        # It gave the case up in good order, for a reason of which the table knows nothing.
        return None
    task = facts.task_of(pod)
    # 143 is the driver that was told to stop, by whom is not known here.
    if task is not None and task.exit_code not in (0, facts.STOPPED, None) and task.reason != "ContainerStatusUnknown":
        return AttemptReason.TASK_FAILED, f"the driver ended with exit code {task.exit_code} {task.reason}".rstrip()
    candidate = pod.container(CANDIDATE)
    if candidate is not None and facts.never_played(pod):
        how = f"exit code {candidate.exit_code} {candidate.reason}".rstrip()
        return AttemptReason.EVIDENCE_FAILED, f"the candidate's container ended with {how} before anything ran in it"
    return None


def _how_evidence_ended(pod: PodRecord) -> str | None:
    evidence = pod.container(EVIDENCE)
    if evidence is None or evidence.reason == "ContainerStatusUnknown":
        return None
    if facts.ended_by_itself(pod, evidence):
        return f"the evidence sidecar ended with exit code {evidence.exit_code} {evidence.reason}".rstrip()
    if evidence.restarts:
        return (
            f"the evidence sidecar was started {evidence.restarts + 1} times; "
            f"its last exit code was {evidence.last_exit_code} {evidence.last_reason}".rstrip()
        )
    return None


def _certain_trouble(pod: PodRecord) -> facts.Trouble | None:
    trouble = facts.start_trouble(pod)
    return trouble if trouble is not None and trouble.certain else None


def _could_not_start(ended: _Ended) -> _Found:
    trouble = ended.context.given_up or (_certain_trouble(ended.pod) if ended.pod is not None else None)
    return (trouble.reason, trouble.detail) if trouble is not None else None


def _anything_else(ended: _Ended) -> _Found:
    if ended.message is not None and ended.message.error:
        return AttemptReason.UNKNOWN, f"{ended.message.reason}: {ended.message.error}"
    pod = ended.pod
    phase = f"the pod ended {pod.phase} {pod.reason}".rstrip() if pod is not None else "nothing is known of the pod"
    return AttemptReason.UNKNOWN, f"{phase} and sealed nothing"


def _budget_spent(ended: _Ended) -> _Found:
    message = ended.message
    if message is None or message.reason != RunReason.BUDGET_SPENT:
        return None
    return message.reason, message.error or "the run's budget is spent"


_R = AttemptReason
_IN_POD = "the recorder, in the pod; it is sealed"
_BOTH = "the recorder, in the pod, and sealed; the operator, of a pod that sealed nothing"
_OPERATOR = "the operator, from the pod"
TABLE: Final[tuple[Row, ...]] = (
    Row(
        1,
        "a sealed verdict exists: the pod told of it with a right checksum and exit code 0, or the store was asked "
        "when the pod had ended or vanished",
        "verdict", None, "none", (), "the store",
    ),
    Row(
        2,
        "the candidate went over its time, actions, tokens, output or processes; over its own memory limit; over its "
        "own volume or ephemeral storage, also as an eviction whose message names them",
        "verdict", "agent_error", "none",
        (
            _R.TIME_LIMIT, _R.ACTION_LIMIT, _R.TOKEN_LIMIT, _R.OUTPUT_LIMIT, _R.PROCESS_LIMIT, _R.OOM_KILLED,
            _R.STORAGE_LIMIT,
        ),
        _BOTH, _candidate_over_its_limits,
    ),
    Row(
        3,
        "the candidate exited, whatever its code, broke the protocol or has a command that cannot be started; its "
        "server failed after being ready or never became ready; the connection to its shim was lost, or its container "
        "failed, with no pod-level disruption",
        "verdict", "agent_error", "none",
        (_R.EXITED, _R.PROTOCOL, _R.CANNOT_START_PROGRAM, _R.SERVER_ERROR, _R.NOT_READY, _R.SHIM_LOST),
        _BOTH, _candidate_container_failed,
    ),
    Row(
        4,
        "an environment container died after the agent's first action, with no pod-level disruption; or its storage is "
        "what an eviction names",
        "verdict", "agent_error", "none", (_R.SANDBOX_KILLED,), _BOTH, _sandbox_overfilled,
    ),
    Row(
        5,
        "the model refused with a context limit, a policy, or a bad request",
        "verdict", "agent_error", "none", (_R.CONTEXT_LIMIT, _R.REFUSED_BY_MODEL, _R.BAD_REQUEST), _IN_POD,
    ),
    Row(
        6,
        "the pod was evicted by node pressure or drained, preempted, or its node was lost",
        "environment", "environment_error", "environment", (_R.EVICTED, _R.PREEMPTED, _R.NODE_LOST),
        _OPERATOR, _stopped_by_the_cluster,
    ),
    Row(
        7,
        "the run itself stopped the pod: it was suspended, or it failed",
        "suspended", "environment_error", "none", (_R.SUSPENDED,), _OPERATOR, _stopped_by_the_run,
    ),
    Row(
        7,
        "the pod was deleted by someone; its claim was lost to an earlier pod of the same attempt that nobody saw end; "
        "its case was settled without it",
        "interruption", "environment_error", "interruption", (_R.DELETED, _R.SUPERSEDED), _OPERATOR, _deleted,
    ),
    Row(
        8,
        "the model's endpoint answered 429 or 5xx or not at all for longer than the relay retries; a model that the "
        "task asks failed in any way; relay or store were away for longer than a finished verdict is held",
        "environment", "environment_error", "environment", (_R.MODEL_UNAVAILABLE, _R.STORE_UNAVAILABLE),
        "the driver, in its termination message", _service_away,
    ),
    Row(
        9,
        "the sidecar or the task failed, or the candidate's container before anything ran in it, or an environment "
        "container before any action of the agent, or the pod passed its deadline",
        "environment", "environment_error", "environment", _OWN_FAILURES,
        "the driver, in its termination message; the operator, from the pod", _own_container_failed,
    ),
    Row(
        10,
        "an image cannot be pulled, a container cannot be created or started, or no node fits, until `pendingSeconds`: "
        "the run fails before more cases are burnt",
        "environment", "environment_error", "none",
        (RunReason.IMAGE_PULL, RunReason.CANNOT_START, RunReason.UNSCHEDULABLE), _OPERATOR, _could_not_start,
    ),
    Row(
        10,
        "the run's budget for its model has no room for the next call: the run fails before more is spent",
        "environment", "environment_error", "none", (RunReason.BUDGET_SPENT,),
        "the driver, in its termination message", _budget_spent,
    ),
    Row(
        11,
        "the API server refuses the pod: an exceeded quota waits, a namespace that is being deleted abandons the run, "
        "anything else (LimitRange, Pod Security, RBAC) fails it",
        None, None, "none",
        (RunReason.QUOTA_EXCEEDED, RunReason.NAMESPACE_TERMINATING, RunReason.REFUSED),
        "the operator, when it creates the pod",
    ),
    Row(
        12,
        "anything else",
        "environment", "environment_error", "environment", (_R.UNKNOWN,), _OPERATOR, _anything_else,
    ),
)  # fmt: skip


def run_reasons() -> frozenset[str]:
    """Return the reasons of row 10: an attempt that ended for one of them fails its run."""
    return frozenset(str(reason) for row in TABLE if row.number == 10 for reason in row.reasons)


def classify(pod: PodRecord | None, sealed: Sealed | None, context: Context) -> Outcome:
    """Say what an attempt that is over came to.

    ``pod`` is the last that was seen of it, None where nothing was. ``sealed`` is what the store has of the *case*,
    asked after the attempt's end, or what ``told`` read.
    """
    if context.superfluous:
        error = "its case was settled by another attempt"
        return Outcome("interruption", "environment_error", AttemptReason.SUPERSEDED, "interruption", error, None, 7)
    if sealed is not None:
        return Outcome("verdict", sealed.status, sealed.reason, "none", sealed.error, sealed, 1)
    ended = _Ended(pod, sealed, _message_of(pod), context)
    for row in TABLE:
        found = row.find(ended) if row.find is not None else None
        if found is not None and row.kind is not None and row.status is not None:
            return Outcome(row.kind, row.status, str(found[0]), row.budget, clean(found[1]), None, row.number)
    raise AssertionError("the last row of the table matches everything")  # pragma: no cover


def clean(text: str) -> str:
    """Make text of foreign origin fit for a status: one line, no control characters, at most 300 bytes of UTF-8."""
    line = "".join(character if character.isprintable() else " " for character in text)
    return cut_utf8(line.strip(), MAX_ERROR_BYTES)


def as_markdown() -> str:
    """Return the table as the reference page ``docs/reference/outcomes.md`` has it."""
    verdicts = {"suspended": "–", "interruption": "–; with the budget spent `environment_error`", None: "–"}
    again = {
        "none": "no",
        "environment": "within `retries.environment`",
        "interruption": "within `retries.interruptions`",
    }
    lines = ["| # | fact | verdict | tried again | reasons | seen by |", "|---|---|---|---|---|---|"]
    for row in TABLE:
        verdict = verdicts.get(row.kind) or (f"`{row.status}`" if row.status else "the sealed one")
        more = "yes; counted, drawing on no budget" if row.kind == "suspended" else again[row.budget]
        if row.number in (10, 11):
            more = "–"
        reasons = ", ".join(f"`{reason}`" for reason in row.reasons) or "the sealed one's"
        lines.append(f"| {row.number} | {row.fact} | {verdict} | {more} | {reasons} | {row.seen} |")
    return "\n".join(lines) + "\n"
