"""Every reason that a user can meet, once: of conditions, of attempts, of waits. Words, never numbers."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["AttemptReason", "RunReason"]


class AttemptReason(StrEnum):
    """Why an attempt came to what it came to (the outcome table, design section 3)."""

    # The candidate's: assessed, never tried again.
    TIME_LIMIT = "TimeLimit"
    ACTION_LIMIT = "ActionLimit"
    TOKEN_LIMIT = "TokenLimit"  # noqa: S105
    OUTPUT_LIMIT = "OutputLimit"
    PROCESS_LIMIT = "ProcessLimit"
    OOM_KILLED = "OOMKilled"
    STORAGE_LIMIT = "StorageLimit"
    EXITED = "Exited"
    PROTOCOL = "Protocol"
    SERVER_ERROR = "ServerError"
    NOT_READY = "NotReady"
    SHIM_LOST = "ShimLost"
    SANDBOX_KILLED = "SandboxKilled"
    CONTEXT_LIMIT = "ContextLimit"
    REFUSED_BY_MODEL = "Refused"
    BAD_REQUEST = "BadRequest"
    # A candidate's command that cannot be started inside a running container is its own.
    CANNOT_START_PROGRAM = "CannotStartProgram"
    # The environment's: unassessed, tried again within a budget.
    EVICTED = "Evicted"
    PREEMPTED = "Preempted"
    NODE_LOST = "NodeLost"
    DELETED = "Deleted"
    SUSPENDED = "Suspended"
    MODEL_UNAVAILABLE = "ModelUnavailable"
    STORE_UNAVAILABLE = "StoreUnavailable"
    EVIDENCE_FAILED = "EvidenceFailed"
    TASK_FAILED = "TaskFailed"
    ENVIRONMENT_FAILED = "EnvironmentFailed"
    CASE_MISMATCH = "CaseMismatch"
    SUPERSEDED = "Superseded"
    UNKNOWN = "Unknown"


class RunReason(StrEnum):
    """Reasons of a run's conditions and waits."""

    ACCEPTED = "Accepted"
    NOT_YET = "NotYet"
    INVALID_SPEC = "InvalidSpec"
    UNKNOWN_TASK = "UnknownTask"
    PLANNING = "Planning"
    PLANNED = "Planned"
    PLAN_FAILED = "PlanFailed"
    PLAN_REFUSED = "PlanRefused"
    PLAN_UNSTABLE = "PlanUnstable"
    RUNNING = "Running"
    SUSPENDED = "Suspended"
    NOT_SUSPENDED = "NotSuspended"
    GRADING = "Grading"
    GRADING_FAILED = "GradingFailed"
    REGRADE_REFUSED = "RegradeRefused"
    COMPLETED = "Completed"
    IMAGE_PULL = "ImagePull"
    CANNOT_START = "CannotStart"
    UNSCHEDULABLE = "Unschedulable"
    QUOTA_EXCEEDED = "QuotaExceeded"
    WAITING_FOR_SLOTS = "WaitingForSlots"
    REFUSED = "Refused"
    UNKNOWN_ENDPOINT = "UnknownEndpoint"
    BUDGET_SPENT = "BudgetSpent"
    CIRCUIT_BREAKER = "CircuitBreaker"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    LEDGER_LOST = "LedgerLost"
    AGGREGATE_FAILED = "AggregateFailed"
    STORE_UNAVAILABLE = "StoreUnavailable"
    WORKSPACE_MISSING = "WorkspaceMissing"
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    THRESHOLD_MET = "ThresholdMet"
    THRESHOLD_NOT_MET = "ThresholdNotMet"
    RESOLVED = "Resolved"
    NOT_RESOLVED = "NotResolved"
    NO_VALID_SCORE = "NoValidScore"
    AUDIT_IGNORED = "AuditIgnored"
    AUDITED = "Audited"
    NOT_AUDITED = "NotAudited"
    NOT_AN_AUDITS_CHILD = "NotAnAuditsChild"
    AUDIT_PASSED = "AuditPassed"
    AUDIT_NOT_PASSED = "AuditNotPassed"
    CONTROL_FAILED = "ControlFailed"
