from __future__ import annotations

from typing import Any

import pytest

from casewarden.cli.outcome import exit_code, is_finished, state_of, verdict_line


def status(finished: str, passed: str = "Unknown", **more: Any) -> dict[str, Any]:
    reason, message = more.pop("why", ("Completed", ""))
    conditions = [
        {"type": "Finished", "status": finished, "reason": reason, "message": message},
        {"type": "Complete", "status": more.pop("complete", finished)},
        {"type": "Passed", "status": passed},
    ]
    return {"conditions": conditions, **more}


@pytest.mark.parametrize(
    ("shown", "code"),
    [
        (status("True", "True", valid=True), 0),
        (status("True", "False", valid=True), 1),
        (status("True", "Unknown", valid=False), 2),
        (status("True", "True", valid=False), 2),
        (status("False"), 2),
        ({}, 2),
    ],
)
def test_the_exit_code_is_good_only_for_a_valid_run_that_passed(shown: dict[str, Any], code: int) -> None:
    assert exit_code(shown) == code


@pytest.mark.parametrize(
    ("shown", "state"),
    [
        ({}, "waiting for the operator"),
        (status("False", why=("Planning", "the task is asked")), "planning"),
        (status("False", why=("Running", "3/4 cases are done")), "running"),
        (status("False", why=("Suspended", "spec.suspend is true")), "suspended"),
        (status("False", why=("QuotaExceeded", "a quota is used up")), "QuotaExceeded: a quota is used up"),
        (status("True"), "complete"),
        (status("True", complete="False", why=("ImagePull", "no such image")), "failed: ImagePull: no such image"),
    ],
)
def test_a_state_is_said_in_a_few_words(shown: dict[str, Any], state: str) -> None:
    assert state_of(shown) == state


def test_only_a_true_condition_is_finished() -> None:
    assert is_finished(status("True"))
    assert not is_finished(status("Unknown"))
    assert not is_finished({})


def test_every_case_that_did_not_pass_and_every_second_try_is_in_the_verdict() -> None:
    cases = {"total": 9, "passed": 4, "failed": 2, "agentErrors": 1, "environmentErrors": 2}
    attempts = {"environmentRetries": 3, "interruptions": 1}

    line = verdict_line(status("True", valid=False, cases=cases, attempts=attempts))

    assert line == (
        "no score: 4 of 9 cases passed, 2 failed, 1 agent errors, 2 environment errors, 3 retries, 1 interruptions"
    )


def test_a_run_without_cases_has_no_score_and_no_counts() -> None:
    assert verdict_line(status("True", valid=False)) == "no score"
