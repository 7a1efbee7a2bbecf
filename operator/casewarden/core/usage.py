"""What models used, from the relay's words to those of the status. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["status_usage"]

_NAMES: Final = {
    "prompt_tokens": "promptTokens",
    "completion_tokens": "completionTokens",
    "model_calls": "modelCalls",
    "source": "source",
    "cost": "cost",
}


def status_usage(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``status.usage`` for ``usage.json``. What is not known is absent, never 0."""
    models = {role: _sums(item) for role, item in sorted((document.get("models") or {}).items())}
    return {**_sums(document), **({"models": models} if models else {})}


def _sums(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: document[key] for key, name in _NAMES.items() if document.get(key) is not None}
