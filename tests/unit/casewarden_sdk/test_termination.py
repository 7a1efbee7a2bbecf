"""The termination message: small enough for the kubelet, and never mistaken when it was cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_sdk.termination import MESSAGE_BYTES, cut_text, decode_termination, encode_termination


@given(st.text(), st.text(alphabet="01", min_size=1, max_size=64), st.floats(0, 1e6))
def test_every_message_fits_and_reads_back(error, checks, seconds):
    text = encode_termination("failed", checks, "d" * 64, "Exited", error, seconds)
    assert len(text.encode()) <= MESSAGE_BYTES
    document = decode_termination(text)
    assert document is not None
    assert (document["checks"], document["seconds"]) == (checks, seconds)


@given(st.data())
def test_no_cut_and_no_change_of_a_byte_goes_unnoticed(data):
    text = encode_termination("passed", "11", "d" * 64, None, "é", 1.5)
    position = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(min_codepoint=33, max_codepoint=126).filter(lambda it: it != text[position]))
    assert decode_termination(text[:position]) is None
    changed = text[:position] + other + text[position + 1 :]
    # A changed exponent or separator may spell the same document; then it says the same.
    assert decode_termination(changed) in (None, decode_termination(text))


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", '{"v": 1}', '{"v": 2, "sum": ""}', "[" * 9999, "x"])
def test_what_is_no_message_of_ours_is_none(text):
    assert decode_termination(text) is None


@given(st.text(), st.integers(0, 300))
def test_cut_text_has_no_controls_and_never_more_bytes(text, limit):
    cut = cut_text(text, limit)
    assert len(cut.encode("utf-8")) <= limit
    assert all(character.isprintable() for character in cut)


def test_an_escape_sequence_becomes_blanks():
    assert cut_text("a\x1b[31mb\nc\ud800") == "a [31mb c "
    assert cut_text(None) is None
