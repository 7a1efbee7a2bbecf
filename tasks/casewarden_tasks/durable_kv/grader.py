"""The verdict of a durable-kv record: the model's answers beside the candidate's, in order, up to the first difference.

Reads case and record and nothing else, and raises on no record: what a candidate wrote may be any JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from casewarden_sdk.canonical import canonical
from casewarden_sdk.checks import holds
from casewarden_sdk.contract import Case, Verdict
from casewarden_sdk.errors import CandidateError

from .model import Model

__all__ = ["CHECKS", "grade"]

CHECKS: Final[Mapping[str, str]] = {
    "answers": "each response is the model's",
    "no-answer-missing": "each request has a response",
    "no-answer-more": "there are no more responses than requests",
    "ended": "each session came to an end",
    "no-signal": "a session whose input ended did not die of a signal",
    "exit-code": "a session whose input ended exited with 0",
    "nothing-unasked": "a session wrote nothing that was not asked for",
    "sessions": "the record has the sessions of the case",
    "no-fault": "the driver saw the candidate break nothing",
}

_SHOWN: Final = 180  # characters of a value in a diagnostic


class _Wrong(Exception):
    """The candidate ran, and its work is not right."""


def grade(case: Case, record: Any) -> Verdict:
    """Return the verdict; every case has one dimension and so one check."""
    (dimension,) = case.dimensions
    try:
        _compare(case, _Record(record))
    except _Wrong as wrong:
        return Verdict.assessed(case, {dimension: False}, error=str(wrong))
    except CandidateError as fault:
        return Verdict.assessed(case, {dimension: False}, fault=fault)
    return Verdict.assessed(case, {dimension: True})


class _Record:
    """A record read with care: what is missing or of another type is an empty list or ``None``."""

    def __init__(self, record: Any) -> None:
        fields = record if isinstance(record, dict) else {}
        self._fault = fields.get("candidate_error")
        rows = fields.get("sessions")
        self.sessions: list[Any] = rows if isinstance(rows, list) else []

    def responses(self, session: int) -> list[Any]:
        row = self._row(session).get("responses")
        return row if isinstance(row, list) else []

    def end(self, session: int) -> dict[str, Any] | None:
        end = self._row(session).get("exit")
        return end if isinstance(end, dict) else None

    def fault(self) -> CandidateError | None:
        """Return what the driver saw the candidate break, if anything."""
        reason, message = (
            (self._fault.get("reason"), self._fault.get("message")) if isinstance(self._fault, dict) else (None, None)
        )
        return CandidateError(reason, message) if isinstance(reason, str) and isinstance(message, str) else None

    def gap(self, what: str) -> Exception:
        """Say why the record stops early: by the candidate's fault, or because it is no whole record of this case."""
        return self.fault() or _Wrong(f"the record is not whole: {what}")

    def _row(self, session: int) -> dict[str, Any]:
        row = self.sessions[session] if session < len(self.sessions) else None
        return row if isinstance(row, dict) else {}


def _expected(case: Case) -> Iterator[tuple[list[dict[str, Any]], str]]:
    """Give for each session the right responses, from one model that lives through all of them, and how it stops."""
    model = Model()
    for session in case.content["sessions"]:
        yield [model.answer(request) for request in session["requests"]], session["stop"]


def _compare(case: Case, record: _Record) -> None:
    """Walk the record; raise at the first thing that is not right."""
    count = 0
    for session, (answers, stop) in enumerate(_expected(case)):
        _check_responses(session, answers, record)
        _check_end(session, stop, record)
        count += 1
    if not holds("sessions", len(record.sessions) == count):
        raise _Wrong(f"the record has {len(record.sessions)} sessions, the case {count}")
    fault = record.fault()
    if not holds("no-fault", fault is None):
        raise fault or _Wrong("no fault is recorded")


def _check_responses(session: int, answers: list[dict[str, Any]], record: _Record) -> None:
    responses = record.responses(session)
    for position, right in enumerate(answers):
        where = f"session {session + 1}, request {position + 1}"
        if not holds("no-answer-missing", position < len(responses)):
            raise record.gap(f"{where} has no response")
        if position >= len(responses):
            break
        got = _text(responses[position])
        if not holds("answers", got == canonical(right)):
            raise _Wrong(f"{where}: expected {canonical(right)[:_SHOWN]}, got {got[:_SHOWN]}")
    if not holds("no-answer-more", len(responses) <= len(answers)):
        raise _Wrong(f"session {session + 1}: {len(responses)} responses to {len(answers)} requests")


def _check_end(session: int, stop: str, record: _Record) -> None:
    """Require a clean end where the session ends with its input; after SIGKILL there is nothing to require."""
    end = record.end(session)
    if not holds("ended", end is not None):
        raise record.gap(f"session {session + 1} has no end")
    if stop == "kill" or end is None:
        return
    where = f"session {session + 1}, at the end of its input"
    if not holds("no-signal", end.get("signal") is None):
        raise CandidateError("Exited", f"{where}: died of signal {_text(end.get('signal'))[:_SHOWN]}")
    if not holds("exit-code", _text(end.get("code")) == "0"):
        raise CandidateError("Exited", f"{where}: exit code {_text(end.get('code'))[:_SHOWN]}, it must be 0")
    if not holds("nothing-unasked", _text(end.get("unsolicited")) == "0"):
        raise CandidateError("Protocol", f"{where}: wrote output that nobody asked for")


def _text(value: Any) -> str:
    """Return the canonical text of any value; what has none is equal to no right answer."""
    try:
        return canonical(value)
    except (ValueError, RecursionError):
        return "what is no finite JSON"
