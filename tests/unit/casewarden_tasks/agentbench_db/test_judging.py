"""The rules of judging, with nothing of an answer evaluated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_tasks.agentbench_db.judging import equal_answers, parse_answer, right_answer


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        (' ["a", "b"]', ["a", "b"]),
        ("['it''s']", ["its"]),
        ("[1, 2.5, None, True]", [1, 2.5, None, True]),
        ("('a', 'b')", ["a", "b"]),
        ("{'a': 1}", ["a"]),
        ('"abc"', ["a", "b", "c"]),  # list() of a text is its characters
        (" Paris", [" Paris"]),
        ("5", ["5"]),  # list() takes no number
        ("[a, b]", ["[a, b]"]),
        ("[1+1]", ["[1+1]"]),
        ("[null]", ["[null]"]),
        ("", [""]),
        ("[" * 10000, ["[" * 10000]),
        ("[" + "9" * 5000 + "]", ["[" + "9" * 5000 + "]"]),
        ("-" * 5000 + "1", ["-" * 5000 + "1"]),
        ("['\\d']", ["\\d"]),
        ('["\\ud83d\\ude00"]', ["\ud83d\ude00"]),  # JSON's way to write one character is two of Python's
        ("{[]}", ["{[]}"]),
    ],
)
def test_an_answer_is_pythons_literal_for_a_list_or_a_text(text: str, answers: list[object]) -> None:
    assert parse_answer(text) == answers


@pytest.mark.parametrize(
    "text", ["__import__('os').abort()", "[exit()]", "[open('/etc/passwd').read()]", "[x for x in 'ab']"]
)
def test_nothing_is_evaluated(text: str) -> None:
    assert parse_answer(text) == [text]


@pytest.mark.parametrize(
    ("text", "label", "right"),
    [
        ('["March 19, 1998"]', ["March 19, 1998"], True),
        ('["march 19, 1998"]', ["March 19, 1998"], False),
        ("[7]", ["7"], True),
        ('["7.0"]', ["7"], True),
        (" 7 ", ["7.0"], True),
        ('["7.0000001"]', ["7"], False),
        (" Giza", ["Giza"], False),
        ("Giza", ["Giza"], True),
        ('["nan"]', ["nan"], False),
        ('["b", "a", "b"]', ["a", "b"], True),
        ('["a"]', ["a", "b"], False),
        ('["a", "b", "c"]', ["a", "b"], False),
        ("[1, 2]", ["1", "2"], False),
        ("[]", ["a"], False),
        ("[[1], [2]]", ["1", "2"], False),
        ("[None]", ["None"], False),
        ("[True]", ["1"], True),
        ("[" + "9" * 400 + "]", ["1"], False),
    ],
)
def test_one_element_is_compared_as_a_number_or_as_it_is_and_more_as_sets(
    text: str, label: list[str], right: bool
) -> None:
    assert right_answer(text, label) is right


@given(st.lists(st.text(max_size=10), min_size=1, max_size=4))
def test_the_gold_answer_is_right_unless_it_is_no_number_that_calls_itself_one(label: list[str]) -> None:
    try:
        nan = len(label) == 1 and float(label[0]) != float(label[0])
    except ValueError:
        nan = False
    assert right_answer(repr(label), label) is not nan


@given(st.text())
def test_any_answer_is_judged(text: str) -> None:
    assert right_answer(text, ["x"]) in (True, False)


@given(st.lists(st.text(max_size=3), max_size=4), st.lists(st.text(max_size=3), min_size=2, max_size=4), st.randoms())
def test_neither_order_nor_repetition_counts(given_: list[str], label: list[str], chance: object) -> None:
    again = given_ * 2
    chance.shuffle(again)  # type: ignore[attr-defined]
    assert len(given_) < 2 or equal_answers(again, label) == equal_answers(given_, label)
