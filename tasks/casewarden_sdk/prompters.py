"""How a history of messages is written for an agent or a model, and how its answer is read: AgentBench's conventions.

A prompter makes the body of a request from a history; ``return_format`` is a format string over ``response`` that takes
the text out of an answer. Both come from whoever runs an evaluation, so neither can reach anything but its data.
"""

from __future__ import annotations

import re
import string
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from .contract import JSON

__all__ = [
    "MODEL_PROMPTERS", "PROMPTERS", "PrompterError", "check_prompter", "check_return_format", "formatted", "prompted",
    "says_context_limit",
]  # fmt: skip

_History = Sequence[Tuple[str, str]]
_FORMAT_LENGTH = 1024
_CONTEXT = re.compile(r"prompt|context|tokens")
_LIMIT = re.compile(r"limit|exceed|max|long|much|many|reach|over|up|beyond")
_INDEX = re.compile(r"\[([^\[\]]*)\]")


class PrompterError(ValueError):
    """A prompter, its arguments or a format that cannot be; the message says which, and what may be."""


def _role_content_dict(history: _History, args: Mapping[str, str]) -> Dict[str, JSON]:
    roles = {"user": args["user_role"], "agent": args["agent_role"]}
    messages: List[JSON] = [{args["role_key"]: roles[role], args["content_key"]: text} for role, text in history]
    return {args["message_key"]: messages}


def _batched(history: _History, args: Mapping[str, str]) -> Dict[str, JSON]:
    return {name: [value] for name, value in _role_content_dict(history, args).items()}


def _prompt_string(history: _History, args: Mapping[str, str]) -> Dict[str, JSON]:
    formats = {"user": args["user_format"], "agent": args["agent_format"]}
    said = "".join(formats[role].replace("{content}", text) for role, text in history)
    return {args["prompt_key"]: args["prefix"] + said + args["suffix"]}


def _claude(history: _History, _: Mapping[str, str]) -> Dict[str, JSON]:
    names = {"user": "Human", "agent": "Assistant"}
    return {"prompt": "".join(f"{names[role]}: {text}\n\n" for role, text in history) + "Assistant:"}


def _palm(history: _History, _: Mapping[str, str]) -> Dict[str, JSON]:
    authors = {"user": "user", "agent": "bot"}
    messages: List[JSON] = [{"author": authors[role], "content": text} for role, text in history]
    return {"instances": [{"messages": messages}]}


_KEYS = {
    "message_key": "messages", "role_key": "role", "content_key": "content", "user_role": "user", "agent_role": "agent",
}  # fmt: skip
_FORMATS = {
    "prefix": "", "suffix": "AGENT:", "user_format": "USER: {content}\n\n", "agent_format": "AGENT: {content}\n\n",
    "prompt_key": "prompt",
}  # fmt: skip
_Make = Callable[[_History, Mapping[str, str]], Dict[str, JSON]]
_TABLE: Mapping[str, Tuple[_Make, Mapping[str, str]]] = {
    "role_content_dict": (_role_content_dict, _KEYS),
    "batched_role_content_dict": (_batched, _KEYS),
    "prompt_string": (_prompt_string, _FORMATS),
    "claude": (_claude, {}),
    "palm": (_palm, {}),
}
PROMPTERS = tuple(_TABLE)
MODEL_PROMPTERS: Mapping[str, str] = {
    "openai-chat": "chat/completions", "role_content_dict": "chat/completions", "prompt_string": "completions",
    "claude": "completions",
}  # fmt: skip
"""Prompters of a model that plays by itself, and which of its endpoint's calls each is for."""


def check_prompter(name: str, args: Mapping[str, Any], known: Sequence[str] = PROMPTERS) -> None:
    """Raise ``PrompterError`` for a name that is none of ``known``, or arguments that it does not take."""
    if name not in known:
        raise PrompterError(f"there is no such prompter: use one of {', '.join(known)}")
    takes = _TABLE[name][1] if name in _TABLE else {}
    for argument, value in args.items():
        if argument not in takes:
            raise PrompterError(f"it takes no argument {argument!r}: it has {', '.join(takes) or 'none'}")
        if not isinstance(value, str):
            raise PrompterError(f"its argument {argument} is {value!r}: give a text")


def prompted(name: str, args: Mapping[str, str], messages: Sequence[Mapping[str, Any]]) -> Dict[str, JSON]:
    """Return the body that a prompter makes of a conversation: the assistant's messages are the agent's, others the
    user's."""
    make, defaults = _TABLE[name]
    history = [("agent" if item.get("role") == "assistant" else "user", _text(item)) for item in messages]
    return make(history, {**defaults, **args})


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else ""


def check_return_format(text: str) -> None:
    """Raise ``PrompterError`` for a format that does more than take parts out of ``response`` by ``[key]``."""
    if len(text) > _FORMAT_LENGTH:
        raise PrompterError(f"it has {len(text)} characters: use at most {_FORMAT_LENGTH}")
    for _ in _parts(text):
        pass


def formatted(text: str, response: JSON) -> str:
    """Return what a ``return_format`` makes of an answer; ``LookupError`` or ``TypeError`` where a part is missing."""
    said = []
    for literal, path in _parts(text):
        said.append(literal)
        if path is not None:
            value: Any = response
            for key in path:
                value = value[int(key)] if isinstance(value, list) and key.isdigit() else _member(value, key)
            said.append(str(value))
    return "".join(said)


def _member(value: Any, key: str) -> Any:
    if not isinstance(value, Mapping):
        raise TypeError(f"[{key}] of a {type(value).__name__}")
    return value[key]


def _parts(text: str) -> List[Tuple[str, Any]]:
    parts: List[Tuple[str, Any]] = []
    try:
        for literal, field, spec, conversion in string.Formatter().parse(text):
            if field is None:
                parts.append((literal, None))
                continue
            rest = field[len("response") :]
            if not field.startswith("response") or spec or conversion or _INDEX.sub("", rest):
                raise PrompterError(f"{{{field}}}: only {{response}} and parts of it, as {{response[key][0]}}, may be")
            parts.append((literal, _INDEX.findall(rest)))
    except PrompterError:
        raise
    except ValueError as error:
        raise PrompterError(f"it is no format: {error}") from None
    return parts


def says_context_limit(text: str) -> bool:
    """Tell by AgentBench's words whether a refusal is about the length of the context."""
    low = text.lower()
    return _CONTEXT.search(low) is not None and _LIMIT.search(low) is not None
