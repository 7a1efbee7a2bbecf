"""Turn the models into what the API server takes: structural OpenAPI v3 schemas in CustomResourceDefinitions."""

from __future__ import annotations

from typing import Any, Final

from .auditrun import AuditRun, AuditRunSpec, AuditRunStatus
from .common import ApiModel
from .evalrun import EvalRun, EvalRunSpec
from .names import GROUP, VERSION
from .status import EvalRunStatus

__all__ = ["CRDS", "audit_run_crd", "eval_run_crd", "structural"]

JSON = dict[str, Any]

# Keywords that say nothing to the API server, or that a structural schema must not have.
_DROPPED: Final = frozenset(
    {"title", "additionalProperties", "propertyNames", "const", "$defs", "anyOf", "allOf", "$ref"}
)
_ORDER: Final = ("description", "type", "format", "enum", "default", "required", "items", "properties")


def structural(model: type[ApiModel]) -> JSON:
    """Return the structural schema of a model: no references, no unions, defaults that reach into nested objects."""
    document = model.model_json_schema(by_alias=True)
    return _clean(document, document.get("$defs", {}))


def _clean(node: JSON, definitions: dict[str, JSON]) -> JSON:
    node = _resolve(node, definitions)
    result = {key: value for key, value in node.items() if key not in _DROPPED}
    if node.get("default", ...) is None:
        del result["default"]
    if "const" in node:
        result["enum"] = [node["const"]]
    if result.get("type") == "integer":
        result["format"] = "int64"
    extra = node.get("additionalProperties")
    if isinstance(extra, dict) and not result.get("x-kubernetes-preserve-unknown-fields"):
        result["additionalProperties"] = _clean(extra, definitions)
    if "items" in node:
        result["items"] = _clean(node["items"], definitions)
    if "properties" in node:
        result["properties"] = {
            name: _property(value, definitions, name in node.get("required", ()))
            for name, value in node["properties"].items()
        }
    return {key: result[key] for key in sorted(result, key=_rank)}


def _rank(key: str) -> tuple[int, str]:
    """Order keys for readers: what it is, then its bounds, then what is in it."""
    return (_ORDER.index(key) if key in _ORDER else _ORDER.index("items"), key)


def _property(node: JSON, definitions: dict[str, JSON], required: bool) -> JSON:
    result = _clean(node, definitions)
    nested = result.get("properties", {}).values()
    # Absent objects with defaults in them: without this default the API server would not fill those in.
    if not required and not _is_optional(node) and any("default" in value for value in nested):
        result["default"] = {}
    return result


def _is_optional(node: JSON) -> bool:
    return any(choice.get("type") == "null" for choice in node.get("anyOf", ()))


def _resolve(node: JSON, definitions: dict[str, JSON]) -> JSON:
    """Follow references and take the one real choice of ``X | null``; what stands beside a reference wins."""
    while "$ref" in node or "anyOf" in node or "allOf" in node:
        own = {key: value for key, value in node.items() if key not in ("$ref", "anyOf", "allOf")}
        if "$ref" in node:
            target = definitions[node["$ref"].rsplit("/", 1)[1]]
        else:
            choices = [choice for choice in node.get("anyOf") or node["allOf"] if choice.get("type") != "null"]
            if len(choices) != 1:
                raise ValueError(f"a union of {len(choices)} types has no structural schema: {node}")
            target = choices[0]
        node = {**target, **own}
    return node


def _immutable(spec: JSON, mutable: tuple[str, ...], kind: str) -> list[JSON]:
    """Say for each field that it must stay. At the spec, since a rule on a field does not see the field removed."""
    return [
        {
            "rule": f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || self.{name} == oldSelf.{name})",
            "message": f"{name} is fixed when the {kind} is created: make a new {kind} to change it",
            "reason": "FieldValueForbidden",
            "fieldPath": f".{name}",
        }
        for name in spec["properties"]
        if name not in mutable
    ]


def _crd(
    kind: str, plural: str, short: str, root: type[ApiModel], spec_model: Any, status: type[ApiModel], columns: Any
) -> JSON:
    spec = structural(spec_model)
    spec["x-kubernetes-validations"] = _immutable(spec, spec_model.mutable, kind)
    schema = {
        "description": (root.__doc__ or "").split("\n\n")[0],
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"{GROUP}/{VERSION}"},
            "kind": {"type": "string", "description": kind},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": structural(status),
        },
    }
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }
    names = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": kind.lower(),
        "shortNames": [short],
        "categories": ["evals"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}", "labels": {"app.kubernetes.io/name": "casewarden"}},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _column(name: str, path: str, description: str, type_: str = "string", wide: bool = False) -> JSON:
    column: JSON = {"name": name, "type": type_, "jsonPath": path, "description": description}
    return {**column, "priority": 1} if wide else column


def _condition(type_: str) -> str:
    return f'.status.conditions[?(@.type=="{type_}")].status'


_PASSED: Final = _column("Passed", _condition("Passed"), "Whether the score reached what was asked.")
_AGE: Final = _column("Age", ".metadata.creationTimestamp", "Time since the creation.", "date")

_EVAL_COLUMNS: Final = [
    _column("Progress", ".status.progress", "Cases that are done, of all."),
    _column("Score", ".status.score", "The score; empty unless the run is valid."),
    _column("Valid", ".status.valid", "Whether every case was assessed.", "boolean"),
    _PASSED,
    _AGE,
    _column("Task", ".status.fingerprints.task", "The task and its version.", wide=True),
    _column("Assessed", ".status.assessed", "Cases that have been assessed, of all.", wide=True),
    _column("Errors", ".status.errors", "Cases that ended in an error.", "integer", wide=True),
    _column("Duration", ".status.duration", "Time from start to end.", wide=True),
]
_AUDIT_COLUMNS: Final = [
    _column("Progress", ".status.progress", "Cases that are done, of all."),
    _column("Killed", ".status.killed", "Faults that were caught, of all."),
    _column("Valid", ".status.valid", "Whether every control's run is valid.", "boolean"),
    _PASSED,
    _AGE,
    _column("Task", ".status.fingerprints.task", "The task and its version.", wide=True),
    _column("Margin", ".status.weakestMargin", "The fewest cases that caught one fault.", "integer", wide=True),
]


def eval_run_crd() -> JSON:
    """Return the CustomResourceDefinition of EvalRun."""
    return _crd("EvalRun", "evalruns", "er", EvalRun, EvalRunSpec, EvalRunStatus, _EVAL_COLUMNS)


def audit_run_crd() -> JSON:
    """Return the CustomResourceDefinition of AuditRun."""
    return _crd("AuditRun", "auditruns", "ar", AuditRun, AuditRunSpec, AuditRunStatus, _AUDIT_COLUMNS)


CRDS: Final = {"evalruns": eval_run_crd, "auditruns": audit_run_crd}
