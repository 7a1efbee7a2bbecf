"""``Task`` and ``Session`` under AgentBench's name."""

from casewarden_sdk.agentbench.session import Session
from casewarden_sdk.agentbench.task import Task

__all__ = ["Session", "Task"]
