"""What a reply asks for, and what the agent is shown: AgentBench's formats to the letter."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_tasks.agentbench_os.replies import Action, cleaned, observation, parse

BASH = "```bash\nls /etc\n```"


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        (f"Think: look.\n\nAct: bash\n\n{BASH}", Action("bash", "ls /etc")),
        (f"Act: bash\n{BASH}\nand\n```bash\ncd /\npwd\n```", Action("bash", "ls /etc\n\ncd /\npwd")),
        ("Act: bash\n```sh\nls\n```", Action("bash", "")),
        ("Act: bash\n```bash\nls```", Action("bash", "")),
        ("Act: bash\n```bash\n\n```", Action("bash", "")),
        ("Act: BASH\n```bash\n a  b \n```", Action("bash", " a  b ")),
        ("Think: done\n\nAct: finish", Action("finish")),
        ("Act: answer(220)", Action("answer", "220")),
        ("Act: Answer ( f(x) ) .", Action("answer", " f(x) ")),
        ("Act: answer()", Action("answer", "")),
        ("Act: finish\nAct: answer 220", Action("finish")),
        ("Act: answer(1)\nno\nAct: answer(2)", Action("answer", "2")),
        (f"Act: bash\n{BASH}\nAct: answer(2)", Action("answer", "2")),
        ("Act: answer(2)\nAct: dance", Action("answer", "2")),
        ("Act: answer)2(", None),
        ("act: finish", None),
        ("Act:\nfinish", None),
        ("I finish", None),
        ("", None),
    ],
)
def test_the_last_act_that_can_be_understood_counts(reply, action):
    assert parse(reply) == action


@given(answer=st.text(st.characters(exclude_characters="\n", exclude_categories=("Cs",))), before=st.text(max_size=40))
def test_an_answer_comes_back_as_it_was_put(answer, before):
    assert parse(f"{before}\nAct: answer({answer})") == Action("answer", answer)


@given(st.text())
def test_any_text_is_a_reply_of_some_kind_or_none(reply):
    action = parse(reply)
    assert action is None or (action.text is None) == (action.kind == "finish")


def test_a_reply_of_open_fences_is_read_in_no_time():
    began = time.process_time()
    assert parse("Act: bash\n" + "```bash\nx" * 100_000) == Action("bash", "")
    assert time.process_time() - began < 5


def test_output_is_shown_whole_up_to_800_characters_and_cut_to_780_beyond():
    assert observation("") == "The output of the OS is empty."
    assert observation("a\n") == "The output of the OS:\n\na\n"
    assert observation("x" * 800) == "The output of the OS:\n\n" + "x" * 800
    head, cut, note = observation("é" * 801).partition("é" * 780)
    assert (head, cut) == ("The output of the OS:\n\n", "é" * 780)
    assert note.startswith("\n[")
    assert "é" not in note


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (b"\x1b[01;34mbin\x1b[0m\n", "bin\n"),
        (b"\x1b]0;root@case: /\x07# ", "# "),
        (b"\x1b[?2004hls\x1b[?2004l\x07", "ls"),
        (b"caf\xe9 \xff", "caf\ufffd \ufffd"),
        (b"\x1b", "\x1b"),
    ],
)
def test_what_a_terminal_carries_out_is_left_out_and_bytes_that_are_no_text_are_shown_as_such(written, shown):
    assert cleaned(written) == shown


@given(st.binary())
def test_any_bytes_can_be_shown(written):
    assert cleaned(written).encode("utf-8") is not None
