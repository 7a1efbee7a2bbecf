"""Read a resource as strictly as the API server does, and say what is wrong in the same words, without one.

Every problem names the field, the value and the cure.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from .auditrun import AuditRun
from .evalrun import EvalRun
from .names import API_VERSION
from .reasons import RunReason
from .schema import CRDS

__all__ = ["ManifestError", "Problem", "did_you_mean", "parse", "shown"]

Resource = EvalRun | AuditRun
KINDS: Final[Mapping[str, type[EvalRun] | type[AuditRun]]] = {"EvalRun": EvalRun, "AuditRun": AuditRun}

_MAX_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with one field. ``value`` is as a user wrote it, None where there is none."""

    field: str
    value: str | None
    cure: str
    reason: RunReason = RunReason.INVALID_SPEC

    def __str__(self) -> str:
        return f"{self.field}: {self.cure}" if self.value is None else f"{self.field} is {self.value}: {self.cure}"


class ManifestError(ValueError):
    """A manifest that cannot be used; ``problems`` are all that were found."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


def shown(value: Any) -> str:
    """Write a value as in JSON, cut to what fits into a message."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def did_you_mean(word: str, known: list[str]) -> str:
    """Return the known word that was probably meant, as the beginning of a cure, or the known words."""
    lower = {item.lower(): item for item in known}
    close = difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)
    if close:
        return f"did you mean {lower[close[0]]}?"
    return f"use one of {', '.join(known)}" if known else "remove it"


def parse(document: Any) -> Resource:
    """Read an EvalRun or AuditRun; ``ManifestError`` with every problem of its format."""
    if not isinstance(document, dict):
        raise ManifestError([Problem("the document", shown(document), "give an object with apiVersion, kind and spec")])
    kind = document.get("kind")
    model = KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise ManifestError([Problem("kind", shown(kind), did_you_mean(str(kind), list(KINDS)))])
    if document.get("apiVersion") != API_VERSION:
        raise ManifestError([Problem("apiVersion", shown(document.get("apiVersion")), f"use {API_VERSION}")])
    schema = _schema(model)
    pruned = _without_nulls(document, schema)
    pruned["metadata"] = _named(pruned.get("metadata"))
    try:
        return model.model_validate(pruned)
    except ValidationError as error:
        problems = [_problem(detail, pruned, schema) for detail in error.errors(include_url=False)]
        raise ManifestError(problems) from None


@cache
def _schema(model: type[EvalRun] | type[AuditRun]) -> dict[str, Any]:
    crd = next(crd for crd in (make() for make in CRDS.values()) if crd["spec"]["names"]["kind"] == model.__name__)
    schema: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _without_nulls(node: Any, schema: Mapping[str, Any]) -> Any:
    """Drop fields without a value, as the API server does; what others check stays as it is."""
    if isinstance(node, list):
        return [_without_nulls(item, schema.get("items", {})) for item in node]
    properties = schema.get("properties", {})
    if not isinstance(node, dict) or not properties:
        return node
    return {
        key: _without_nulls(value, properties.get(key, {}))
        for key, value in node.items()
        if value is not None or key not in properties
    }


def _named(metadata: Any) -> Any:
    """Let a manifest leave its name to the API server (``generateName``)."""
    if isinstance(metadata, dict) and "name" not in metadata and isinstance(metadata.get("generateName"), str):
        return {**metadata, "name": f"{metadata['generateName']}x"}
    return metadata


def _problem(detail: ErrorDetails, document: Any, schema: Mapping[str, Any]) -> Problem:
    context: Mapping[str, Any] = detail.get("ctx", {})
    loc = tuple(part for part in detail["loc"] if part != "[key]")
    loc += tuple(context.get("path", "").strip(".").split(".")) if context.get("path") else ()
    field = _path(loc, schema)
    kind = detail["type"]
    if kind == "missing":
        return Problem(field, None, f"it is missing: {_description(loc, schema)}")
    if kind == "extra_forbidden":
        known = list(_node_at(loc[:-1], schema).get("properties", {}))
        return Problem(field, None, f"there is no such field: {did_you_mean(str(loc[-1]), known)}")
    if "value" in context:
        return Problem(field, str(context["value"]), str(context["text"]))
    value = _value_at(loc, document) if kind == "rule" else detail["input"]
    return Problem(field, shown(value), _cure(kind, context, value) or detail["msg"])


_CURES: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "shape": lambda context: str(context["text"]),
    "rule": lambda context: str(context["text"]),
    "greater_than_equal": lambda context: f"give {context['ge']} or more",
    "less_than_equal": lambda context: f"give {context['le']} or less",
    "string_too_short": lambda context: f"give at least {context['min_length']} characters",
    "string_too_long": lambda context: f"give at most {context['max_length']} characters",
    "too_short": lambda context: f"give at least {context['min_length']} entries",
    "too_long": lambda context: f"give at most {context['max_length']} entries",
    "literal_error": lambda context: f"use one of {context['expected'].replace(' or ', ', ')}",
    "int_type": lambda _: "give a whole number, without quotes",
    "bool_type": lambda _: "give true or false, without quotes",
    "list_type": lambda _: "give a list",
    "dict_type": lambda _: "give an object",
    "model_type": lambda _: "give an object",
    "model_attributes_type": lambda _: "give an object",
}


def _cure(kind: str, context: Mapping[str, Any], value: Any) -> str | None:
    if kind == "string_type":
        quotes = isinstance(value, int | float)
        return f'put it in quotes: "{value}"' if quotes else "give a text"
    return _CURES[kind](context) if kind in _CURES else None


def _path(loc: tuple[int | str, ...], schema: Mapping[str, Any]) -> str:
    """Write a path as the API server does: ``spec.seeds.values[0]``, ``spec.threshold.dimensions[basic]``."""
    text = ""
    for number, part in enumerate(loc):
        is_entry = isinstance(part, int) or "additionalProperties" in _node_at(loc[:number], schema)
        text += f"[{part}]" if is_entry else f".{part}"
    return text.lstrip(".") or "the document"


def _node_at(loc: tuple[int | str, ...], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    for part in loc:
        if isinstance(part, int):
            schema = schema.get("items", {})
        else:
            schema = schema.get("properties", {}).get(part) or schema.get("additionalProperties") or {}
    return schema


def _value_at(loc: tuple[int | str, ...], document: Any) -> Any:
    for part in loc:
        try:
            document = document[part]
        except (KeyError, IndexError, TypeError):
            return None
    return document


def _description(loc: tuple[int | str, ...], schema: Mapping[str, Any]) -> str:
    description = _node_at(loc, schema).get("description", "give it")
    return str(description).split(". ")[0].rstrip(".")
