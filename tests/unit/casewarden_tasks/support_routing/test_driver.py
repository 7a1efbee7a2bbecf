"""What is an action, what ends an episode, and whose error it is when neither is sent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from casewarden_sdk.contract import AGENT_ERROR, PASSED
from casewarden_sdk.testing import Played, play
from casewarden_tasks.support_routing import PACK, SupportRouting

CASES = {case.id: case for case in PACK.cases(17, {})}
SAYS = """import sys
for line in sys.stdin:
    print({line!r}, flush=True)
"""


def played(line: str, case: str = "route-open-ticket") -> Played:
    return play(PACK, CASES[case], {"main.py": SAYS.format(line=line)})


@pytest.mark.parametrize(
    "line",
    [
        "[]", "null", '"finish"', "{}", '{"finish": false}', '{"finish": 1}', '{"finish": true, "message": 5}',
        '{"finish": true, "score": 1}', '{"tool": "get_ticket"}', '{"tool": "get_ticket", "arguments": {}, "note": 1}',
        "not json", "NaN", '{"finish": true', "[" * 300 + "]" * 300,
    ],
)  # fmt: skip
def test_what_is_no_action_breaks_the_protocol(line: str) -> None:
    result = played(line)
    assert (result.verdict.status, result.verdict.reason) == (AGENT_ERROR, "Protocol")
    assert result.verdict.checks["protocol"] is False
    assert result.verdict.checks["scope"] is True
    assert result.record["trace"][-1]["type"] == "agent_error"


@pytest.mark.parametrize("line", ['{"tool": "drop_table", "arguments": {}}', '{"tool": 5, "arguments": 5}'])
def test_a_call_that_the_service_refuses_is_an_action_like_any_other(line: str) -> None:
    result = played(line)
    assert (result.verdict.status, result.verdict.reason) == (AGENT_ERROR, "ActionLimit")
    assert result.record["tool_calls"] == 12
    assert {row.get("error_source") for row in result.record["trace"][:-1]} == {"tool_validation"}


def test_claiming_success_changes_nothing() -> None:
    result = played('{"finish": true, "message": "score 1, all checks passed"}')
    assert result.record["final"] == result.record["initial"]
    assert result.verdict.checks == {"routing": False, "notes": False, "closure": True, "scope": True, "protocol": True}


def test_the_tickets_are_noted_before_and_after() -> None:
    assert [name for name, _ in played('{"finish": true}').notes] == ["initial", "final"]


@pytest.mark.parametrize(
    ("last", "reason"), [("sys.exit(3)", "Exited"), ("print('bye')", "Protocol"), ("os.kill(os.getpid(), 9)", "Exited")]
)
def test_a_program_must_end_well_after_finishing(last: str, reason: str) -> None:
    main = (
        f"import os, sys\nsys.stdin.readline()\nprint('{{\"finish\": true}}', flush=True)\nsys.stdin.read()\n{last}\n"
    )
    result = play(PACK, CASES["route-open-ticket"], {"main.py": main})
    assert (result.verdict.status, result.verdict.reason) == (AGENT_ERROR, reason)
    assert result.verdict.checks["protocol"] is False


def test_a_run_may_allow_fewer_actions_and_says_so_in_the_first_observation() -> None:
    class Tighter(SupportRouting):
        limits = replace(SupportRouting.limits, actions=2)

    echo = """import json, sys
for line in sys.stdin:
    left = str(json.loads(line)["remaining_actions"])
    print(json.dumps({"tool": "get_ticket", "arguments": {"ticket_id": left}}), flush=True)
"""
    record: Any = play(Tighter(), CASES["route-open-ticket"], {"main.py": echo}).record
    assert [row["action"]["arguments"]["ticket_id"] for row in record["trace"][:-1]] == ["2", "1"]
    assert record["candidate_error"]["reason"] == "ActionLimit"


def test_the_reference_passes_with_an_outage_on_the_way() -> None:
    (reference,) = (control for control in PACK.controls if control.kind == "reference")
    assert play(PACK, CASES["retry-after-commit"], reference).verdict.status == PASSED
