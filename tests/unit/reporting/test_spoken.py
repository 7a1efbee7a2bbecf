"""Calls of models as people read them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden.reporting.spoken import spoken

TOOL = {"id": "1", "type": "function", "function": {"name": "find", "arguments": '{"x": 1}'}}


def asked(**document: Any) -> str:
    return spoken("model-in", json.dumps(document))


def answered(**document: Any) -> str:
    return spoken("model-out", json.dumps(document))


def test_the_first_request_is_all_that_was_said() -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    assert asked(messages=messages) == "system: Be brief.\n\nuser: Hello"


def test_a_later_request_is_what_is_new() -> None:
    messages = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": None, "tool_calls": [TOOL]},
        {"role": "tool", "tool_call_id": "1", "content": "found"},
    ]
    assert asked(messages=messages) == "tool: found"


def test_an_answer_shows_what_is_said_and_what_is_called() -> None:
    message = {"role": "assistant", "content": "I look.", "tool_calls": [TOOL]}
    assert answered(choices=[{"message": message}]) == 'assistant: I look.\n→ find({"x": 1})'


def test_the_dialect_of_anthropic_is_read() -> None:
    first = asked(system="Be brief.", messages=[{"role": "user", "content": [{"type": "text", "text": "Hello"}]}])
    assert first == "system: Be brief.\n\nuser: Hello"
    content = [{"type": "text", "text": "I look."}, {"type": "tool_use", "name": "find", "input": {"x": 1}}]
    assert answered(content=content) == 'assistant: I look.\n→ find({"x": 1})'
    result = [{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "found"}]}]
    said = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": content},
            {"role": "user", "content": result}]  # fmt: skip
    assert asked(system="Be brief.", messages=said) == "user: found"


def test_responses_are_read() -> None:
    assert asked(input="Hello") == "user: Hello"
    output = [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
        {"type": "function_call", "name": "find", "arguments": "{}"},
    ]
    assert answered(output=output) == "assistant: Hi\n\nfunction_call: → find({})"


def test_an_error_of_the_endpoint_is_said() -> None:
    assert answered(error={"message": "too long"}) == "error: too long"


@pytest.mark.parametrize(
    "text", ["", "no JSON", "[]", "null", '{"a": 1}', '{"messages": [1]}', "data: {}\n\n", "1" * 5000]
)
@pytest.mark.parametrize("direction", ["model-in", "model-out"])
def test_what_is_in_no_known_dialect_stays_as_it_is(direction: str, text: str) -> None:
    assert spoken(direction, text) == text


def test_what_a_candidate_says_is_never_touched() -> None:
    assert spoken("out", '{"messages": []}') == '{"messages": []}'


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["messages", "role", "content", "choices", "message", "tool_calls", "function", "output",
                         "type", "text", "error", "input", "system"]), inner, max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


@given(_JSON, st.sampled_from(["model-in", "model-out"]))
def test_no_document_breaks_the_report(document: Any, direction: str) -> None:
    assert isinstance(spoken(direction, json.dumps(document)), str)
