"""What is said in OpenAI's words is said in Anthropic's, turn by turn."""

from __future__ import annotations

import pytest

from casewarden_sdk.dialects import from_anthropic, to_anthropic

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "it"}'}}
SCHEMA = {"type": "object"}


def test_a_conversation_with_tools_is_translated_whole() -> None:
    body = to_anthropic({
        "model": "m", "temperature": 0, "max_completion_tokens": 9, "stop": "END",
        "tools": [{"type": "function", "function": {"name": "look", "description": "d", "parameters": SCHEMA}}],
        "messages": [
            {"role": "system", "content": "be good"}, {"role": "user", "content": "hi"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "seen"}, {"role": "user", "content": "and?"},
        ],
    })  # fmt: skip
    assert body == {
        "model": "m", "temperature": 0, "max_tokens": 9, "stop_sequences": ["END"], "system": "be good",
        "tools": [{"name": "look", "description": "d", "input_schema": SCHEMA}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "it"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "seen"}, {"type": "text", "text": "and?"},
            ]},
        ],
    }  # fmt: skip


def test_there_is_always_a_bound_and_never_an_empty_block() -> None:
    body = to_anthropic({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}]})
    assert body == {"max_tokens": 4096, "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}
    with pytest.raises(ValueError, match="only texts"):
        to_anthropic({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})


def test_an_answer_is_read_back() -> None:
    blocks = [
        {"type": "text", "text": "so "},
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "be it"},
    ]
    assert from_anthropic({"content": blocks}) == {"role": "assistant", "content": "so be it"}
    used = [{"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "it"}}]
    assert from_anthropic({"content": used}) == {"role": "assistant", "content": None, "tool_calls": [CALL]}
