"""Plays a durable-kv case: the sessions one after another, each a new process on the same state folder.

Judges nothing: the record has every response and how each session ended, and where the candidate broke it stops there
and says how.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from casewarden_sdk.contract import Case
from casewarden_sdk.errors import CandidateError

if TYPE_CHECKING:
    from casewarden_sdk.runtime import Runtime

__all__ = ["drive"]


async def drive(case: Case, runtime: Runtime) -> dict[str, Any]:
    """Return the record: per session its responses and exit, and the candidate's error or ``None``."""
    sessions: list[dict[str, Any]] = []
    fault: CandidateError | None = None
    try:
        for session in case.content["sessions"]:
            row: dict[str, Any] = {"responses": [], "exit": None}
            sessions.append(row)
            await _play(session, row, runtime)
    except CandidateError as error:
        fault = error
    return {
        "sessions": sessions,
        "candidate_error": None if fault is None else {"reason": fault.reason, "message": fault.message},
    }


async def _play(session: dict[str, Any], row: dict[str, Any], runtime: Runtime) -> None:
    """Play one session into its row; what was seen before the candidate broke stays there."""
    async with await runtime.start() as process:
        try:
            for request in session["requests"]:
                row["responses"].append(await process.request(request))
            await process.finish(session["stop"])
        finally:
            row["exit"] = process.ended.to_json() if process.ended else None
