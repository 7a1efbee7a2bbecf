"""Does an audit vouch for the grader of a run? Pure: statuses in, the condition Audited and the floors out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from casewarden.api.conditions import ConditionType, is_true
from casewarden.api.reasons import RunReason
from casewarden.core.run_conditions import Why

__all__ = ["ENOUGH_REPEATS", "Audited", "Needed", "judge_audits"]

# A run that repeats its cases asks how steady they are: the reference must have been tried as often, up to this.
ENOUGH_REPEATS: Final = 3
_EQUAL: Final = ("task", "contract", "grader", "params", "conditions")


@dataclass(frozen=True, slots=True)
class Needed:
    """What a run needs of an audit: ``fingerprints`` that must be equal, every one of ``controls``, and an age."""

    fingerprints: Mapping[str, str]
    controls: frozenset[str]
    max_age_seconds: float
    repeats: int = 1


@dataclass(frozen=True, slots=True)
class Audited:
    """The condition ``Audited`` of a run, and the scores that stand beside its own."""

    status: Literal["True", "False", "Unknown"]
    why: Why
    floor: Mapping[str, str] = field(default_factory=dict)


def judge_audits(audits: Iterable[Mapping[str, Any]], needed: Needed, now: float) -> Audited:
    """Find the newest audit that vouches; where none does, say what the nearest of them lacks."""
    lacking: list[tuple[int, str]] = []
    good: list[tuple[float, Mapping[str, Any]]] = []
    for audit in audits:
        status = audit.get("status") or {}
        problems = list(_problems(audit, status, needed, now))
        if problems:
            lacking.append((len(problems), f"{audit['metadata']['name']}: {'; '.join(problems)}"))
        else:
            good.append((_time(status), audit))
    if good:
        _, audit = max(good, key=lambda pair: (pair[0], pair[1]["metadata"]["name"]))
        name = audit["metadata"]["name"]
        return Audited("True", Why(RunReason.AUDITED, f"AuditRun {name} passed"), _floor(audit))
    if not lacking:
        return Audited("False", Why(RunReason.NOT_AUDITED, "there is no AuditRun in the namespace"))
    said = "; ".join(text for _, text in sorted(lacking)[:3])
    return Audited("False", Why(RunReason.NOT_AUDITED, f"no AuditRun vouches for this grader: {said}"))


def _problems(audit: Mapping[str, Any], status: Mapping[str, Any], needed: Needed, now: float) -> Iterator[str]:
    prints = status.get("fingerprints") or {}
    for name in _EQUAL:
        if prints.get(name) != needed.fingerprints.get(name):
            yield f"it is of another {name}"
    conditions = status.get("conditions") or ()
    if not is_true(conditions, ConditionType.COMPLETE):
        yield "it is not complete"
    elif status.get("valid") is not True or status.get("passed") is not True:
        yield "it did not pass"
    elif now - _time(status) > needed.max_age_seconds:
        yield f"it is older than {needed.max_age_seconds / 3600:g} hours"
    missing = needed.controls - {row["name"] for row in status.get("controls") or ()}
    if missing:
        yield f"it left out {', '.join(sorted(missing)[:5])}"
    repeats = (audit.get("spec") or {}).get("referenceRepeats", 3)
    if repeats < needed.repeats:
        yield f"it ran the reference {repeats} times, and {needed.repeats} are needed"


def _time(status: Mapping[str, Any]) -> float:
    text = status.get("completionTime")
    return datetime.fromisoformat(text).timestamp() if text else 0.0


def _floor(audit: Mapping[str, Any]) -> dict[str, str]:
    status = audit["status"]
    kinds = {row["name"]: row["kind"] for row in status.get("controls") or ()}
    floor = {"audit": audit["metadata"]["name"]}
    nothing = next((score for name, score in (status.get("floors") or {}).items() if kinds.get(name) == "null"), None)
    if nothing is not None:
        floor["nullAgent"] = nothing
    if status.get("referenceScore") is not None:
        floor["reference"] = status["referenceScore"]
    return floor
