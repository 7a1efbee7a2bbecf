"""The controls over the pack's own driver."""

from __future__ import annotations

import pytest
from support.agentbench_controls import Controls

from casewarden_sdk.contract import Control
from casewarden_tasks.agentbench_webshop import PACK

# The reference must resolve all; what is wrong with a fault shows in an easy and a hard goal of three kinds.
CONTROLS = Controls(PACK, few=6)


def test_the_reference_resolves_every_case_with_the_score_1() -> None:
    assert CONTROLS.statuses("reference") == {"passed"}
    assert CONTROLS.score("reference") == "1"


def test_the_null_agent_has_the_score_0() -> None:
    assert CONTROLS.statuses("null-agent") == {"agent_error"}
    assert CONTROLS.score("null-agent") == "0"


def test_the_crashing_agent_is_an_agent_error_everywhere() -> None:
    assert CONTROLS.statuses("crashing-agent") == {"agent_error"}


@pytest.mark.parametrize("fault", CONTROLS.faults, ids=lambda fault: fault.name)
def test_a_fault_is_caught_in_its_target_and_breaks_what_it_declares_and_nothing_else(fault: Control) -> None:
    assert CONTROLS.failed(fault.name) == {fault.target, *fault.collateral}
    assert all(one.verdict.status == "agent_error" for one in CONTROLS.played(fault.name)) == fault.protocol_fault


def test_what_was_not_as_asked_is_said() -> None:
    said = {name: CONTROLS.played(name)[0].verdict.error or "" for name in ("overpays", "forgets-the-options")}
    assert said["overpays"].startswith("price: ")
    assert said["forgets-the-options"].startswith("options: 0 of 1 ")
