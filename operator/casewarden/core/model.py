"""The plain data that decisions are made over: keys, pods as we need them, ledger rows, a run's view, actions.

Everything here is frozen and free of I/O. The controller builds a ``RunView`` from what it observed, ``core.step.step``
turns it into ``Action`` values, the executor carries them out. Times are seconds since the epoch, as floats.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "Action", "AttemptKey", "CaseKey", "ContainerRecord", "CreatePod", "DeletePod", "FinishRun", "InFlight",
    "LedgerRow", "LookUpSeal", "PlannedCase", "PodCondition", "PodRecord", "Record", "RunPolicy", "RunView", "Sealed",
    "SetWait", "StepResult",
]  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class CaseKey:
    """What is to be assessed once: a seed, a case (its family) and a repeat."""

    seed: int
    case_id: str
    repeat: int

    def __str__(self) -> str:
        return f"{self.seed}/{self.case_id}/{self.repeat}"


@dataclass(frozen=True, slots=True, order=True)
class AttemptKey:
    """One pod's worth of work on a case; attempts count from 1."""

    case: CaseKey
    attempt: int

    def __str__(self) -> str:
        return f"{self.case}/{self.attempt}"


@dataclass(frozen=True, slots=True)
class PodCondition:
    """A pod condition as the API server has it; ``status`` is ``True``, ``False`` or ``Unknown``."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: float | None = None


@dataclass(frozen=True, slots=True)
class ContainerRecord:
    """A container's state; ``message`` is the termination message, or why it waits.

    ``last_exit_code`` and ``last_reason`` tell how it ended before its last restart; only a sidecar ever restarts.
    """

    name: str
    state: Literal["waiting", "running", "terminated"]
    reason: str = ""
    message: str = ""
    exit_code: int | None = None
    signal: int | None = None
    started_at: float | None = None
    finished_at: float | None = None
    restarts: int = 0
    image_id: str = ""
    ready: bool = False
    last_exit_code: int | None = None
    last_reason: str = ""


@dataclass(frozen=True, slots=True)
class PodRecord:
    """All that is kept of a pod. ``attempt`` is None for a plan pod.

    ``deleted_at`` is when its deletion was asked for: the API's deletion timestamp less the grace period.
    ``started_at`` is when a kubelet accepted it, ``active_deadline`` its ``activeDeadlineSeconds``, counted from
    there.
    """

    name: str
    namespace: str
    uid: str
    run_uid: str
    role: str
    resource_version: str
    attempt: AttemptKey | None = None
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    node: str = ""
    created_at: float = 0.0
    started_at: float | None = None
    deleted_at: float | None = None
    active_deadline: float | None = None
    conditions: tuple[PodCondition, ...] = ()
    containers: tuple[ContainerRecord, ...] = ()

    def container(self, name: str) -> ContainerRecord | None:
        """Return the container of that name, sidecars included, or None before the kubelet has reported it."""
        return next((item for item in self.containers if item.name == name), None)


@dataclass(frozen=True, slots=True)
class Sealed:
    """The commit point of a case as the store has it (``sealed.json``)."""

    attempt: int
    pod_uid: str
    digest: str
    status: str
    checks: str
    reason: str | None = None
    error: str | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """What the run has counted of one attempt; written once and never changed.

    ``kind``: ``verdict`` (assessed: what was sealed, or the operator's ``agent_error`` where nothing could be sealed;
    then ``digest`` is None and every check is false), ``environment`` (unassessed, draws on the environment budget),
    ``interruption`` (draws on the interruption budget), ``suspended`` (the run itself stopped the attempt: counted,
    draws on none). ``checks`` are bits (``contract.check_bits``). ``pod_uid`` and ``digest`` are those of the seal,
    which may be an earlier attempt's of the same case.
    """

    key: AttemptKey
    kind: Literal["verdict", "environment", "interruption", "suspended"]
    status: str
    checks: str
    reason: str | None = None
    error: str | None = None
    digest: str | None = None
    seconds: float | None = None
    pod_uid: str = ""
    ended_at: float = 0.0


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case of the plan: what an attempt needs to know of it."""

    seed: int
    case_id: str
    dimensions: tuple[str, ...]
    kind: str
    sha256: str


