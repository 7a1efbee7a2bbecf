"""One finite JSON value per line, and nothing that only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_sdk.errors import CandidateError
from casewarden_sdk.jsonlines import MAX_DEPTH, dump_line, parse_line

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(_JSON)
def test_a_value_survives_its_line_and_no_value_breaks_the_line(value):
    line = dump_line(value)
    assert b"\n" not in line
    assert parse_line(line) == value


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_a_breach_of_the_protocol(line):
    try:
        value = parse_line(line)
    except CandidateError:
        return
    assert parse_line(dump_line(value)) == value


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"NaN",
        b"[Infinity]",
        b'{"a": -Infinity}',
        b"1e999",
        b"[-1e999]",
        b"1 2",
        b"{'a': 1}",
        b"\xff",
        b'"\xc3"',
        b"\xef\xbb\xbf1",
        "1".encode("utf-16"),
        b"[" * 100_000,
        b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1),
    ],
)
def test_what_is_no_finite_json_value_is_refused(line):
    with pytest.raises(CandidateError, match="no finite JSON"):
        parse_line(line)
