"""Where AgentBench v0.1 had its tasks: importing it says what becomes what."""

from casewarden_sdk.agentbench.task import V01_METHODS, refuse_v01

raise refuse_v01("a file that imports src.task", list(V01_METHODS))
