"""The runs that an audit owns: one EvalRun for each control, and how an operator knows that one is genuine. Pure.

Nobody but the operator makes them, and nothing keeps others from trying; so a child is genuine exactly when it is,
field by field, what the operator would make of its audit. Whoever writes that very object has saved the operator work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from casewarden.api.auditrun import AuditRunSpec
from casewarden.api.names import API_VERSION, GROUP, LABEL_MANAGED_BY, MANAGER
from casewarden.api.plan import Plan, PlanControl
from casewarden.core.network import Owner
from casewarden.core.seeds import draw_seeds

__all__ = [
    "LABEL_AUDIT_UID", "LABEL_CONTROL", "audit_of", "audit_seeds", "child_manifest", "child_name", "chosen_controls",
    "is_genuine", "mutable_patch", "reference_of",
]  # fmt: skip

LABEL_AUDIT_UID: Final = f"{GROUP}/audit-uid"
LABEL_CONTROL: Final = f"{GROUP}/control"
# What of a child follows its audit while it is going on; a child without it has the API's default.
_MUTABLE: Final[Mapping[str, Any]] = {"suspend": False, "parallelism": 10, "priority": 0}
_ALWAYS: Final = frozenset({"reference", "null", "crash", "forger"})
_NAME: Final = 150
REFERENCE: Final = "reference"


def audit_seeds(spec: AuditRunSpec, audit_uid: str) -> list[int]:
    """Return the audit's seeds; those that are drawn are made of its UID, so that every operator draws the same."""
    if spec.seeds.values is not None:
        return list(spec.seeds.values)
    return draw_seeds(spec.seeds.random or 1, hashlib.sha256(audit_uid.encode()).digest())


def child_name(audit: str, audit_uid: str, control: str) -> str:
    """Return the name of a control's run; the audit's UID is in it, since an earlier audit of the name may linger."""
    short = hashlib.sha256(audit_uid.encode()).hexdigest()[:5]
    return f"{audit[:_NAME].rstrip('-.')}-{short}-{control}"


def child_manifest(
    namespace: str, audit: str, audit_uid: str, spec: AuditRunSpec, control: str, repeats: int
) -> dict[str, Any]:
    """Return the EvalRun of a control."""
    whole = spec.to_json()
    child: dict[str, Any] = {
        "task": whole["task"],
        "seeds": {"values": audit_seeds(spec, audit_uid)},
        "candidate": {"control": control},
        "repeats": repeats,
        "parallelism": spec.parallelism,
        "priority": spec.priority,
        "suspend": spec.suspend,
        "limits": whole["limits"],
        "retries": whole["retries"],
        "podTemplate": whole["podTemplate"],
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "EvalRun",
        "metadata": {
            "name": child_name(audit, audit_uid, control),
            "namespace": namespace,
            "labels": {LABEL_MANAGED_BY: MANAGER, LABEL_AUDIT_UID: audit_uid, LABEL_CONTROL: control},
            "ownerReferences": [Owner(audit, audit_uid, "AuditRun").reference(controller=True)],
        },
        "spec": child,
    }


def audit_of(body: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return name and UID of the audit that a run says it belongs to, or None for an ordinary run."""
    meta = body["metadata"]
    for owner in meta.get("ownerReferences") or ():
        if owner.get("kind") == "AuditRun" and str(owner.get("apiVersion", "")).startswith(f"{GROUP}/"):
            return str(owner.get("name")), str(owner.get("uid"))
    claimed = (meta.get("labels") or {}).get(LABEL_AUDIT_UID)
    return None if claimed is None else ("", str(claimed))


def is_genuine(body: Mapping[str, Any], expected: Mapping[str, Any], normal: Any) -> bool:
    """Tell whether a run is the child that the operator would make; ``normal`` fills defaults into a spec."""
    one, other = dict(normal(body["spec"])), dict(normal(expected["spec"]))
    for name in _MUTABLE:
        one.pop(name, None)
        other.pop(name, None)
    return bool(body["metadata"]["name"] == expected["metadata"]["name"] and one == other)


def mutable_patch(spec: AuditRunSpec, child: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of a child's spec no longer follows its audit."""
    wanted = {"suspend": spec.suspend, "parallelism": spec.parallelism, "priority": spec.priority}
    return {name: value for name, value in wanted.items() if child.get(name, _MUTABLE[name]) != value}


def reference_of(plan: Plan) -> str:
    """Return the name of the pack's reference, or an empty string where it has none."""
    return next((control.name for control in plan.controls if control.kind == "reference"), "")


def chosen_controls(plan: Plan, names: Sequence[str]) -> tuple[PlanControl, ...]:
    """Return the controls that are run: those named, or all; all that are no fault always."""
    return tuple(control for control in plan.controls if not names or control.name in names or control.kind in _ALWAYS)
