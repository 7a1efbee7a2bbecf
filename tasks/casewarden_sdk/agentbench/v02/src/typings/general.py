"""General types under AgentBench's names."""

from typing import Any, Dict, List, Union

from casewarden_sdk.agentbench.messages import ChatItem as ChatHistoryItem
from casewarden_sdk.agentbench.messages import SampleIndex
from casewarden_sdk.agentbench.statuses import AgentOutputStatus, SampleStatus

JSONObject = Dict[str, Any]
JSONSerializable = Union[None, bool, int, float, str, List[Any], Dict[str, Any]]

__all__ = ["AgentOutputStatus", "ChatHistoryItem", "JSONObject", "JSONSerializable", "SampleIndex", "SampleStatus"]
