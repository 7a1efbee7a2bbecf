"""The controls over the pack's own driver."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from casewarden_sdk.contract import Control
from casewarden_sdk.testing import Played, play
from casewarden_tasks.agentbench_mind2web import PACK

FAULTS = [control for control in PACK.controls if control.kind == "fault"]
FIRST = 8


@functools.cache
def played(name: str) -> tuple[Played, ...]:
    control = next(control for control in PACK.controls if control.name == name)
    cases = PACK.cases(0, {})
    # The reference must resolve all; what is wrong with a fault shows in texts, choices and clicks.
    return tuple(play(PACK, case, control, seed=0) for case in (cases if name == "reference" else cases[:FIRST]))


def failed(control: Control) -> set[str]:
    return {name for one in played(control.name) for name, right in one.verdict.checks.items() if not right}


def score(name: str) -> Any:
    rows = [
        {"seed": 0, "repeat": 0, "params": {}, "index": number, "status": one.verdict.status,
         "output": one.record["output"] if one.record else None}
        for number, one in enumerate(played(name))
    ]  # fmt: skip
    return PACK.aggregate(rows)["score"]


def test_the_reference_resolves_every_case_with_the_score_1() -> None:
    assert {one.verdict.status for one in played("reference")} == {"passed"}
    assert score("reference") == "1"


def test_the_null_agent_has_the_score_0() -> None:
    assert {one.verdict.status for one in played("null-agent")} == {"agent_error"}
    assert score("null-agent") == "0"


def test_the_crashing_agent_is_an_agent_error_everywhere() -> None:
    assert {one.verdict.status for one in played("crashing-agent")} == {"agent_error"}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_caught_in_its_target_and_breaks_what_it_declares_and_nothing_else(fault: Control) -> None:
    assert failed(fault) == {fault.target, *fault.collateral}
    assert all(one.verdict.status == "agent_error" for one in played(fault.name)) == fault.protocol_fault


def test_what_is_not_right_is_said() -> None:
    said = {name: played(name)[0].verdict.error or "" for name in ("takes-something-else", "clicks-everything")}
    assert said == {
        "takes-something-else": "element: another one was chosen",
        "clicks-everything": "operation: 'CLICK' and not 'TYPE Lunde'",
    }
