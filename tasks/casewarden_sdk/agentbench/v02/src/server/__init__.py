"""AgentBench's server side, of which only the interface of tasks is here."""
