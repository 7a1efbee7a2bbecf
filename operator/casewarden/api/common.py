"""What the resources' models share: strict bases, rules that the API server and Python both check, field types.

A ``Rule`` is one sentence said twice: as CEL for the API server and as a predicate for everything that reads a manifest
without one. Both stand side by side, and tests hold them equal. A ``Shape`` is the same for one string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

__all__ = [
    "MAX_SEED",
    "ApiModel",
    "Argument",
    "CaseId",
    "DecimalFraction",
    "DimensionName",
    "EnvName",
    "FreeObject",
    "Image",
    "Keys",
    "Label",
    "LabelKey",
    "ObjectName",
    "Quantity",
    "Rule",
    "RuleName",
    "Seed",
    "Sha256",
    "Shape",
    "WireModel",
    "WorkspaceDigest",
]

# JSON numbers above 2^53 lose digits in JavaScript and jq, where people read statuses.
MAX_SEED = (1 << 53) - 1

# How much of a refused text a message repeats, in characters.
_SHOWN = 80

# The API server drops the message of a FieldValueDuplicate, so that reason is of no use.
RuleReason = Literal["FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition on one object of a manifest; ``holds`` gets the parsed model.

    ``path`` is the field below that object which the message is about (``.values``); ``reason`` is one of the API
    server's. The API server shows the value only of numbers: ``value_cel`` and ``value`` say, alike, which value of a
    longer field is to blame.
    """

    cel: str
    message: str
    holds: Callable[[Any], bool]
    path: str = ""
    reason: RuleReason = "FieldValueInvalid"
    value_cel: str | None = None
    value: Callable[[Any], str] | None = None

    def to_json(self) -> dict[str, str]:
        """Return the rule as an entry of ``x-kubernetes-validations``."""
        entry = {"rule": self.cel, "message": self.message, "reason": self.reason}
        if self.path:
            entry["fieldPath"] = self.path
        if self.value_cel is not None:
            entry["messageExpression"] = _with_value(self.value_cel, self.message)
        return entry

    def error(self, model: Any) -> PydanticCustomError:
        """Return the error for a model that breaks the rule."""
        context = {"text": self.message, "path": self.path}
        if self.value is not None:
            context["value"] = self.value(model)
        return PydanticCustomError("rule", "{text}", context)


def _with_value(value: str, message: str) -> str:
    """Return the CEL expression of a message that begins with a value.

    By ``format``: the API server takes the cost of joining strings of unknown length to be without bound.
    """
    template = f"%s: {message}".replace("%", "%%").replace("%%s", "%s", 1)
    return f"{json.dumps(template, ensure_ascii=False)}.format([{value}])"


@dataclass(frozen=True, slots=True)
class Shape:
    """What a string may look like: a pattern that both RE2 and Python read alike, and the cure in words.

    ``cure`` completes "``value`` is refused: ...". Lengths are in characters.
    """

    pattern: str
    cure: str
    max_length: int
    min_length: int = 1

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        # CEL in place of ``pattern``: the API server then answers with the cure and not with an expression.
        shown = (
            "self" if self.max_length <= _SHOWN else f"(self.size() > {_SHOWN} ? self.substring(0, {_SHOWN}) : self)"
        )
        rule = {
            "rule": f"self.matches(r'{self.pattern}')",
            "message": self.cure,
            "messageExpression": _with_value(shown, self.cure),
        }
        return {
            **handler(schema),
            "minLength": self.min_length,
            "maxLength": self.max_length,
            "x-kubernetes-validations": [rule],
        }

    def fits(self, value: str) -> bool:
        """Tell whether a string has this shape."""
        return self.min_length <= len(value) <= self.max_length and re.fullmatch(self.pattern, value) is not None

    def check(self, value: str) -> str:
        """Return the string, or raise the error that carries the cure."""
        if not self.fits(value):
            cure = self.cure if len(value) <= self.max_length else f"use at most {self.max_length} characters"
            raise PydanticCustomError("shape", "{text}", {"text": cure, "path": ""})
        return value


