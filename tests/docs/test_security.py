"""The page on security has every hostile program, as the table says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from casewarden.selftest.table import Program, load

PAGE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()


@pytest.mark.parametrize("program", [item for item in load() if item.kind == "hostile"], ids=lambda item: item.name)
def test_the_page_says_what_each_program_tries_and_must_come_to(program: Program) -> None:
    (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {program.name} |")]
    assert program.tries in line
    if program.zero:
        assert all(name in line for name in program.zero)
        return
    assert all(f"`{status}`" in line for status in program.status)
    assert all(f"`{reason}`" in line for reason in program.reasons if "agent_error" in program.status)
