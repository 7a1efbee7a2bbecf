"""Outputs under AgentBench's names."""

from casewarden_sdk.agentbench.messages import AgentOutput, TaskOutput, TaskSampleExecutionResult
from casewarden_sdk.agentbench.messages import ChatItem as ChatHistoryItem

__all__ = ["AgentOutput", "ChatHistoryItem", "TaskOutput", "TaskSampleExecutionResult"]
