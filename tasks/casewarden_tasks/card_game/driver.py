"""Plays a case with whatever the candidate is, a program, a server or a model: all are spoken to in chat messages."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from casewarden_sdk.contract import Case
from casewarden_sdk.errors import CandidateError

from .match import Match

if TYPE_CHECKING:
    from casewarden_sdk.runtime import Runtime

__all__ = ["drive"]


async def drive(case: Case, runtime: Runtime) -> dict[str, Any]:
    """Return the record: the game, the replies, how the candidate ended, and what it broke or ``None``."""
    fault: CandidateError | None = None
    ended: dict[str, Any] | None = None
    async with await runtime.chat() as chat:

        async def ask(messages: Sequence[Mapping[str, str]]) -> str:
            return str((await chat.action(messages)).get("content") or "")

        match = Match(case.content, ask, time.monotonic)
        try:
            await match.play()
            ended = (await chat.finish("eof")).to_json()
        except CandidateError as error:
            fault = error
    record = match.record()
    await runtime.note("table", record["picture"].splitlines())
    return {
        **record,
        "exit": ended,
        "candidate_error": None if fault is None else {"reason": fault.reason, "message": fault.message},
    }