@dataclass(frozen=True, slots=True)
class InFlight:
    """A create that was sent and is not seen yet in the pod list; it holds its place until ``until``."""

    key: AttemptKey
    until: float


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """What of a run's spec decides over its attempts."""

    parallelism: int
    environment_retries: int
    interruption_retries: int
    pending_seconds: float
    suspend: bool
    deadline: float | None
    keep_pods: Literal["Never", "OnFailure"] = "Never"


@dataclass(frozen=True, slots=True)
class RunView:
    """All that ``step`` may look at.

    ``cases`` is the plan times repeats, in the order in which cases start; ``planned`` is the plan by seed and case,
    with every case of ``cases``. ``pods`` are this run's case pods; ``rows`` are never older than they, or a pod that
    was recorded and deleted in between would be made again. ``known`` are attempts that were seen alive since this
    operator started and whose pod is gone, with the last that was seen of it; those with a row may stay or go.

    ``seals`` holds what a look-up in the store answered, under the attempt that ``LookUpSeal`` named: a ``Sealed`` of
    that case, by whichever attempt, or None where there was none. A None is asked for after that attempt's end and is
    good for that attempt only; an attempt that was not looked up is absent. ``lookups_in_flight`` are look-ups
    already asked for; ``store_away_since`` is set while the store does not answer them.

    ``slots`` is how many pods in all the assigner lets this run have at once (None: no assigner limit). ``refusals``
    are creates that the API server refused since the last step, by ``(reason, message)``: the reason of the API's
    Status, or its cause where it has one (``NamespaceTerminating``). ``blocked_until`` is the last ``SetWait.until``,
    ``failing`` the last ``StepResult.failing``, ``stopped`` the UIDs of pods whose ``DeletePod`` was carried out; all
    three may be lost in a restart.
    """

    policy: RunPolicy
    cases: tuple[CaseKey, ...]
    rows: tuple[LedgerRow, ...]
    pods: tuple[PodRecord, ...]
    in_flight: tuple[InFlight, ...] = ()
    seals: Mapping[AttemptKey, Sealed | None] = field(default_factory=dict)
    lookups_in_flight: frozenset[AttemptKey] = frozenset()
    slots: int | None = None
    blocked_until: float = 0.0
    refusals: tuple[tuple[str, str], ...] = ()
    planned: Mapping[tuple[int, str], PlannedCase] = field(default_factory=dict)
    known: Mapping[AttemptKey, PodRecord] = field(default_factory=dict)
    store_away_since: float | None = None
    failing: FinishRun | None = None
    stopped: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CreatePod:
    """Create the pod of this attempt."""

    key: AttemptKey


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Delete this very pod (UID as precondition); asked for until the deletion is seen. ``why`` is for the log."""

    name: str
    uid: str
    why: str
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class LookUpSeal:
    """Ask the store whether the case of this attempt has a sealed verdict; the next view has it as ``seals[key]``."""

    key: AttemptKey


@dataclass(frozen=True, slots=True)
class Record:
    """Write these rows to the ledger, then step with them in the view; what depends on them comes in that step."""

    rows: tuple[LedgerRow, ...]


@dataclass(frozen=True, slots=True)
class SetWait:
    """Why the run does not start more pods now, for its status; ``reason`` None clears it. Every step says it once.

    ``until`` is the time before which no create is to be tried again; the next view has it as ``blocked_until``.
    """

    reason: str | None
    message: str = ""
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class FinishRun:
    """The run is over: ``complete`` with all its cases counted, or failed with a reason."""

    complete: bool
    reason: str
    message: str = ""


Action = CreatePod | DeletePod | LookUpSeal | Record | SetWait | FinishRun


@dataclass(frozen=True, slots=True)
class StepResult:
    """Actions in the order in which they are to be done, and when to step again even if nothing happens.

    ``failing`` is the failure that the run is being stopped for; ``FinishRun`` follows when nothing of it runs any
    more. The next view has it as ``failing``. ``used`` are the slots that it holds, creates of this step
    included, ``wanted`` how many pods it could have at once if it had a slot for each, those that it has included.
    """

    actions: tuple[Action, ...]
    wake_at: float | None = None
    failing: FinishRun | None = None
    used: int = 0
    wanted: int = 0