@dataclass(frozen=True, slots=True)
class Keys:
    """What the keys of a map may look like, and the beginnings and whole keys that it may not have."""

    shape: Shape
    reserved: tuple[str, ...] = ()
    reserved_cure: str = ""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        fits = f"k.size() <= {self.shape.max_length} && k.matches(r'{self.shape.pattern}')"
        rules = [self._rule(fits, self.shape.cure)]
        if self.reserved:
            free = " && ".join(
                f"!k.startsWith('{item}')" if item.endswith("/") else f"k != '{item}'" for item in self.reserved
            )
            rules.append(self._rule(free, self.reserved_cure))
        return {**handler(schema), "x-kubernetes-validations": rules}

    @staticmethod
    def _rule(holds: str, cure: str) -> dict[str, str]:
        culprit = f"self.filter(k, !({holds}))[0]"
        return {"rule": f"self.all(k, {holds})", "message": cure, "messageExpression": _with_value(culprit, cure)}

    def check(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return the map, or raise the error that carries the cure."""
        for key in value:
            if not self.shape.fits(key):
                raise PydanticCustomError("rule", "{text}", {"text": self.shape.cure, "path": "", "value": key})
            if any(key.startswith(item) if item.endswith("/") else key == item for item in self.reserved):
                raise PydanticCustomError("rule", "{text}", {"text": self.reserved_cure, "path": "", "value": key})
        return value


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    rules: ClassVar[tuple[Rule, ...]] = ()

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        result = dict(handler.resolve_ref_schema(handler(schema)))
        if cls.rules:
            result["x-kubernetes-validations"] = [rule.to_json() for rule in cls.rules]
        return result

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        for rule in self.rules:
            if not rule.holds(self):
                raise rule.error(self)
        return self


class ApiModel(_Strict):
    """A part of a resource: camelCase in JSON, snake_case in Python, unknown fields refused."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON with the API's own names, without absent fields."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class WireModel(_Strict):
    """A message between parts of Casewarden: snake_case in JSON too, unknown fields refused."""


LABEL_KEY = Shape(
    r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
    "use a label key such as example.com/team",
    317,
)
CASE_ID = Shape(r"^[A-Za-z0-9][A-Za-z0-9._-]*$", "use letters, digits, '.', '_' and '-', a letter or digit first", 100)
ROLE = Shape(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "use a role of the pack: lower-case letters, digits and '-'", 63)
DIMENSION = Shape(r"^[A-Za-z][A-Za-z0-9_.-]*$", "use letters, digits, '_', '.' and '-', a letter first", 63)

ObjectName = Annotated[
    str,
    Shape(
        r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$",
        "use lower-case letters, digits, '-' and '.', a letter or digit at both ends",
        253,
    ),
]
"""The name of a Kubernetes object."""

ShortName = Annotated[
    str,
    Shape(
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "use lower-case letters, digits and '-', a letter or digit at both ends", 63
    ),
]
"""A name of Casewarden's own: a task, a control, an endpoint, an environment."""

CaseId = Annotated[str, CASE_ID]
DimensionName = Annotated[str, DIMENSION]
RuleName = Annotated[
    str,
    Shape(
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?/v[0-9]+$", "give a rule with its version, such as weighted-dimensions/v1", 63
    ),
]
Image = Annotated[
    str,
    Shape(r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*$", "give an image reference such as registry.example/agent:1", 512),
]
Argument = Annotated[str, Shape(r"^[^\x00]+$", "an argument must not be empty and must not hold a NUL character", 4096)]
EnvName = Annotated[
    str,
    Shape(r"^[A-Za-z_][A-Za-z0-9_]*$", "use letters, digits and '_', no digit first", 256),
]
Sha256 = Annotated[str, Shape(r"^[0-9a-f]{64}$", "give 64 lower-case hexadecimal digits", 64, 64)]
WorkspaceDigest = Annotated[
    str,
    Shape(
        r"^sha256:[0-9a-f]{64}$",
        "give sha256: and 64 lower-case hexadecimal digits, as `casewarden evaluate` prints them",
        71,
        71,
    ),
]
DecimalFraction = Annotated[
    str,
    Shape(
        r"^(0(\.[0-9]{1,8})?|1(\.0{1,8})?)$",
        'give a decimal from "0" to "1" in quotes, with at most 8 places, such as "0.8"',
        10,
    ),
]
"""A score, weight or rate: exact, so it is a string."""

LabelKey = Annotated[str, LABEL_KEY]
Label = Annotated[
    str,
    Shape(
        r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
        "use letters, digits, '-', '_' and '.', a letter or digit at both ends",
        63,
        0,
    ),
]
Quantity = Annotated[
    str,
    Shape(
        r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$",
        'give a quantity in quotes, such as "500m", "2" or "256Mi"',
        32,
    ),
]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
FreeObject = Annotated[dict[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]
"""Any JSON object: somebody else checks what is in it."""
