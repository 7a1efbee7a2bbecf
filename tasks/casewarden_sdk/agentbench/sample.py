"""Plays one sample to its end, whatever becomes of task and agent, and writes down what came of it.

The record is what grading needs: ``output`` (a ``TaskOutput``), ``cause`` (who ended it before the task was done:
party, reason, message; null where nobody did), ``context_limit``, ``replies`` (turns that the agent took), ``told``
(the task was given CANCELLED), ``ended`` (``returned``, ``raised``, or ``forced``), ``facts`` (the environment's own).
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import traceback
from typing import Any, Dict, Mapping, Optional, Union

from casewarden_sdk.canonical import canonical
from casewarden_sdk.contract import JSON
from casewarden_sdk.errors import CandidateError, EnvironmentFailure

from .messages import SampleIndex, TaskOutput, TaskSampleExecutionResult
from .session import Session, ThreadSession
from .statuses import SampleStatus
from .task import Task

__all__ = ["FORCED", "RAISED", "RETURNED", "cause_of", "play_sample"]

RETURNED, RAISED, FORCED = "returned", "raised", "forced"
# How long a coroutine gets to clean up once it is cancelled the hard way.
_FORCE_SECONDS = 5.0
_TRACEBACK = 8000

Cause = Union[CandidateError, EnvironmentFailure, None]


async def play_sample(
    task: Task,
    index: SampleIndex,
    session: Session,
    grace_seconds: float,
    blames_agent: bool = False,
    threaded: bool = False,
) -> Dict[str, JSON]:
    """Run ``task.start_sample`` and return the record.

    From the session's ``cancel`` on the task has ``grace_seconds`` to return; then its coroutine is cancelled.
    ``blames_agent`` says that what the task raises after a turn of the agent's is the agent's doing. ``threaded`` says
    that the task may hold up the loop that it runs in: it gets a thread, which is left behind where it does not end.
    """
    if threaded:
        running = _in_a_thread(task, index, session)
    else:
        running = asyncio.ensure_future(task.start_sample(index, session))
    over = asyncio.ensure_future(session.until_cancelled())
    try:
        await asyncio.wait({running, over}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            await asyncio.wait({running}, timeout=grace_seconds)
        ended = RETURNED if running.done() else FORCED
        if ended == FORCED:
            running.cancel()
            await asyncio.wait({running}, timeout=_FORCE_SECONDS)
    finally:
        for waiting in (running, over):
            waiting.cancel()
    status, result, cause, trace = SampleStatus.UNKNOWN, None, session.cause, ""
    if running.done() and not running.cancelled():
        try:
            executed = _executed(running.result())
            status, result = executed.status, executed.result
        except Exception as error:
            ended, trace = RAISED, "".join(traceback.format_exception(type(error), error, error.__traceback__))
            sys.stderr.write(trace)
            cause = cause or cause_of(error, session.replies > 0, blames_agent)
            status = SampleStatus.UNKNOWN if isinstance(cause, CandidateError) else SampleStatus.TASK_ERROR
    return {
        "output": TaskOutput(index, status, result, session.history).dict(),
        "cause": _cause_json(cause),
        "context_limit": session.met_context_limit,
        "replies": session.replies,
        "told": session.was_told,
        "ended": ended,
        "facts": dict(session.facts),
        **({"traceback": trace[-_TRACEBACK:]} if trace else {}),
    }


def _in_a_thread(task: Task, index: SampleIndex, session: Session) -> asyncio.Future[Any]:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    inner = ThreadSession(session, loop)

    def tell(result: Any, error: Optional[BaseException]) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(error if isinstance(error, Exception) else RuntimeError(f"the task ended by {error!r}"))

    def work() -> None:
        result, error = None, None
        try:
            result = asyncio.run(task.start_sample(index, inner))
        except BaseException as raised:
            error = raised
        # A loop that is closed has no use for it any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=work, name="start_sample", daemon=True).start()
    return done


def cause_of(error: Exception, agent_spoke: bool, blames_agent: bool) -> Cause:
    """Say who is to blame for what a task raised; ``verdicts`` has the table."""
    if isinstance(error, (CandidateError, EnvironmentFailure)):
        return error
    what = f"{type(error).__name__}: {error}"
    if agent_spoke and (blames_agent or isinstance(error, UnicodeError)):
        return CandidateError("Protocol", f"what the agent said made the task fail: {what}")
    return EnvironmentFailure("TaskFailed", f"the task failed: {what}")


def _executed(returned: Any) -> TaskSampleExecutionResult:
    if isinstance(returned, TaskSampleExecutionResult):
        executed = returned
    elif isinstance(returned, Mapping) or (hasattr(returned, "status") and hasattr(returned, "result")):
        fields = returned if isinstance(returned, Mapping) else vars(returned)
        executed = TaskSampleExecutionResult.parse_obj(dict(fields))
    else:
        raise TypeError(f"start_sample returned {returned!r}; it must return a TaskSampleExecutionResult")
    if executed.status is SampleStatus.RUNNING:
        raise ValueError("start_sample returned with the status running; say what the sample came to")
    try:
        canonical(executed.dict())
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the result of the sample is no plain JSON: {error}") from None
    return executed


def _cause_json(cause: Cause) -> Optional[Dict[str, str]]:
    if cause is None:
        return None
    party = "candidate" if isinstance(cause, CandidateError) else "environment"
    return {"party": party, "reason": cause.reason, "message": cause.message}
