"""AgentBench's objects: chat items, what an agent says, what a sample comes to.

They are plain classes with the few methods of pydantic's that tasks call (``dict``, ``json``, ``parse_obj``, ``copy``),
so that nothing needs to be installed. Unknown keys are left out on parsing, as upstream does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Dict, List, Mapping, Optional, Type, TypeVar, Union

from .statuses import AgentOutputStatus, SampleStatus

__all__ = ["AgentOutput", "ChatItem", "SampleIndex", "TaskOutput", "TaskSampleExecutionResult"]

SampleIndex = Union[int, str]
T = TypeVar("T", bound="_Model")


class _Model:
    """The part of pydantic's interface that tasks use."""

    def dict(self, **_: Any) -> Dict[str, Any]:
        """Return the fields as plain JSON."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}  # type: ignore[arg-type]

    model_dump = dict

    def json(self, **_: Any) -> str:
        """Return the fields as JSON text."""
        return json.dumps(self.dict())

    @classmethod
    def parse_obj(cls: Type[T], document: Any) -> T:
        """Read ``dict`` back; ``TypeError`` or ``ValueError`` for what is none."""
        if isinstance(document, cls):
            return document
        if not isinstance(document, Mapping):
            raise TypeError(f"{cls.__name__}: {document!r} is no object")
        known = {field.name for field in fields(cls)}  # type: ignore[arg-type]
        return cls(**{name: value for name, value in document.items() if name in known})

    def copy(self: T, update: Optional[Mapping[str, Any]] = None, **_: Any) -> T:
        """Return another one with ``update`` in place."""
        return type(self).parse_obj({**self.dict(), **(update or {})})


@dataclass
class ChatItem(_Model):
    """A message of the history: ``role`` is ``user`` or ``agent``."""

    role: str
    content: str

    def __post_init__(self) -> None:
        if self.role not in ("user", "agent"):
            raise ValueError(f"role {self.role!r}: a chat item is the user's or the agent's")
        if not isinstance(self.content, str):
            raise ValueError(f"content {self.content!r}: a chat item holds a text")


@dataclass
class AgentOutput(_Model):
    """A turn of the agent. ``content`` is a text whenever ``status`` is normal."""

    status: AgentOutputStatus = AgentOutputStatus.NORMAL
    content: Optional[str] = None

    def __post_init__(self) -> None:
        self.status = AgentOutputStatus(self.status)
        if self.status is AgentOutputStatus.NORMAL and not isinstance(self.content, str):
            raise ValueError("an agent's normal turn needs a text as content")


@dataclass
class TaskSampleExecutionResult(_Model):
    """What ``start_sample`` returns; ``result`` is any JSON."""

    status: SampleStatus = SampleStatus.COMPLETED
    result: Any = None

    def __post_init__(self) -> None:
        self.status = SampleStatus(self.status)


@dataclass
class TaskOutput(_Model):
    """What a sample came to, with its history. ``index`` keeps its type: 7 and "7" are two indices."""

    index: Optional[SampleIndex] = None
    status: SampleStatus = SampleStatus.RUNNING
    result: Any = None
    history: Optional[List[ChatItem]] = None

    def __post_init__(self) -> None:
        self.status = SampleStatus(self.status)
        if self.history is not None:
            self.history = [ChatItem.parse_obj(item) for item in self.history]


def _plain(value: Any) -> Any:
    if isinstance(value, _Model):
        return value.dict()
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return value
