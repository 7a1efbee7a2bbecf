"""Candidates that try to get out, to stay, or to take the node down. None gains a point."""

from __future__ import annotations

from typing import Any

import pytest
from support.candidates import CRASHES, DAEMON_KEEPS_STATE, FINISHES_AT_ONCE, FORK_BOMB, INT_0X80, OPENS_SOCKETS
from support.kubectl import Kubectl, evalrun, workspace


def assess(kubectl: Kubectl, namespace: str, name: str, task: str, program: str) -> dict[str, Any]:
    """Run a one-file program at seed 17 and return the finished run's status."""
    kubectl.apply(
        workspace(namespace, name, {"main.py": program}),
        evalrun(namespace, name, task={"name": task}, seeds={"values": [17]}, parallelism=8,
                candidate={"program": {"workspace": {"configMap": name}}}),
    )  # fmt: skip
    status = kubectl.finished(namespace, name, seconds=300)
    assert status["valid"] is True, status
    return status


def test_a_daemon_does_not_carry_state_over_a_restart(kubectl: Kubectl, namespace: str) -> None:
    status = assess(kubectl, namespace, "daemon", "durable-kv", DAEMON_KEEPS_STATE)
    assert status["dimensions"]["persistence"]["passed"] == 0
    assert status["score"] == "0.78333333", "what the control memory-only scores"


@pytest.mark.parametrize(("name", "program"), [("sockets", OPENS_SOCKETS), ("int-0x80", INT_0X80)])
def test_a_program_cannot_open_a_network_socket(kubectl: Kubectl, namespace: str, name: str, program: str) -> None:
    status = assess(kubectl, namespace, name, "support-routing", program)
    errors = [failure.get("error", "") for failure in status["failures"]]
    assert not any("opened" in error for error in errors), errors
    assert status["cases"]["failed"] + status["cases"]["agentErrors"] == status["cases"]["total"]
    assert status["score"] in ("0.35", "0.25"), "finished without acting, or was killed by the filter"


def test_a_fork_bomb_ends_as_an_agent_error_and_the_node_stays_well(kubectl: Kubectl, namespace: str) -> None:
    status = assess(kubectl, namespace, "bomb", "support-routing", FORK_BOMB)
    assert status["cases"]["agentErrors"] == status["cases"]["total"]
    nodes = kubectl("get", "nodes", "-o", 'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}')
    assert set(nodes.split()) == {"True"}
    after = assess(kubectl, namespace, "after-bomb", "support-routing", FINISHES_AT_ONCE)
    assert after["score"] == "0.35"


@pytest.mark.parametrize(
    ("task", "program", "score", "count"),
    [
        ("support-routing", FINISHES_AT_ONCE, "0.35", "failed"),
        ("support-routing", CRASHES, "0.25", "agentErrors"),
        ("durable-kv", FINISHES_AT_ONCE, "0", "failed"),
        ("durable-kv", CRASHES, "0", "agentErrors"),
    ],
    ids=["do-nothing-support", "crash-support", "do-nothing-kv", "crash-kv"],
)
def test_the_floor_is_known(kubectl: Kubectl, namespace: str, task: str, program: str, score: str, count: str) -> None:
    status = assess(kubectl, namespace, "floor", task, program)
    assert status["score"] == score
    assert status["cases"][count] == status["cases"]["total"]
