"""Conditions of a run, in the form of ``metav1.Condition``: the run's state machine, seen from outside."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from .common import ApiModel

__all__ = [
    "AUDIT_CONDITIONS",
    "EVAL_CONDITIONS",
    "Condition",
    "ConditionStatus",
    "ConditionType",
    "is_true",
    "set_condition",
]

ConditionStatus = Literal["True", "False", "Unknown"]


class ConditionType(StrEnum):
    """The types of a run's conditions, in the order in which they are shown."""

    ACCEPTED = "Accepted"
    PLANNED = "Planned"
    SUSPENDED = "Suspended"
    FINISHED = "Finished"
    COMPLETE = "Complete"
    FAILED = "Failed"
    PASSED = "Passed"
    AUDITED = "Audited"


EVAL_CONDITIONS = tuple(ConditionType)
AUDIT_CONDITIONS = tuple(ConditionType)[:-1]


class Condition(ApiModel):
    """One observation of the run's state."""

    type: str = Field(
        max_length=316, description="Type of the condition: Accepted, Planned, Suspended, Finished, and so on."
    )
    status: ConditionStatus = Field(description="Whether it holds: True, False or Unknown.")
    reason: str = Field(min_length=1, max_length=64, description="Why, in one word for programs.")
    message: str = Field(default="", max_length=32768, description="Why, in words for people.")
    last_transition_time: str = Field(
        max_length=64,
        description="When the status last changed.",
        json_schema_extra={"format": "date-time"},
    )
    observed_generation: int | None = Field(
        default=None, description="Generation of the resource that the condition was made for."
    )


def set_condition(
    conditions: Sequence[dict[str, Any]],
    type_: str,
    status: ConditionStatus,
    reason: str,
    message: str,
    now: str,
    generation: int,
) -> list[dict[str, Any]]:
    """Return the conditions with this one set in place; ``now`` (RFC 3339) counts only where the status changes.

    Conditions are plain JSON, as they are in a status. Those of other types stay as they are.
    """
    old = next((item for item in conditions if item["type"] == type_), None)
    since = old["lastTransitionTime"] if old is not None and old["status"] == status else now
    new = {
        "type": str(type_),
        "status": status,
        "reason": str(reason),
        "message": message,
        "lastTransitionTime": since,
        "observedGeneration": generation,
    }
    if old is None:
        return [*conditions, new]
    return [new if item["type"] == type_ else item for item in conditions]


def is_true(conditions: Sequence[dict[str, Any]], type_: str) -> bool:
    """Tell whether the condition of that type is there and True."""
    return any(item["type"] == type_ and item["status"] == "True" for item in conditions)
