"""The task contract: cases, verdicts, limits, controls and what a pack must offer.

A pack is an object with the attributes of ``Pack``. ``drive`` talks to the candidate and returns a *record* (all that
grading needs, plain JSON); ``grade`` is a pure function of case and record. Nothing else ever makes a verdict, so a
recorded run can be graded again, by this version of the pack or by another.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Sequence, Tuple

from .canonical import canonical, sha256_json
from .errors import CandidateError, ContractError

if TYPE_CHECKING:
    from typing import Protocol

    from .runtime import Runtime
else:
    try:
        from typing import Protocol
    except ImportError:  # pragma: no cover
        Protocol = object

__all__ = [
    "AGENT_ERROR",
    "CONTROL_KINDS",
    "DEFAULT_KINDS",
    "ENVIRONMENT_ERROR",
    "FAILED",
    "JSON",
    "PASSED",
    "STATUSES",
    "Case",
    "Control",
    "Limits",
    "Pack",
    "Verdict",
    "check_bits",
]

JSON = Any
PASSED, FAILED, AGENT_ERROR, ENVIRONMENT_ERROR = "passed", "failed", "agent_error", "environment_error"
CONTROL_KINDS = ("reference", "null", "crash", "forger", "fault")
STATUSES = (PASSED, FAILED, AGENT_ERROR, ENVIRONMENT_ERROR)
DEFAULT_KINDS: Mapping[str, JSON] = {"default": {"candidate": {"image": "python"}, "environments": []}}
_CASE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")


@dataclass(frozen=True)
class Case:
    """One piece of work.

    ``content`` is the whole case as plain JSON and holds its ``id``; whatever a grader or driver reads of a case is in
    it, so its digest pins the case. ``dimensions`` are those that the case checks. ``kind`` names the class of
    containers that it needs (``"default"`` unless the pack declares others).
    """

    id: str
    dimensions: Tuple[str, ...]
    content: Mapping[str, JSON]
    kind: str = "default"

    def __post_init__(self) -> None:
        if not _CASE_ID.match(self.id):
            raise ContractError(
                f"case id {self.id!r}: use 1 to 100 letters, digits, '.', '_' or '-', a letter or digit first"
            )
        if not self.dimensions or len(set(self.dimensions)) != len(self.dimensions):
            raise ContractError(f"case {self.id!r}: dimensions {self.dimensions!r} must be one or more different names")
        if self.content.get("id") != self.id:
            raise ContractError(
                f"case {self.id!r}: content['id'] is {self.content.get('id')!r}; it must be the case's id"
            )

    @property
    def sha256(self) -> str:
        """Digest of the full content."""
        return sha256_json(dict(self.content))


@dataclass(frozen=True)
class Limits:
    """What a candidate may use in one case. A run may tighten these and never widen them.

    Seconds are wall time measured by the evidence sidecar from the candidate's first start; bytes are bytes.
    """

    case_seconds: float = 120.0
    response_seconds: float = 20.0
    start_seconds: float = 30.0
    actions: Optional[int] = None
    tokens: Optional[int] = None
    output_bytes: int = 1 << 20
    request_bytes: int = 8192
    processes: int = 64
    memory_mib: int = 256
    state_mib: int = 64
    tmp_mib: int = 16


@dataclass(frozen=True)
class Control:
    """A program with a known verdict, for audits.

    ``kind``: ``reference`` (must resolve every case), ``null`` (finishes at once), ``crash``, ``forger`` (writes
    verdicts wherever it can), ``fault`` (must be caught in ``target``). ``files`` is its workspace: flat names to text.
    ``collateral`` are other dimensions that the fault may fail. ``protocol_fault`` says that being caught as
    ``agent_error`` counts.
    """

    name: str
    kind: str
    files: Mapping[str, str]
    target: Optional[str] = None
    collateral: Tuple[str, ...] = ()
    protocol_fault: bool = False
    argv: Optional[Tuple[str, ...]] = None

    def __post_init__(self) -> None:
        if self.kind not in CONTROL_KINDS:
            raise ContractError(f"control {self.name!r}: kind {self.kind!r} is none of {', '.join(CONTROL_KINDS)}")
        if (self.kind == "fault") != (self.target is not None):
            raise ContractError(f"control {self.name!r}: a fault, and only a fault, has a target dimension")


def check_bits(checks: Mapping[str, Optional[bool]]) -> str:
    """Write checks as one character per dimension, dimensions sorted: ``1`` true, ``0`` false, ``-`` not assessed."""
    return "".join("-" if checks[name] is None else str(int(bool(checks[name]))) for name in sorted(checks))


@dataclass(frozen=True)
class Verdict:
    """What one case came to. The invariants of the contract hold for every instance.

    ``environment_error`` means that every check is ``None``; with any other status none is; ``passed`` is the status
    exactly when every check is true. ``reason`` is a word of the outcome table and stands beside ``agent_error`` and
    ``environment_error`` only. ``metrics`` are decimal strings (a reward, an F1) for packs that have them.
    """

    case_id: str
    checks: Mapping[str, Optional[bool]]
    status: str
    error: Optional[str] = None
    reason: Optional[str] = None
    metrics: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = f"verdict of {self.case_id!r}"
        if self.status not in STATUSES:
            raise ContractError(f"{where}: status {self.status!r} is none of {', '.join(STATUSES)}")
        values = list(self.checks.values())
        if not values:
            raise ContractError(f"{where}: no checks")
        if any(value is not None and not isinstance(value, bool) for value in values):
            raise ContractError(f"{where}: checks {dict(self.checks)!r} may hold true, false and null only")
        unassessed = self.status == ENVIRONMENT_ERROR
        if any((value is None) != unassessed for value in values):
            raise ContractError(
                f"{where}: checks must all be null with environment_error, and none otherwise; "
                f"got {dict(self.checks)!r}"
            )
        if (self.status == PASSED) != (not unassessed and all(values)):
            raise ContractError(f"{where}: status {self.status!r} does not fit checks {dict(self.checks)!r}")
        if (self.reason is not None) != (self.status in (AGENT_ERROR, ENVIRONMENT_ERROR)):
            raise ContractError(
                f"{where}: agent_error and environment_error, and only they, have a reason; got {self.reason!r}"
            )
        for name, value in self.metrics.items():
            if not isinstance(value, str) or not Decimal(value).is_finite():
                raise ContractError(f"{where}: metric {name!r} is {value!r}; give a finite decimal as a string")

    @property
    def passed(self) -> bool:
        """True exactly when every check is true."""
        return self.status == PASSED

    @classmethod
    def assessed(
        cls,
        case: Case,
        checks: Mapping[str, bool],
        error: Optional[str] = None,
        fault: Optional[CandidateError] = None,
        metrics: Optional[Mapping[str, str]] = None,
    ) -> Verdict:
        """Make a graded record's verdict: ``passed`` or ``failed`` by the checks, ``agent_error`` for a ``fault``.

        A ``fault`` with every check true fails nothing it should: that is the grader's mistake and refused.
        """
        if fault is not None:
            return cls(case.id, dict(checks), AGENT_ERROR, error or fault.message, fault.reason, dict(metrics or {}))
        status = PASSED if all(checks.values()) else FAILED
        return cls(case.id, dict(checks), status, error, None, dict(metrics or {}))

    @classmethod
    def agent_error(cls, case: Case, reason: str, error: str) -> Verdict:
        """Fail every dimension of a case whose candidate broke before there was anything to grade."""
        return cls(case.id, dict.fromkeys(case.dimensions, False), AGENT_ERROR, error, reason)

    @classmethod
    def environment_error(cls, case: Case, reason: str, error: str) -> Verdict:
        """Leave a case unassessed."""
        return cls(case.id, dict.fromkeys(case.dimensions, None), ENVIRONMENT_ERROR, error, reason)

    def to_json(self) -> Dict[str, JSON]:
        """Return the verdict as plain JSON with every field of the contract that a driver knows."""
        document = {
            "case_id": self.case_id,
            "checks": dict(self.checks),
            "passed": self.passed,
            "status": self.status,
            "error": self.error,
            "reason": self.reason,
            "metrics": dict(self.metrics),
        }
        canonical(document)
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, JSON]) -> Verdict:
        """Read ``to_json`` back and check every invariant again; other keys are left alone."""
        verdict = cls(
            document["case_id"],
            dict(document["checks"]),
            document["status"],
            document.get("error"),
            document.get("reason"),
            dict(document.get("metrics") or {}),
        )
        if document.get("passed") is not verdict.passed:
            raise ContractError(
                f"verdict of {verdict.case_id!r}: passed is {document.get('passed')!r} "
                f"with checks {dict(verdict.checks)!r}"
            )
        return verdict


class Pack(Protocol):
    """A versioned kind of work with its grader. Register it by naming the object: ``module:PACK``.

    ``contract`` is the text of the contract page. ``dimensions`` maps names to weights, decimal strings that sum to 1.
    ``sources`` lists *every* file and asset that grading depends on (paths), the contract page included; their bytes
    are the grader fingerprint. ``default_argv`` may use ``{python}``, ``{workspace}`` and ``{state}``. ``exclusions``
    maps ids of cases known to be broken to the reason.

    Three more attributes are read where a pack has them. ``kinds`` maps a class of cases to its containers (default
    ``DEFAULT_KINDS``). ``unfaulted`` maps a dimension that no fault control targets to the reason. ``models`` maps the
    roles of models that the driver asks (``judge``) to what they are for; a run must name a model for each.
    ``grader_checks`` maps the names that the grader asks ``checks.holds`` by to what each is about; audits mutate the
    grader by them.
    """

    id: str
    version: str
    description: str
    contract: str
    dimensions: Mapping[str, str]
    protocol: str
    candidates: Tuple[str, ...]
    aggregation: str
    limits: Limits
    default_argv: Tuple[str, ...]
    sources: Tuple[str, ...]
    controls: Sequence[Control]
    exclusions: Mapping[str, str]

    def cases(self, seed: int, params: Mapping[str, JSON]) -> Sequence[Case]:
        """Generate the cases of one seed; the same arguments give equal bytes. ``ContractError`` for bad ``params``."""

    async def drive(self, case: Case, runtime: Runtime) -> JSON:
        """Play one case and return its record; stop and await every candidate process that it started."""

    def grade(self, case: Case, record: JSON) -> Verdict:
        """Judge a record; pure."""
