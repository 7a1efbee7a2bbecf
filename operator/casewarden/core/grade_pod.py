"""The pod that grades recorded runs again: no candidate runs in it, and no container of it writes evidence.

An init container of the sidecar's image fetches the records with the token of the namespace's readers; then the task
image grades them twice at once, so that a grader that depends on chance shows itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from casewarden.api.names import AUDIENCE, READER_ACCOUNT, grade_pod_name
from casewarden.api.podtemplate import PodTemplate
from casewarden.core import containers as c
from casewarden.core.network import Owner
from casewarden.core.verb_container import verb_container, verb_volumes
from casewarden_sdk.canonical import canonical

__all__ = ["FETCH", "GRADE", "GRADE_AGAIN", "GradeContext", "grade_pod"]

Manifest = dict[str, Any]
FETCH: Final = "fetch"
GRADE: Final = "grade"
GRADE_AGAIN: Final = "grade-again"
_RECORDS_MIB: Final = 2048
_FETCH_UID: Final = 65530
_RECORDS: Final = "/records/records.jsonl.gz"


@dataclass(frozen=True, slots=True)
class GradeContext:
    """What is graded: ``runs`` are UIDs with root digests. ``relay_address`` is the IP of the host in ``relay_url``."""

    owner: Owner
    namespace: str
    task_image: str
    task_command: tuple[str, ...]
    evidence_image: str
    relay_url: str
    relay_address: str | None
    runs: Sequence[tuple[str, str]]
    mutants: bool = False
    params: Mapping[str, Any] = field(default_factory=dict)
    datasets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    template: PodTemplate = field(default_factory=PodTemplate)
    pending_seconds: float = 900.0
    grade_seconds: float = 3600.0


def grade_pod(context: GradeContext, attempt: int) -> Manifest:
    """Return the manifest of the pod that grades, in its ``attempt``-th try."""
    source = {"audience": AUDIENCE, "expirationSeconds": 3600, "path": "token"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": c.metadata(
            name=grade_pod_name(context.owner.name, context.owner.uid, attempt),
            namespace=context.namespace,
            owner=context.owner,
            role="grade",
            network="relay",
            template=context.template,
            annotations={},
        ),
        "spec": {
            **c.template_spec(context.template),
            "activeDeadlineSeconds": int(context.pending_seconds + context.grade_seconds),
            "hostname": "grade",
            "serviceAccountName": READER_ACCOUNT,
            **_names(context),
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "initContainers": [_fetch(context)],
            "containers": [_grade(context, GRADE), _grade(context, GRADE_AGAIN)],
            "volumes": [
                {"name": "records", "emptyDir": {"sizeLimit": f"{_RECORDS_MIB}Mi"}},
                {"name": "token", "projected": {"sources": [{"serviceAccountToken": source}]}},
                *verb_volumes(context, (FETCH, GRADE, GRADE_AGAIN)),
            ],
        },
    }


def _names(context: GradeContext) -> Manifest:
    if context.relay_address is None:
        return {"dnsPolicy": "ClusterFirst"}
    host = urlsplit(context.relay_url).hostname or ""
    return {
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["127.0.0.1"]},
        "hostAliases": [{"ip": context.relay_address, "hostnames": [host]}],
    }


def _fetch(context: GradeContext) -> Manifest:
    asked = {
        "relay_url": context.relay_url,
        "token": "/var/run/casewarden/token",
        "records": _RECORDS,
        "runs": [{"uid": uid, "digest": digest} for uid, digest in context.runs],
    }
    return {
        "name": FETCH,
        "image": context.evidence_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-I", "-m", "casewarden.casepod.records"],
        "env": [c.env("CASEWARDEN_FETCH", canonical(asked))],
        "resources": c.resources(
            cpu="50m", memory="64Mi", memory_limit="256Mi", storage="64Mi", storage_limit=f"{_RECORDS_MIB + 64}Mi"
        ),
        "securityContext": c.restricted(_FETCH_UID),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            c.mount("records", "/records"),
            c.mount(f"{FETCH}-tmp", "/tmp"),  # noqa: S108
            c.mount("token", "/var/run/casewarden", read_only=True),
        ],
    }


def _grade(context: GradeContext, name: str) -> Manifest:
    asked = {"records": _RECORDS, "mutants": context.mutants}
    return verb_container(
        context,
        "grade",
        name,
        env=c.env("CASEWARDEN_GRADE", canonical(asked)),
        mounts=[c.mount("records", "/records", read_only=True)],
    )
