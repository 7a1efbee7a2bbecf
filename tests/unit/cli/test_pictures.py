"""States that are texts are pictures for people: the report has them behind a case's transcript."""

from __future__ import annotations

from casewarden.cli.reporting import pictures


def test_a_text_becomes_a_row_and_other_states_do_not() -> None:
    states = b'{"t":1.5,"name":"table","value":"step 1\\n  a"}\n{"t":2,"name":"end","value":{"a":1}}\n\n'
    assert pictures(states) == [{"t": 1.5, "session": 0, "dir": "table", "text": "step 1\n  a"}]


def test_a_case_without_states_has_none() -> None:
    assert pictures(b"") == []
