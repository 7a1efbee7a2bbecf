"""A model's calls as people read them: who said what, and not the JSON that it was sent in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["spoken"]


def spoken(direction: str, text: str) -> str:
    """Return what a request (``model-in``) adds to the talk, or what an answer (``model-out``) says.

    Bodies that are in no known dialect stay as they are.
    """
    if direction not in ("model-in", "model-out"):
        return text
    try:
        document = json.loads(text)
        lines = list(_asked(document) if direction == "model-in" else _answered(document))
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return text
    return "\n\n".join(lines) or text


def _asked(document: Mapping[str, Any]) -> Iterator[str]:
    messages = document.get("messages", document.get("input", document.get("prompt")))
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if isinstance(document.get("system"), str | list) and len(messages) == 1:
        yield f"system: {_content(document['system'])}"
    # Each request repeats the whole talk: what is new is what comes after the model's last word.
    said = [at for at, message in enumerate(messages) if message.get("role") == "assistant"]
    for message in messages[said[-1] + 1 if said else 0 :]:
        yield f"{message.get('role') or message['type']}: {_message(message)}"


def _answered(document: Mapping[str, Any]) -> Iterator[str]:
    if document.get("error"):
        error = document["error"]
        yield f"error: {error.get('message') if isinstance(error, Mapping) else error}"
    for choice in document.get("choices") or ():
        yield f"assistant: {_message(choice['message']) if 'message' in choice else choice['text']}"
    if isinstance(document.get("content"), list):
        yield f"assistant: {_content(document['content'])}"
    for item in document.get("output") or ():
        yield f"{item.get('role') or item['type']}: {_message(item)}"


def _message(message: Mapping[str, Any]) -> str:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    parts = [_content(message.get("content")), *(f"→ {call['name']}({call['arguments']})" for call in calls)]
    if message.get("type") == "function_call":
        parts.append(f"→ {message['name']}({message['arguments']})")
    if message.get("type") == "function_call_output":
        parts.append(str(message["output"]))
    return "\n".join(part for part in parts if part)


def _content(content: Any) -> str:
    if content is None:
        return ""
    if not isinstance(content, Sequence) or isinstance(content, str):
        return str(content)
    return "\n".join(_part(part) for part in content)


def _part(part: Any) -> str:
    if not isinstance(part, Mapping):
        return str(part)
    if isinstance(part.get("text"), str):
        return str(part["text"])
    if part.get("type") == "tool_use":
        return f"→ {part['name']}({json.dumps(part['input'], ensure_ascii=False)})"
    if part.get("type") == "tool_result":
        return _content(part.get("content"))
    return json.dumps(part, ensure_ascii=False)
