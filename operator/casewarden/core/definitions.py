"""Whether the CRDs that the API server serves know every field of this version's resources.

An older CRD makes the API server drop what it does not know, in silence: a status would lose its score.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from casewarden.api.names import GROUP, VERSION
from casewarden.api.schema import CRDS

__all__ = ["PUBLISHED", "complaint"]

PUBLISHED = f"/openapi/v3/apis/{GROUP}/{VERSION}"
"""Where the API server tells every account which fields it knows."""
_CURE = "apply crds/ of this version: `helm upgrade` does it with crds.install=true, `kubectl apply -f crds/` without"
_NAMED = 3


def complaint(published: Mapping[str, Any] | None) -> str | None:
    """Say what is wrong with the API server's answer at ``PUBLISHED`` (None: it knows no such group), None if nothing.

    Fields that only the API server knows are fine: they are of a newer version.
    """
    schemas = ((published or {}).get("components") or {}).get("schemas") or {}
    for plural, make in CRDS.items():
        crd = make()
        kind, name = crd["spec"]["names"]["kind"], f"{plural}.{GROUP}"
        found = next((item for key, item in schemas.items() if key.endswith(f".{kind}")), None)
        if found is None:
            return f"the API server has no CRD {name}: {_CURE}"
        expected = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        if missing := [
            path for part in ("spec", "status") for path in _missing(_of(expected, part), _of(found, part), part)
        ]:
            more = f" and {len(missing) - _NAMED} more" if len(missing) > _NAMED else ""
            return (
                f"the CRD {name} is older than this operator and does not know {', '.join(missing[:_NAMED])}{more}, "
                f"which the API server would drop: {_CURE}"
            )
    return None


def _of(schema: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (schema.get("properties") or {}).get(part) or {}
    return found


def _missing(expected: Mapping[str, Any], found: Mapping[str, Any], path: str) -> Iterator[str]:
    if found.get("x-kubernetes-preserve-unknown-fields"):
        return
    known = found.get("properties") or {}
    for name, node in (expected.get("properties") or {}).items():
        if name not in known:
            yield f"{path}.{name}"
        else:
            yield from _missing(node, known[name], f"{path}.{name}")
    for inner, mark in (("items", "[]"), ("additionalProperties", ".*")):
        node, there = expected.get(inner), found.get(inner)
        if isinstance(node, Mapping):
            yield from _missing(node, there if isinstance(there, Mapping) else {}, path + mark)
