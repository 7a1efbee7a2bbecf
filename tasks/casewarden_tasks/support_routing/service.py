"""The ticket service that the candidate works on. It lives with the driver; the candidate only ever sees copies.

A call that is not valid changes nothing. In some cases the first valid call of one tool reports an outage that passes:
``assign_queue`` before it has written, ``add_note`` after. A candidate that repeats the very same call does right by
both.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

__all__ = ["TOOLS", "Outcome", "TicketService"]

_LONGEST_ARGUMENT: Final = 512  # characters

TOOLS: Final[Mapping[str, frozenset[str]]] = {
    "get_ticket": frozenset({"ticket_id"}),
    "assign_queue": frozenset({"ticket_id", "queue"}),
    "add_note": frozenset({"ticket_id", "body", "request_id"}),
    "close_ticket": frozenset({"ticket_id"}),
}


class Outcome(NamedTuple):
    """What the candidate is told, who is behind an error (``tool_validation``, ``injected``), and what changed."""

    result: dict[str, Any]
    error_source: str | None
    changes: dict[str, Any]


class _Refusal(Exception):
    """The call is not valid."""


class _Outage(Exception):
    """The call is valid and meets the planned outage."""


class TicketService:
    """Tickets, the rules for queues, and the receipts of notes."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._tickets: dict[str, dict[str, Any]] = copy.deepcopy(dict(content["initial"]))
        self._queues = frozenset(content["routing_rules"].values())
        self._failing: str | None = content["fault"]
        self._notes_by_request: dict[tuple[str, str], str] = {}
        self._handlers: Mapping[str, Callable[..., dict[str, Any]]] = {
            "get_ticket": self._get_ticket,
            "assign_queue": self._assign_queue,
            "add_note": self._add_note,
            "close_ticket": self._close_ticket,
        }

    def snapshot(self) -> dict[str, Any]:
        """Return a copy of all tickets as they are now."""
        return copy.deepcopy(self._tickets)

    def call(self, tool: Any, arguments: Any) -> Outcome:
        """Carry out one call, whatever the candidate sent as tool and arguments."""
        before = self.snapshot()
        source = None
        try:
            _check_arguments(tool, arguments)
            if arguments["ticket_id"] not in self._tickets:
                raise _Refusal("ticket_not_found")
            result = {"ok": True, **self._handlers[tool](**arguments)}
        except _Refusal as refusal:
            result, source = _error(str(refusal), retryable=False), "tool_validation"
        except _Outage:
            result, source = _error("temporarily_unavailable", retryable=True), "injected"
        now = self.snapshot()
        changes = {name: {"before": before[name], "after": now[name]} for name in now if now[name] != before[name]}
        return Outcome(result, source, changes)

    def _get_ticket(self, ticket_id: str) -> dict[str, Any]:
        return {"ticket": copy.deepcopy(self._tickets[ticket_id])}

    def _assign_queue(self, ticket_id: str, queue: str) -> dict[str, Any]:
        if queue not in self._queues:
            raise _Refusal("unknown_queue")
        self._meet_outage("assign_queue")
        self._tickets[ticket_id]["queue"] = queue
        return {}

    def _add_note(self, ticket_id: str, body: str, request_id: str) -> dict[str, Any]:
        if not request_id:
            raise _Refusal("invalid_request_id")
        written = self._notes_by_request.get((ticket_id, request_id))
        if written is not None:
            if written != body:
                raise _Refusal("idempotency_conflict")
            return {"replayed": True}
        self._tickets[ticket_id]["notes"].append(body)
        self._notes_by_request[ticket_id, request_id] = body
        self._meet_outage("add_note")
        return {}

    def _close_ticket(self, ticket_id: str) -> dict[str, Any]:
        self._tickets[ticket_id]["status"] = "closed"
        return {}

    def _meet_outage(self, tool: str) -> None:
        if self._failing == tool:
            self._failing = None
            raise _Outage


def _check_arguments(tool: Any, arguments: Any) -> None:
    expected = TOOLS.get(tool) if isinstance(tool, str) else None
    if expected is None or not isinstance(arguments, dict) or arguments.keys() != expected:
        raise _Refusal("invalid_arguments")
    if not all(isinstance(value, str) and len(value) <= _LONGEST_ARGUMENT for value in arguments.values()):
        raise _Refusal("invalid_arguments")


def _error(code: str, *, retryable: bool) -> dict[str, Any]:
    return {"ok": False, "error": {"code": code, "retryable": retryable}}
