"""AgentBench's prompters to the letter, and formats that can reach nothing but the answer."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_sdk.prompters import (
    MODEL_PROMPTERS,
    PROMPTERS,
    PrompterError,
    check_prompter,
    check_return_format,
    formatted,
    prompted,
    says_context_limit,
)

HISTORY = [
    {"role": "user", "content": "a {content}"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "args", "body"),
    [
        (
            "role_content_dict", {},
            {"messages": [{"role": "user", "content": "a {content}"}, {"role": "agent", "content": "b"},
                          {"role": "user", "content": "c"}]},
        ),
        (
            "role_content_dict",
            {"message_key": "m", "role_key": "r", "content_key": "t", "user_role": "u", "agent_role": "assistant"},
            {"m": [{"r": "u", "t": "a {content}"}, {"r": "assistant", "t": "b"}, {"r": "u", "t": "c"}]},
        ),
        (
            "batched_role_content_dict", {"agent_role": "bot"},
            {"messages": [[{"role": "user", "content": "a {content}"}, {"role": "bot", "content": "b"},
                           {"role": "user", "content": "c"}]]},
        ),
        ("prompt_string", {}, {"prompt": "USER: a {content}\n\nAGENT: b\n\nUSER: c\n\nAGENT:"}),
        (
            "prompt_string", {"prefix": "<", "suffix": ">", "user_format": "{content}?", "agent_format": "{content}!",
                              "prompt_key": "inputs"},
            {"inputs": "<a {content}?b!c?>"},
        ),
        ("claude", {}, {"prompt": "Human: a {content}\n\nAssistant: b\n\nHuman: c\n\nAssistant:"}),
        (
            "palm", {},
            {"instances": [{"messages": [
                {"author": "user", "content": "a {content}"}, {"author": "bot", "content": "b"},
                {"author": "user", "content": "c"},
            ]}]},
        ),
    ],
)  # fmt: skip
def test_a_history_is_written_as_each_prompter_writes_it(name: str, args: dict[str, str], body: Any) -> None:
    check_prompter(name, args)
    assert prompted(name, args, HISTORY) == body


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        (
            "role-content-dict",
            {},
            "use one of role_content_dict, batched_role_content_dict, prompt_string, claude, palm",
        ),
        ("prompt_string", {"sufix": "x"}, "it takes no argument 'sufix': it has prefix, suffix"),
        ("claude", {"prefix": "x"}, "it has none"),
        ("palm", {"author": 1}, "takes no argument"),
        ("prompt_string", {"prefix": 1}, "give a text"),
    ],
)
def test_an_unknown_prompter_or_argument_is_an_error_and_never_the_default(
    name: str, args: dict[str, Any], said: str
) -> None:
    with pytest.raises(PrompterError, match=said):
        check_prompter(name, args)


def test_models_have_the_prompters_that_their_endpoints_have_calls_for() -> None:
    assert set(MODEL_PROMPTERS) - {"openai-chat"} < set(PROMPTERS)


@pytest.mark.parametrize(
    ("text", "response", "said"),
    [
        ("{response}", "hello", "hello"),
        ("{response[choices][0][message][content]}", {"choices": [{"message": {"content": "hi"}}]}, "hi"),
        ("{response[0]}", {"0": "by name"}, "by name"),
        ("<{response[a]}|{{}}|{response[b]}>", {"a": 1, "b": None}, "<1|{}|None>"),
    ],
)
def test_an_answer_is_read_by_its_format(text: str, response: Any, said: str) -> None:
    check_return_format(text)
    assert formatted(text, response) == said


@pytest.mark.parametrize(
    "text",
    [
        "{response.__class__}", "{response[a].b}", "{0}", "{}", "{responses}", "{self}", "{response!r}",
        "{response:>10}", "{response[a]", "{response}}", "{response[a]x}", "x" * 2000,
    ],
)  # fmt: skip
def test_a_format_that_does_more_is_refused(text: str) -> None:
    with pytest.raises(PrompterError):
        check_return_format(text)


@given(st.text(max_size=40), st.recursive(st.none() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2)))
def test_no_format_that_is_let_through_does_anything_but_read(text: str, response: Any) -> None:
    try:
        check_return_format(text)
    except PrompterError:
        return
    with contextlib.suppress(LookupError, TypeError):
        assert isinstance(formatted(text, response), str)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("This model's maximum context length is 10", True), ("Prompt is too LONG", True),
        ("too many tokens", True), ("the server is overloaded", False), ("context unclear", False),
    ],
)  # fmt: skip
def test_a_context_limit_is_told_by_two_words(text: str, limit: bool) -> None:
    assert says_context_limit(text) is limit
