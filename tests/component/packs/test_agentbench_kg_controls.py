"""The controls over the pack's own driver."""

from __future__ import annotations

import pytest
from support.agentbench_controls import Controls

from casewarden_sdk.contract import Control
from casewarden_tasks.agentbench_kg import PACK

# The reference must resolve all; what is wrong with a fault shows in a question of every kind.
CONTROLS = Controls(PACK, few=9)


def test_the_reference_resolves_every_case_with_the_score_1() -> None:
    assert CONTROLS.statuses("reference") == {"passed"}
    assert CONTROLS.score("reference") == "1"


def test_the_null_agent_has_the_score_0() -> None:
    assert CONTROLS.statuses("null-agent") == {"failed"}
    assert CONTROLS.score("null-agent") == "0"


def test_the_crashing_agent_is_an_agent_error_everywhere() -> None:
    assert CONTROLS.statuses("crashing-agent") == {"agent_error"}


@pytest.mark.parametrize("fault", CONTROLS.faults, ids=lambda fault: fault.name)
def test_a_fault_is_caught_in_its_target_and_breaks_what_it_declares_and_nothing_else(fault: Control) -> None:
    assert CONTROLS.failed(fault.name) == {fault.target, *fault.collateral}
    assert CONTROLS.statuses(fault.name) <= {"passed", "failed"}


def test_what_is_missing_and_what_is_too_much_is_said() -> None:
    said = {
        name: [one.verdict.error or "" for one in CONTROLS.played(name)]
        for name in ("narrows-once-more", "never-answers")
    }
    assert any(text.startswith("missing: m.0p") and text.endswith(" more") for text in said["narrows-once-more"])
    assert set(said["never-answers"]) == {"no variable was named that stands for anything"}
