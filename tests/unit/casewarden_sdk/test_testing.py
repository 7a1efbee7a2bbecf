"""``play``: what pack authors test their packs with behaves as a case pod does, but for its walls."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.judged_pack import PACK as JUDGED
from support.packs import CONTROLS, LIMITS, REFERENCE, EchoPack, cases

from casewarden_sdk.contract import Limits
from casewarden_sdk.errors import EnvironmentFailure
from casewarden_sdk.testing import play

CASE = cases(17)[0]


def verdict(program: str, **limits: object):
    pack = EchoPack(limits=replace(LIMITS, **limits))  # type: ignore[arg-type]
    return play(pack, CASE, {"main.py": program}).verdict


def test_a_control_is_played_with_its_record_and_notes():
    played = play(EchoPack(), CASE, CONTROLS[0])
    assert played.verdict.passed
    assert played.record["answers"] == [17, {"a": [1, None]}]
    assert played.record["exit"]["code"] == 0
    assert played.notes == (("answers", [17, {"a": [1, None]}]),)


def test_a_folder_is_played_in_place(tmp_path):
    (tmp_path / "main.py").write_text(REFERENCE)
    assert play(EchoPack(), CASE, tmp_path).verdict.passed


def test_the_state_folder_can_be_written_and_the_environment_is_not_passed_on(monkeypatch):
    monkeypatch.setenv("SECRET", "1")
    program = (
        "import os, sys\nopen(os.path.join(sys.argv[1], 'x'), 'w').close()\nassert 'SECRET' not in os.environ\n"
        + REFERENCE
    )
    played = play(EchoPack(), CASE, {"main.py": program}, ["{python}", "-I", "-B", "main.py", "{state}"])
    assert played.verdict.passed


@pytest.mark.parametrize(
    ("program", "limits", "reason"),
    [
        ("import sys; sys.exit(3)", {}, "Exited"),
        ("import time; time.sleep(60)", {"response_seconds": 0.3}, "TimeLimit"),
        (
            "import time; input(); time.sleep(0.4); print(17, flush=True); time.sleep(60)",
            {"case_seconds": 0.8},
            "TimeLimit",
        ),
        (REFERENCE + "import time; time.sleep(60)", {"response_seconds": 0.5}, "TimeLimit"),
        ("print('NaN', flush=True); input()", {}, "Protocol"),
        (REFERENCE + "print(1)", {}, "Protocol"),
        (REFERENCE + "sys.exit(1)", {}, "Exited"),
        ("print('1' * 100000, flush=True); input()", {}, "OutputLimit"),
        (REFERENCE, {"actions": 1}, "ActionLimit"),
    ],
)
def test_what_the_candidate_breaks_is_an_agent_error_with_its_reason(program, limits, reason):
    found = verdict(program, **limits)
    assert (found.status, found.reason) == ("agent_error", reason)


def test_a_program_that_cannot_be_started_is_the_candidates():
    played = play(EchoPack(), CASE, {"main.py": ""}, ["/no/such/program"])
    assert played.verdict.reason == "CannotStartProgram"


def test_a_first_request_over_the_limit_is_the_packs_and_a_later_one_the_candidates():
    with pytest.raises(EnvironmentFailure, match="request_bytes is 2"):
        play(EchoPack(limits=Limits(request_bytes=2)), CASE, CONTROLS[0])
    assert verdict(REFERENCE, request_bytes=4).reason == "OutputLimit"


def test_models_that_the_driver_asks_are_played_by_functions():
    asked = []

    def judge(request):
        asked.append(request)
        return "yes" if request["messages"][-1]["content"] == "42" else {"content": "no"}

    case = JUDGED.cases(17, {})[0]
    reference, fault = (play(JUDGED, case, control, models={"judge": judge}) for control in JUDGED.controls)
    assert (reference.verdict.status, fault.verdict.status) == ("passed", "failed")
    assert asked[0]["temperature"] == 0
    with pytest.raises(EnvironmentFailure, match="no model for 'judge'"):
        play(JUDGED, case, JUDGED.controls[0])
