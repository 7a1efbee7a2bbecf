"""Names that several parts share: API group, labels, containers, paths, and the names of a run's objects.

All are functions of the run's UID and the attempt, so that any replica, at any time, makes the same ones.
"""

from __future__ import annotations

import hashlib
from typing import Final

__all__ = [
    "ANNOTATION_ATTEMPT",
    "ANNOTATION_CASE",
    "ANNOTATION_REPEAT",
    "ANNOTATION_SEED",
    "API_VERSION",
    "AUDIENCE",
    "CANDIDATE",
    "EVIDENCE",
    "GROUP",
    "LABEL_MANAGED_BY",
    "LABEL_ROLE",
    "LABEL_RUN_UID",
    "MANAGER",
    "READER_ACCOUNT",
    "TASK",
    "VERSION",
    "case_pod_name",
    "config_map_name",
    "grade_pod_name",
    "plan_pod_name",
]

GROUP: Final = "casewarden.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
MANAGER: Final = "casewarden"

LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
LABEL_RUN_UID: Final = f"{GROUP}/run-uid"
LABEL_ROLE: Final = f"{GROUP}/role"
ANNOTATION_SEED: Final = f"{GROUP}/seed"
ANNOTATION_CASE: Final = f"{GROUP}/case"
ANNOTATION_REPEAT: Final = f"{GROUP}/repeat"
ANNOTATION_ATTEMPT: Final = f"{GROUP}/attempt"

EVIDENCE: Final = "evidence"
CANDIDATE: Final = "candidate"
TASK: Final = "task"
AUDIENCE: Final = "casewarden-relay"
READER_ACCOUNT: Final = "casewarden-reader"

_RUN_NAME_LENGTH: Final = 40


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _stem(run: str) -> str:
    return run[:_RUN_NAME_LENGTH].rstrip("-.")


def case_pod_name(run: str, run_uid: str, seed: int, case_id: str, repeat: int, attempt: int) -> str:
    """Return the name of an attempt's pod; it says nothing of the case that a reader could use."""
    return f"{_stem(run)}-{_short_hash(f'{run_uid}/{seed}/{case_id}/{repeat}')}-{attempt}"


def plan_pod_name(run: str, run_uid: str, attempt: int) -> str:
    """Return the name of the pod that plans a run, in its ``attempt``-th try."""
    return f"{_stem(run)}-plan-{_short_hash(run_uid)}-{attempt}"


def grade_pod_name(run: str, run_uid: str, attempt: int) -> str:
    """Return the name of the pod that grades recorded runs again for a run or an audit, in its ``attempt``-th try."""
    return f"{_stem(run)}-grade-{_short_hash(run_uid)}-{attempt}"


def aggregate_pod_name(run: str, run_uid: str, attempt: int) -> str:
    """Return the name of the pod that makes a score by the task's own rule, in its ``attempt``-th try."""
    return f"{_stem(run)}-score-{_short_hash(run_uid)}-{attempt}"


def config_map_name(run: str, run_uid: str, what: str) -> str:
    """Return the name of a run's ConfigMap; ``what`` is ``plan-0``, ``ledger-0``, ``workspace``."""
    return f"{_stem(run)}-{_short_hash(run_uid)}-{what}"
