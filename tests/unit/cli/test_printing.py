from __future__ import annotations

import json

import pytest
import yaml

from casewarden.cli.printing import Output, emit, print_rows, table


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert table(["A", "LONG"], [["wide cell", "x"], ["y", ""]]) == ["A          LONG", "wide cell  x", "y"]


def test_a_cell_of_many_lines_stays_in_its_row() -> None:
    assert table(["A"], [["one\ntwo\x1b[2J"]]) == ["A", "one two"]


def test_absent_cells_are_empty(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows({"a": "A", "b": "B"}, [{"a": None, "b": 0}, {"b": False}])
    assert capsys.readouterr().out == "A  B\n   0\n   False\n"


@pytest.mark.parametrize(("output", "read"), [(Output.JSON, json.loads), (Output.YAML, yaml.safe_load)])
def test_programs_get_the_value_itself(output: Output, read: object, capsys: pytest.CaptureFixture[str]) -> None:
    value = {"score": "0.5", "error": "\x1b[31m λ", "checks": {"basic": None, "x": True}}

    emit(value, output, lambda: pytest.fail("nothing is shown to people"))

    text = capsys.readouterr().out
    assert read(text) == value  # type: ignore[operator]
    assert "\x1b" not in text
