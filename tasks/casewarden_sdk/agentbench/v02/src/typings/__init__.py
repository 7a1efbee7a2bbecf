"""AgentBench's types under their names."""

from .general import JSONObject, JSONSerializable, SampleIndex
from .output import AgentOutput, ChatHistoryItem, TaskOutput, TaskSampleExecutionResult
from .status import AgentOutputStatus, SampleStatus

__all__ = [
    "AgentOutput",
    "AgentOutputStatus",
    "ChatHistoryItem",
    "JSONObject",
    "JSONSerializable",
    "SampleIndex",
    "SampleStatus",
    "TaskOutput",
    "TaskSampleExecutionResult",
]
