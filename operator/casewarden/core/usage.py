"""What models used: in ``run.json``, in the status, and held against what the bundles tell. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

__all__ = ["from_status", "kept_usage", "status_usage", "told_by_attempts", "usage_in_words", "usage_problems"]

_COUNTS: Final = ("prompt_tokens", "completion_tokens", "model_calls")
_NAMES: Final = {
    "prompt_tokens": "promptTokens",
    "completion_tokens": "completionTokens",
    "model_calls": "modelCalls",
    "source": "source",
    "cost": "cost",
}


def kept_usage(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the relay's ``usage.json`` as it is kept in ``run.json``. What is not known is absent, never 0."""
    models = {role: _sums(item) for role, item in sorted((document.get("models") or {}).items())}
    return {**_sums(document), **({"models": models} if models else {})}


def _sums(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: document[name] for name in _NAMES if document.get(name) is not None}


def status_usage(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``status.usage`` for what is kept."""
    models = {role: _renamed(item) for role, item in (kept.get("models") or {}).items()}
    return {**_renamed(kept), **({"models": models} if models else {})}


def from_status(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Read ``status_usage`` back."""

    def back(sums: Mapping[str, Any]) -> dict[str, Any]:
        return {key: sums[name] for key, name in _NAMES.items() if name in sums}

    models = {role: back(item) for role, item in (usage.get("models") or {}).items()}
    return {**back(usage), **({"models": models} if models else {})}


def _renamed(kept: Mapping[str, Any]) -> dict[str, Any]:
    return {name: kept[key] for key, name in _NAMES.items() if key in kept}


def told_by_attempts(attempts: Iterable[Mapping[str, Any]]) -> dict[str | None, dict[str, int]]:
    """Sum up what ``attempt.json`` of each bundle tells, by role; None is the candidate's model."""
    told: dict[str | None, dict[str, int]] = {}
    for attempt in attempts:
        by_role: dict[str | None, Any] = {None: attempt.get("usage")}
        by_role.update(_object(attempt.get("task_usage")))
        for role, usage in by_role.items():
            for name in _COUNTS:
                amount = _object(usage).get(name)
                if type(amount) is int:
                    counts = told.setdefault(role, dict.fromkeys(_COUNTS, 0))
                    counts[name] += amount
    return told


def usage_problems(kept: Mapping[str, Any], told: Mapping[str | None, Mapping[str, int]]) -> Iterator[str]:
    """Yield where a run claims to have used less than its bundles tell.

    It may have used more: calls of pods that were lost, and calls whose answers nobody waited for.
    """
    for role, counts in told.items():
        sums = _object(kept if role is None else _object(kept.get("models")).get(role))
        where = "usage" if role is None else f"usage.models.{role}"
        for name, amount in counts.items():
            found = sums.get(name, 0)
            if type(found) is not int or found < amount:
                yield f"{where}.{name} is {found!r}; its bundles come to {amount}"


def usage_in_words(kept: Mapping[str, Any]) -> str:
    """Say what was used in one line, by model."""
    said = [_words(kept, "")] if kept.get("model_calls") or not kept.get("models") else []
    said += [_words(item, f"{role}: ") for role, item in _object(kept.get("models")).items()]
    return "; ".join(said)


def _words(sums: Mapping[str, Any], who: str) -> str:
    tokens = f"{sums.get('prompt_tokens')} tokens read and {sums.get('completion_tokens')} written"
    cost = f", cost {sums['cost']}" if "cost" in sums else ""
    return f"{who}{sums.get('model_calls')} model calls, {tokens} ({sums.get('source')}){cost}"


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
