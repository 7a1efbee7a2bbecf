"""What a ``sealed.json`` must hold; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from casewarden.core.evidence import SEALED_FIELDS
from casewarden.core.model import CaseKey
from casewarden_sdk.contract import AGENT_ERROR, FAILED, PASSED

__all__ = ["check_sealed"]

_DIGEST = re.compile(r"[0-9a-f]{64}")
_REASON = re.compile(r"[A-Z][A-Za-z]{0,63}")


def check_sealed(document: Mapping[str, Any], run_uid: str, case: CaseKey) -> str | None:
    """Say what is wrong with a seal of that case, or None.

    The verdict's invariants hold here too: an environment error is never sealed, ``passed`` goes with checks that are
    all true, and a reason with ``agent_error``.
    """
    unknown, missing = document.keys() - SEALED_FIELDS, SEALED_FIELDS - document.keys()
    if unknown or missing:
        return f"fields {sorted(unknown)} are unknown and {sorted(missing)} missing"
    asked = {"v": 1, "run_uid": run_uid, "seed": case.seed, "case_id": case.case_id, "repeat": case.repeat}
    for name, value in asked.items():
        if document[name] != value or isinstance(document[name], bool):
            return f"{name} is {document[name]!r}; this is the seal of {name} {value!r}"
    attempt, seconds = document["attempt"], document["seconds"]
    if not isinstance(attempt, int) or isinstance(attempt, bool) or attempt < 1:
        return f"attempt is {attempt!r}; give a whole number from 1"
    if not isinstance(document["pod_uid"], str) or not document["pod_uid"]:
        return f"pod_uid is {document['pod_uid']!r}; give the pod's UID"
    if not isinstance(document["digest"], str) or not _DIGEST.fullmatch(document["digest"]):
        return f"digest is {document['digest']!r}; give 64 lower-case hexadecimal digits"
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not 0 <= seconds < 1e9:
        return f"seconds is {seconds!r}; give a number from 0"
    return _check_verdict(document)


def _check_verdict(document: Mapping[str, Any]) -> str | None:
    status, checks, reason, error = (document[name] for name in ("status", "checks", "reason", "error"))
    if status not in (PASSED, FAILED, AGENT_ERROR):
        return f"status is {status!r}; only passed, failed and agent_error are sealed"
    if not isinstance(checks, str) or not checks or set(checks) - {"0", "1"}:
        return f"checks is {checks!r}; give a 0 or a 1 for each dimension of the case"
    if (status == PASSED) != ("0" not in checks):
        return f"status {status!r} does not fit checks {checks!r}"
    if (reason is not None) != (status == AGENT_ERROR):
        return f"reason is {reason!r} with status {status!r}; agent_error, and only it, has one"
    if reason is not None and not (isinstance(reason, str) and _REASON.fullmatch(reason)):
        return f"reason is {reason!r}; give a word of the outcome table"
    if error is not None and not (isinstance(error, str) and len(error.encode("utf-8", "replace")) <= 8192):
        return "error is no text of at most 8192 bytes"
    return None
