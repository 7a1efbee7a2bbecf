"""Conversations in Anthropic's words: OpenAI's chat completions there, its messages back. Pure."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping

from .contract import JSON

__all__ = ["from_anthropic", "to_anthropic"]

# The dialect wants a bound; what a run sets, max_tokens or max_completion_tokens, wins over it.
_MAX_TOKENS = 4096
_RENAMED = {"max_completion_tokens": "max_tokens", "stop": "stop_sequences"}


def to_anthropic(request: Mapping[str, JSON]) -> Dict[str, JSON]:
    """Return the body of ``/messages`` that asks what a body of ``/chat/completions`` asks.

    Parameters are handed on, those that both have by their other name. ``ValueError`` for what cannot be said.
    """
    body: Dict[str, JSON] = {"max_tokens": _MAX_TOKENS}
    for name, value in request.items():
        if name == "stop":
            body["stop_sequences"] = [value] if isinstance(value, str) else value
        elif name not in ("messages", "tools"):
            body[_RENAMED.get(name, name)] = value
    system: List[str] = []
    turns: List[Dict[str, Any]] = []
    for message in request["messages"]:
        role, content = message.get("role"), message.get("content")
        if role in ("system", "developer"):
            system.append(_text(content))
        elif role == "tool":
            block = {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": _text(content)}
            _say(turns, "user", [block])
        elif role == "assistant":
            _say(turns, "assistant", [*_texts(content), *map(_tool_use, message.get("tool_calls") or ())])
        else:
            _say(turns, "user", _texts(content))
    if system:
        body["system"] = "\n\n".join(system)
    body["messages"] = turns
    if request.get("tools"):
        body["tools"] = [_tool(tool["function"]) for tool in request["tools"]]
    return body


def _say(turns: List[Dict[str, Any]], role: str, blocks: List[Dict[str, Any]]) -> None:
    """Add to the conversation, whose turns must alternate."""
    if turns and turns[-1]["role"] == role:
        turns[-1]["content"] += blocks
    elif blocks:
        turns.append({"role": role, "content": blocks})


def _text(content: JSON) -> str:
    if not isinstance(content, (str, type(None))):
        raise ValueError("only texts can be said in this dialect")
    return content or ""


def _texts(content: JSON) -> List[Dict[str, Any]]:
    # An empty block is refused.
    return [{"type": "text", "text": content}] if _text(content) else []


def _tool_use(call: Mapping[str, Any]) -> Dict[str, Any]:
    try:
        arguments = json.loads(call["function"]["arguments"])
    except ValueError:
        arguments = {}
    named = arguments if isinstance(arguments, dict) else {}
    return {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": named}


def _tool(function: Mapping[str, Any]) -> Dict[str, Any]:
    described = {"description": function["description"]} if function.get("description") else {}
    return {"name": function["name"], **described, "input_schema": function.get("parameters") or {"type": "object"}}


def from_anthropic(answer: Mapping[str, Any]) -> Dict[str, JSON]:
    """Return the assistant's message of an answer of ``/messages``; ``LookupError`` or ``TypeError`` for no such."""
    texts: List[str] = []
    calls: List[JSON] = []
    for block in answer["content"]:
        if block["type"] == "text":
            texts.append(block["text"])
        elif block["type"] == "tool_use":
            function = {"name": block["name"], "arguments": json.dumps(block["input"])}
            calls.append({"id": block["id"], "type": "function", "function": function})
    content = "".join(texts) if texts or not calls else None
    return {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
