"""Lets a chat candidate play a pack of actions: tools are functions, or JSON where a model does not call functions.

A pack that speaks of observations and actions with programs plays models and servers through this: it sends each
observation as a message and reads the next action from what comes back.
"""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, Optional

from .canonical import canonical
from .contract import JSON
from .runtime import Chat, Ended

__all__ = ["ToolAgent"]


class ToolAgent:
    """One conversation. ``tools`` maps names to ``{"description", "parameters"}`` (a JSON schema).

    ``request`` returns ``{"tool", "arguments"}`` or ``{"finish": true, "message"}``. Several calls in one message are
    taken one after another, each with its own observation. Arguments that are no JSON are passed on as they are, for
    the pack to refuse as it refuses other wrong arguments.
    """

    def __init__(self, chat: Chat, system: str, tools: Mapping[str, Mapping[str, JSON]]) -> None:
        self._chat = chat
        self._messages: List[JSON] = [{"role": "system", "content": system}]
        self._tools = [{"type": "function", "function": {"name": name, **tools[name]}} for name in tools]
        self._pending: List[Dict[str, Any]] = []
        self._asked: Optional[str] = None

    @property
    def ended(self) -> Optional[Ended]:
        """How the conversation ended; None while it goes on."""
        return self._chat.ended

    async def request(self, observation: JSON) -> JSON:
        """Tell what happened and return the next action."""
        text = canonical(observation)
        if self._asked is not None:
            self._messages.append({"role": "tool", "tool_call_id": self._asked, "content": text})
        else:
            self._messages.append({"role": "user", "content": text})
        self._asked = None
        if not self._pending:
            message = await self._chat.action(self._messages, self._tools)
            self._messages.append(message)
            self._pending = list(message.get("tool_calls") or ())
            if not self._pending:
                return _action_of(message.get("content") or "")
        call = self._pending.pop(0)
        self._asked = call["id"]
        return {"tool": call["function"]["name"], "arguments": _parsed(call["function"]["arguments"])}

    async def finish(self, how: str = "eof") -> Ended:
        """End the conversation."""
        return await self._chat.finish(how)


def _parsed(text: str) -> JSON:
    try:
        value = json.loads(text)
        canonical(value)
    except (ValueError, RecursionError):
        return text
    return value


def _action_of(text: str) -> JSON:
    """Return an action that was written as JSON, else the end with the text as its message."""
    value = _parsed(_unfenced(text))
    if isinstance(value, dict) and ("tool" in value or value.get("finish") is True):
        return value
    return {"finish": True, "message": text}


def _unfenced(text: str) -> str:
    """Return what is inside a code fence, where the whole text is one."""
    lines = text.strip().splitlines()
    if len(lines) >= 2 and lines[0].startswith("```") and lines[-1].strip() == "```":
        return "\n".join(lines[1:-1])
    return text.strip()
