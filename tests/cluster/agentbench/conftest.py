"""Tests on AgentBench's own data: they are there where the data is, and `make test-agentbench` runs them."""

from __future__ import annotations

from support.agentbench_data import DATA

collect_ignore_glob = [] if DATA else ["test_*.py"]
