"""Plays a support-routing case: observations to the candidate, its actions to the ticket service, until it finishes.

Judges nothing: the record has the tickets before and after, every action with what came of it, how the process ended,
and what the candidate broke, if anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from casewarden_sdk.contract import Case
from casewarden_sdk.errors import CandidateError
from casewarden_sdk.toolagent import ToolAgent

from .service import TOOLS, TicketService

if TYPE_CHECKING:
    from casewarden_sdk.runtime import Process, Runtime

__all__ = ["ACTIONS", "drive"]

ACTIONS: Final = 12  # the finishing one included

_INSTRUCTION: Final = (
    "Route the target by its category, add the requested note exactly once, "
    "close it only if resolved, and preserve all other data."
)


# What a model is told beside the observations; a program's author reads it in the contract.
_SYSTEM: Final = (
    "You work on one support ticket of a simulated service by calling tools, one at a time. The first message has the "
    "task: do exactly what its instruction says with the ticket ticket_id; routing_rules map a ticket's category to "
    "its queue. Each tool result has ok; where its error is retryable, repeat the very same call, request_id included. "
    "When the work is done, answer with a short text and no tool call. Where you cannot call functions, answer with "
    'one JSON object: {"tool": name, "arguments": {...}} or {"finish": true}.'
)


def _function(description: str, **arguments: str) -> dict[str, Any]:
    properties = {name: {"type": "string", "description": text} for name, text in arguments.items()}
    schema = {"type": "object", "properties": properties, "required": list(arguments), "additionalProperties": False}
    return {"description": description, "parameters": schema}


_FUNCTIONS: Final = {
    "get_ticket": _function("Read a ticket.", ticket_id="the ticket"),
    "assign_queue": _function("Put a ticket into a queue.", ticket_id="the ticket", queue="a queue of routing_rules"),
    "add_note": _function(
        "Append a note, once per ticket and request_id.",
        ticket_id="the ticket",
        body="the note's text",
        request_id="an id of your choice that is the same when the call is repeated",
    ),
    "close_ticket": _function("Close a ticket.", ticket_id="the ticket"),
}


class _Episode:
    """One case while it is played."""

    def __init__(self, case: Case, actions: int) -> None:
        self.content = case.content
        self.service = TicketService(case.content)
        self.initial = self.service.snapshot()
        self.trace: list[dict[str, Any]] = []
        self.actions = actions
        self.finished = False
        self.exit: dict[str, Any] | None = None
        self.fault: CandidateError | None = None

    def start(self) -> dict[str, Any]:
        """Return the first observation."""
        return {
            "type": "start",
            "task": {
                "ticket_id": self.content["target"],
                "ticket_ids": list(self.initial),
                "routing_rules": dict(self.content["routing_rules"]),
                "note": self.content["note"],
                "instruction": _INSTRUCTION,
            },
            "tools": list(TOOLS),
            "remaining_actions": self.actions,
        }

    def take(self, step: int, action: Any) -> dict[str, Any] | None:
        """Carry out one action and return the next observation, ``None`` after the finishing action."""
        if _finishes(action):
            self.trace.append({"step": step, "type": "finish", "action": action})
            return None
        outcome = self.service.call(action["tool"], action["arguments"])
        self.trace.append(
            {
                "step": step,
                "type": "tool_call",
                "action": action,
                "result": outcome.result,
                "status": "ok" if outcome.result["ok"] else "tool_error",
                "error_source": outcome.error_source,
                "changes": outcome.changes,
            }
        )
        return {"type": "tool_result", "result": outcome.result, "remaining_actions": self.actions - step - 1}

    def record(self) -> dict[str, Any]:
        """Return all that grading needs and what a reader wants to see."""
        fault = None if self.fault is None else {"reason": self.fault.reason, "message": self.fault.message}
        if fault is not None:
            self.trace.append({"type": "agent_error", "error": fault["message"]})
        return {
            "initial": self.initial,
            "final": self.service.snapshot(),
            "trace": self.trace,
            "tool_calls": sum(row["type"] == "tool_call" for row in self.trace),
            "finished": self.finished,
            "exit": self.exit,
            "candidate_error": fault,
        }


def _finishes(action: Any) -> bool:
    """Tell the finishing action from a call; ``CandidateError`` for what is neither."""
    if not isinstance(action, dict):
        raise CandidateError("Protocol", f"an action must be an object, not a {type(action).__name__}")
    if action.get("finish") is True:
        if action.keys() <= {"finish", "message"} and isinstance(action.get("message", ""), str):
            return True
        raise CandidateError("Protocol", 'a finishing action may have one field beside "finish": "message", a string')
    if action.keys() != {"tool", "arguments"}:
        raise CandidateError("Protocol", 'an action has the fields "tool" and "arguments", or "finish" with true')
    return False


async def drive(case: Case, runtime: Runtime) -> dict[str, Any]:
    """Return the record: tickets before and after, trace, how the program ended, its error or ``None``."""
    # A run may allow fewer actions than the task does, never more.
    episode = _Episode(case, min(ACTIONS, runtime.limits.actions or ACTIONS))
    await runtime.note("initial", episode.initial)
    try:
        if runtime.candidate == "program":
            async with await runtime.start() as process:
                await _play(episode, process)
        else:
            async with await runtime.chat() as chat:
                await _play(episode, ToolAgent(chat, _SYSTEM, _FUNCTIONS))
    except CandidateError as error:
        episode.fault = error
    await runtime.note("final", episode.service.snapshot())
    return episode.record()


async def _play(episode: _Episode, process: Process | ToolAgent) -> None:
    observation: dict[str, Any] | None = episode.start()
    try:
        for step in range(episode.actions):
            observation = episode.take(step, await process.request(observation))
            if observation is None:
                await process.finish("eof")
                episode.finished = True
                return
    finally:
        episode.exit = process.ended.to_json() if process.ended else None
    raise CandidateError("ActionLimit", f"did not finish within {episode.actions} actions")
