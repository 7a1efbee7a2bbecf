"""AgentBench's package name, for task files that import from it; everything is ``casewarden_sdk.agentbench``."""
