from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden.cli.text import clean, cut, one_line

HOSTILE = [
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b]0;title\x07text", "text"),
    ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
    ("\x9b31mred", "red"),
    ("a\x1b[2Jb\x1b[Hc", "abc"),
    ("\x1bPq#0\x1b\\x", "x"),
    ("\x1bcx", "x"),
    ("over\rwritten", "overwritten"),
    ("bell\x07", "bell\ufffd"),
    ("back\x08space", "back\ufffdspace"),
    ("\u202eturned", "\ufffdturned"),
    ("tab\tand\nline", "tab\tand\nline"),
    ("λ 世界 🙂", "λ 世界 🙂"),
    ("\x1b", ""),
    ("half \x1b[", "half "),
]


@pytest.mark.parametrize(("text", "left"), HOSTILE)
def test_foreign_text_cannot_steer_a_terminal(text: str, left: str) -> None:
    assert clean(text) == left


@given(st.text(st.characters(min_codepoint=0, max_codepoint=0x2FFF, exclude_categories=())))
def test_no_control_character_is_left(text: str) -> None:
    left = clean(text)

    assert all(unicodedata.category(character) not in ("Cc", "Cs") or character in "\n\t" for character in left)
    assert clean(left) == left


@given(st.text(), st.integers(1, 50))
def test_one_line_is_one_line_of_at_most_its_width(text: str, width: int) -> None:
    line = one_line(text, width)

    assert len(line) <= width
    assert len(line.splitlines()) <= 1


def test_what_is_cut_is_marked() -> None:
    assert cut("abcdef", 4) == "abc…"
    assert cut("abcd", 4) == "abcd"
