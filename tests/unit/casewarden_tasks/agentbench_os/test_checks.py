"""Comparisons of an answer with a reference, and the judgement of a record: pure, whatever they are given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_tasks.agentbench_os.checks import PROGRAMS, matches
from casewarden_tasks.agentbench_os.judging import finding

TEXTS = st.text(max_size=30)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
TWIN = {"where": "twin", "language": "bash", "code": "seq 4 | wc -l"}
COMPARE = {"where": "grader", "program": "integer-match"}
DEED = {"where": "sandbox", "language": "bash", "code": "true"}


@pytest.mark.parametrize(
    ("program", "answer", "reference", "right"),
    [
        ("integer-match", "4", "4\n", True),
        ("integer-match", " 04 ", "4", True),
        ("integer-match", "5", "4", False),
        ("integer-match", "4.0", "4", False),
        ("integer-match", "The answer is 4.", "4", False),
        ("integer-match", "None", "4", False),
        ("integer-match", "4", "", False),
        ("integer-match", "9" * 100_000, "4", False),
        ("string-match", "a\r\nb ", "a\nb\n", True),
        ("string-match", "A", "a", False),
        ("containing", "it is /etc/passwd, I think", "/etc/passwd\n", True),
        ("containing", "it is /etc", "/etc/passwd", False),
        ("containing", "anything", "", False),
        ("in", "passwd", "/etc/passwd\n", True),
        ("in", "", "/etc/passwd", False),
        ("size-match", "8.0K", "8.0K\n", True),
        ("size-match", "8192", "8K", True),
        ("size-match", "10KB", "10K", True),
        ("size-match", "0.5 MiB", "512K", True),
        ("size-match", "1 Byte", "1B", True),
        ("size-match", "8M", "8K", False),
        ("size-match", "8 Kelvin", "8K", False),
        ("size-match", "-8K", "-8K", False),
        ("size-match", "1e3", "1000", False),
    ],
)
def test_a_comparison_is_what_its_name_says(program, answer, reference, right):
    assert PROGRAMS[program](answer, reference) is right


@given(program=st.sampled_from(sorted(PROGRAMS)), answer=TEXTS, reference=TEXTS)
def test_no_text_makes_a_comparison_raise(program, answer, reference):
    assert PROGRAMS[program](answer, reference) in (True, False)


@given(number=st.integers(), other=st.integers())
def test_integers_are_compared_as_numbers(number, other):
    assert PROGRAMS["integer-match"](f" {number}\n", str(other)) is (number == other)


@pytest.mark.parametrize(
    ("rule", "answer", "right"),
    [
        ({"answer": "log", "strip": True}, " log\n", True),
        ({"answer": "log", "strip": False}, "log ", False),
        ({"answer": " log", "strip": True}, " log", False),
        ({"answer": "None", "strip": True}, None, False),
        ({"regex": "^[0-9]+$", "strip": True}, " 17 ", True),
        ({"regex": "^[0-9]+$", "strip": True}, "x", False),
        ({"regex": "", "strip": True}, None, False),
    ],
)
def test_a_match_strips_the_answer_alone_and_no_answer_matches_nothing(rule, answer, right):
    assert matches(rule, answer) is right


def reference(code, output):
    return {"where": "twin", "code": code, "output": output}


@pytest.mark.parametrize(
    ("steps", "facts", "told"),
    [
        ([TWIN, COMPARE], {"answer": "4", "steps": [reference(0, "4\n"), {}]}, ""),
        ([TWIN, COMPARE], {"answer": "5", "steps": [reference(0, "4"), {"code": 0}]}, "'5'; the reference is '4'"),
        ([TWIN, COMPARE], {"answer": None, "steps": [reference(0, "4\n"), {}]}, "the answer is 'None'"),
        ([TWIN, COMPARE], {"answer": "4", "steps": [reference(1, "4\n")]}, "the reference command ended with 1"),
        ([TWIN, COMPARE], {"answer": "4", "steps": [reference(0, "4\n")]}, "check 1 was not made"),
        ([TWIN, COMPARE], {"answer": "4", "steps": [reference(0, "4\n"), {}], "changed": ["/usr/bin/wc"]}, ""),
        ([DEED], {"answer": None, "steps": [{"code": 0, "output": ""}]}, ""),
        ([DEED], {"answer": None, "steps": [{"code": 3, "output": "no user"}]}, "check 0 ended with 3: 'no user'"),
        ([DEED], {"answer": None, "steps": [{"code": None, "output": ""}]}, "check 0 ended with None"),
        ([DEED], {"answer": None, "steps": [{"code": False, "output": ""}]}, "check 0 ended with False"),
        ([DEED], {"answer": None, "steps": [{"code": 0, "output": ""}], "changed": ["/usr/bin/id"]}, "['/usr/bin/id']"),
        ([DEED], {"answer": None, "steps": None}, "check 0 was not made"),
    ],
)  # fmt: skip
def test_a_pipeline_stops_at_the_first_check_that_fails_and_says_which(steps, facts, told):
    found = finding({"steps": steps}, {"committed": True, **facts})
    assert (told in found) if told else (found == "")


def test_what_was_never_committed_is_not_passed():
    right = {"answer": "log", "strip": True}
    assert finding({"match": right}, {"committed": True, "answer": "log"}) == ""
    assert finding({"match": right}, {"answer": "log"})
    assert "not 'log'" in finding({"match": right}, {"committed": True, "answer": "logs"})


@given(facts=st.fixed_dictionaries({"committed": JSON, "answer": JSON, "steps": JSON, "changed": JSON}))
def test_no_record_makes_the_judgement_raise(facts):
    for sample in ({"match": {"answer": "x", "strip": True}}, {"steps": [TWIN, COMPARE]}, {"steps": [DEED]}):
        assert isinstance(finding(sample, facts), str)
