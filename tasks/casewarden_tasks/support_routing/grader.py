"""The verdict of a support-routing record: the tickets as they ended beside the tickets of the case.

Nothing of the ticket service is used, what the candidate says of itself has no part in it, and no record, whatever JSON
it is, makes it raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from casewarden_sdk.canonical import canonical
from casewarden_sdk.checks import holds
from casewarden_sdk.contract import Case, Verdict
from casewarden_sdk.errors import CandidateError

__all__ = ["CHECKS", "grade"]

CHECKS: Final[Mapping[str, str]] = {
    "queue": "the ticket is in the queue of its category",
    "notes": "the note was added, once",
    "status": "the ticket is closed if it was resolved, else open",
    "kept-fields": "category and resolution of the ticket are as they were",
    "other-tickets": "all other tickets are as they were",
    "finished": "the candidate finished and broke nothing",
    "no-signal": "its process did not die of a signal after finishing",
    "exit-code": "its process exited with 0 after finishing",
    "nothing-unasked": "it wrote nothing that was not asked for",
}

_MISSING: Final[Mapping[str, Any]] = {}
_SHOWN: Final = 180  # characters of a value in a diagnostic


def grade(case: Case, record: Any) -> Verdict:
    """Return the verdict with all five checks. Where the candidate broke, they are those of what it left behind."""
    fields = record if isinstance(record, dict) else _MISSING
    fault = _fault(fields)
    final = fields.get("final")
    findings = _compare(case.content, final if isinstance(final, dict) else _MISSING)
    finished = holds("finished", fault is None and fields.get("finished") is True)
    findings["protocol"] = "" if finished else "did not finish as it must"
    checks = {name: not finding for name, finding in findings.items()}
    fault = None if all(checks.values()) else fault
    error = "; ".join(f"{name}: {finding}" for name, finding in findings.items() if finding)
    return Verdict.assessed(case, checks, error=error if error and fault is None else None, fault=fault)


def _compare(content: Mapping[str, Any], final: Mapping[str, Any]) -> dict[str, str]:
    """Return for each dimension but protocol what is wrong with the tickets, the empty text where nothing is."""
    initial, target = content["initial"], content["target"]
    before = initial[target]
    after = final[target] if isinstance(final.get(target), dict) else _MISSING
    kept = {name: after.get(name) for name in ("category", "resolved")}
    bystanders = {name: ticket for name, ticket in final.items() if name != target}
    same = _equal(bystanders, {name: ticket for name, ticket in initial.items() if name != target})
    return {
        "routing": _differs("queue", "the queue is", after.get("queue"), content["routing_rules"][before["category"]]),
        "notes": _differs("notes", "the notes are", after.get("notes"), [*before["notes"], content["note"]]),
        "closure": _differs("status", "the status is", after.get("status"), "closed" if before["resolved"] else "open"),
        "scope": _differs("kept-fields", "the ticket has", kept, {name: before[name] for name in kept})
        if holds("other-tickets", same)
        else "other tickets changed",
    }


def _differs(check: str, what: str, got: Any, right: Any) -> str:
    if holds(check, _equal(got, right)):
        return ""
    return f"{what} {_text(got)[:_SHOWN]}, not {_text(right)[:_SHOWN]}"


def _fault(fields: Mapping[str, Any]) -> CandidateError | None:
    """Return how the candidate broke: as the driver saw it, or by the end of its process."""
    fault, end = fields.get("candidate_error"), fields.get("exit")
    if isinstance(fault, dict) and isinstance(fault.get("reason"), str) and isinstance(fault.get("message"), str):
        return CandidateError(fault["reason"], fault["message"])
    if fields.get("finished") is not True or not isinstance(end, dict):
        return None
    if not holds("no-signal", end.get("signal") is None):
        return CandidateError("Exited", f"after finishing: died of signal {_text(end.get('signal'))[:_SHOWN]}")
    if not holds("exit-code", _text(end.get("code")) == "0"):
        return CandidateError("Exited", f"after finishing: exit code {_text(end.get('code'))[:_SHOWN]}, it must be 0")
    if not holds("nothing-unasked", _text(end.get("unsolicited")) == "0"):
        return CandidateError("Protocol", "after finishing: wrote output that nobody asked for")
    return None


def _equal(left: Any, right: Any) -> bool:
    """Compare by canonical text, which tells ``true`` from ``1``."""
    return _text(left) == _text(right)


def _text(value: Any) -> str:
    """Return the canonical text of any value; what has none is equal to nothing of a case."""
    try:
        return canonical(value)
    except (ValueError, RecursionError):
        return "what is no finite JSON"
