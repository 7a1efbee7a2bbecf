"""AgentBench's words for how a sample, and an agent's turn, came out."""

from __future__ import annotations

import enum

__all__ = ["AgentOutputStatus", "SampleStatus"]


class SampleStatus(str, enum.Enum):  # noqa: UP042 - StrEnum is newer than Python 3.9
    """What a sample came to, as the task says it; ``verdicts`` says what Casewarden makes of it."""

    RUNNING = "running"
    COMPLETED = "completed"
    AGENT_CONTEXT_LIMIT = "agent context limit"
    AGENT_VALIDATION_FAILED = "agent validation failed"
    AGENT_INVALID_ACTION = "agent invalid action"
    TASK_LIMIT_REACHED = "task limit reached"
    UNKNOWN = "unknown"
    TASK_ERROR = "task error"


class AgentOutputStatus(str, enum.Enum):  # noqa: UP042 - as above
    """How a turn of the agent ended."""

    NORMAL = "normal"
    CANCELLED = "cancelled"
    AGENT_CONTEXT_LIMIT = "agent context limit"
