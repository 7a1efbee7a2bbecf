"""What a correct service answers: requests read into operations, and operations applied to an in-memory store.

Values are kept as canonical text, so equality of texts is the contract's equality and nothing of a request can be
changed through an answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from casewarden_sdk.canonical import canonical

__all__ = ["INVALID", "Model", "read"]

INVALID: Final[Mapping[str, Any]] = {"ok": False, "error": "invalid_request"}


@dataclass(frozen=True)
class Put:
    """Store a value."""

    key: str
    text: str


@dataclass(frozen=True)
class Get:
    """Read a value."""

    key: str


@dataclass(frozen=True)
class Delete:
    """Remove a key, present or not."""

    key: str


@dataclass(frozen=True)
class Swap:
    """Store a value where another is stored now."""

    key: str
    expected: str
    text: str


@dataclass(frozen=True)
class Batch:
    """Writes that happen together."""

    writes: tuple[Put | Delete, ...]


Operation = Put | Get | Delete | Swap | Batch


def _read_put(key: str, request: Mapping[str, Any]) -> Operation:
    return Put(key, canonical(request["value"]))


def _read_swap(key: str, request: Mapping[str, Any]) -> Operation:
    return Swap(key, canonical(request["expected"]), canonical(request["value"]))


_KEYED: Final[Mapping[str, Callable[[str, Mapping[str, Any]], Operation]]] = {
    "put": _read_put,
    "get": lambda key, _: Get(key),
    "delete": lambda key, _: Delete(key),
    "cas": _read_swap,
}


def read(request: object) -> Operation | None:
    """Return the operation that a request asks for, ``None`` for an invalid request."""
    if not isinstance(request, dict) or not isinstance(request.get("op"), str):
        return None
    if request["op"] == "batch":
        parts = request.get("operations")
        writes = [read(part) for part in parts] if isinstance(parts, list) else [None]
        whole = tuple(write for write in writes if isinstance(write, (Put, Delete)))
        return Batch(whole) if len(whole) == len(writes) else None
    reader, key = _KEYED.get(request["op"]), request.get("key")
    if reader is None or not isinstance(key, str):
        return None
    try:
        return reader(key, request)
    except KeyError:  # a field that the operation needs is missing
        return None


class Model:
    """A store that is always right and never durable: what it holds lives as long as the object."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def answer(self, request: object) -> dict[str, Any]:
        """Carry out one request, change the store where it says so, and return the right response."""
        match read(request):
            case None:
                return dict(INVALID)
            case Get(key):
                text = self._texts.get(key)
                return {"ok": True, "found": False} if text is None else self._found(text)
            case Swap(key, expected, text):
                swapped = self._texts.get(key) == expected
                if swapped:
                    self._texts[key] = text
                return {"ok": True, "swapped": swapped}
            case Batch(writes):
                for write in writes:
                    self._write(write)
            case write:
                self._write(write)
        return {"ok": True}

    def _write(self, write: Put | Delete) -> None:
        if isinstance(write, Put):
            self._texts[write.key] = write.text
        else:
            self._texts.pop(write.key, None)

    @staticmethod
    def _found(text: str) -> dict[str, Any]:
        return {"ok": True, "found": True, "value": json.loads(text)}
