"""From a record to a verdict: the one way, for a first grading and for every later one."""

from __future__ import annotations

from typing import Mapping, Optional

from .contract import JSON, Case, Pack, Verdict
from .errors import CandidateError, ContractError

__all__ = ["candidate_error_record", "judge"]

_KEY = "candidate_error"


def candidate_error_record(error: CandidateError) -> Mapping[str, JSON]:
    """Return the record of a case whose candidate broke before there was anything to grade."""
    return {_KEY: {"reason": error.reason, "message": error.message}}


def judge(pack: Pack, case: Case, record: JSON) -> Verdict:
    """Return the verdict of a record, held to the contract.

    A record of ``candidate_error_record`` fails every dimension; any other is the pack's to grade. ``ContractError``
    where the pack's verdict is of another case or checks other dimensions than the case has.
    """
    fault = _fault_of(record)
    if fault is not None:
        return Verdict.agent_error(case, fault.reason, fault.message)
    verdict = pack.grade(case, record)
    if verdict.case_id != case.id:
        raise ContractError(f"grade returned the verdict of case {verdict.case_id!r} for case {case.id!r}")
    if set(verdict.checks) != set(case.dimensions):
        raise ContractError(
            f"grade returned checks {sorted(verdict.checks)} for case {case.id!r}; "
            f"its dimensions are {sorted(case.dimensions)}"
        )
    return verdict


def _fault_of(record: JSON) -> Optional[CandidateError]:
    fault = record[_KEY] if isinstance(record, Mapping) and set(record) == {_KEY} else None
    if not isinstance(fault, Mapping) or set(fault) != {"reason", "message"}:
        return None
    reason, message = fault["reason"], fault["message"]
    # A pack may keep a candidate's own JSON as its record: what only looks like ours is the pack's to grade.
    return CandidateError(reason, message) if isinstance(reason, str) and isinstance(message, str) else None
