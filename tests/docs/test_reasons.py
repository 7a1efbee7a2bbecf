"""Every reason and condition that a user can meet is explained, and none that nobody can."""

from __future__ import annotations

import re
from pathlib import Path

from casewarden.api.conditions import ConditionType
from casewarden.api.reasons import AttemptReason, RunReason

PAGE = (Path(__file__).resolve().parents[2] / "docs/reference/reasons.md").read_text()


def first_column(heading: str) -> list[str]:
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `(\w+)` \|", section, re.M)


def test_the_page_explains_every_condition_of_a_run() -> None:
    assert first_column("Conditions of a run") == list(ConditionType)


def test_the_page_explains_every_reason_of_a_run() -> None:
    assert sorted(first_column("Of a run")) == sorted(RunReason)


def test_the_page_explains_every_reason_of_an_attempt() -> None:
    assert sorted(first_column("Of an attempt")) == sorted(AttemptReason)


def test_a_reason_is_one_word() -> None:
    assert all(re.fullmatch(r"[A-Z][A-Za-z]{1,30}", reason) for reason in (*RunReason, *AttemptReason))
