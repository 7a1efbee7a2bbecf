"""From a sample's status *and its cause* to a verdict: the one table, first match wins.

| # | cause | status of the sample | verdict |
|---|---|---|---|
| 1 | the environment's | any | ``environment_error``, the cause's reason |
| 2 | the agent's: it broke, used up a limit, killed what it acted upon | any | ``agent_error``, the cause's reason |
| 3 | none | ``task error`` or ``running``, as a status that the task returned | ``environment_error``, ``TaskFailed`` |
| 4 | none | ``unknown``, and the agent had not said a word | ``environment_error``, ``EnvironmentFailed`` |
| 5 | none | any other, and the sample is passed | ``passed`` |
| 6 | none | ``agent context limit``, or not ``completed`` after one was met | ``agent_error``, ``ContextLimit`` |
| 7 | none | ``agent validation failed``, ``agent invalid action`` | ``agent_error``, ``Protocol`` |
| 8 | none | ``unknown``, after the agent has said something | ``agent_error``, ``Protocol`` |
| 9 | none | ``completed``, ``task limit reached`` | ``failed`` |

Row 5 does not apply to row 8's status: what is unknown is never passed. The cause is

- the agent's for whatever a session's turn was refused with (limits, exits, broken replies, bytes that are no text),
  for what an environment container's calls on its behalf end with, for what is raised inside ``session.acting()``,
  for any ``UnicodeError`` that a task raises after the agent has said something, and, where the environment declares
  ``blames_agent``, for everything else that it raises then;
- the environment's for an ``EnvironmentFailure``, and for any other exception of the task.
"""

from __future__ import annotations

from typing import Mapping, Optional

from casewarden_sdk.contract import JSON, Case, Verdict
from casewarden_sdk.errors import CandidateError

from .messages import TaskOutput
from .statuses import SampleStatus

__all__ = ["early_verdict", "late_verdict", "output_of"]

_BROKEN = (SampleStatus.AGENT_VALIDATION_FAILED, SampleStatus.AGENT_INVALID_ACTION)


def output_of(record: Mapping[str, JSON]) -> TaskOutput:
    """Return the ``TaskOutput`` that a record holds."""
    return TaskOutput.parse_obj(record["output"])


def early_verdict(case: Case, record: Mapping[str, JSON]) -> Optional[Verdict]:
    """Return the verdict of rows 1 to 4, and of 8: those for which nothing is judged; None for the others."""
    cause, status = record["cause"], output_of(record).status
    if cause is not None and cause["party"] == "environment":
        return Verdict.environment_error(case, cause["reason"], cause["message"])
    if cause is not None:
        return Verdict.agent_error(case, cause["reason"], cause["message"])
    if status in (SampleStatus.TASK_ERROR, SampleStatus.RUNNING):
        return Verdict.environment_error(case, "TaskFailed", f"the task returned the status {status.value!r}")
    if status is not SampleStatus.UNKNOWN:
        return None
    if not record["replies"]:
        message = "the task returned the status 'unknown' before the agent said anything"
        return Verdict.environment_error(case, "EnvironmentFailed", message)
    if record["context_limit"]:
        return Verdict.agent_error(case, "ContextLimit", _CONTEXT)
    return Verdict.agent_error(case, "Protocol", "the task returned the status 'unknown' after the agent had spoken")


def late_verdict(
    case: Case, record: Mapping[str, JSON], checks: Mapping[str, bool], error: Optional[str], metrics: Mapping[str, str]
) -> Verdict:
    """Return the verdict of rows 5 to 7 and 9: the record was judged, and came to ``checks``."""
    status, fault = output_of(record).status, None
    if status is SampleStatus.AGENT_CONTEXT_LIMIT or (record["context_limit"] and status is not SampleStatus.COMPLETED):
        fault = CandidateError("ContextLimit", _CONTEXT)
    elif status in _BROKEN:
        fault = CandidateError("Protocol", f"the sample ended with the status {status.value!r}")
    if all(checks.values()):
        fault = None
    elif error is None and fault is None:
        error = f"the sample ended with the status {status.value!r} and is not passed"
    return Verdict.assessed(case, checks, error, fault, metrics)


_CONTEXT = "the history is longer than what the agent can read"
