"""Statuses under AgentBench's names."""

from casewarden_sdk.agentbench.statuses import AgentOutputStatus, SampleStatus

__all__ = ["AgentOutputStatus", "SampleStatus"]
