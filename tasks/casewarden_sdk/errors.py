"""Who is to blame: the two errors that a driver can meet.

A ``CandidateError`` is something the candidate could have caused: it is assessed (``agent_error``). An
``EnvironmentFailure`` is anything else: it is never a score, and the operator tries the case again within its budget.
"""

from __future__ import annotations

__all__ = ["CandidateError", "ContractError", "EnvironmentFailure"]


class ContractError(ValueError):
    """A pack, a plan or a verdict breaks the task contract; the message names the field, the value and the cure."""


class _Caused(Exception):
    """An error with a reason of the outcome table (``api.reasons``) and a message for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


class CandidateError(_Caused):
    """The candidate broke its contract, a limit, or itself. Reasons: ``Protocol``, ``Exited``, ``TimeLimit``, …"""


class EnvironmentFailure(_Caused):
    """Something that is not the candidate failed. Reasons: ``EvidenceFailed``, ``TaskFailed``, …"""
