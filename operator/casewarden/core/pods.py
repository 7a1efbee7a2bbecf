"""The pod of a case: what is in it, who may write where, and what each container may use.

Pure: the controller resolves images and workspaces and fills a ``PodContext``. ``docs/internals/wire.md`` fixes names,
paths and environments; the recorder, the driver and the shim are written against it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from casewarden.api.names import (
    ANNOTATION_ATTEMPT,
    ANNOTATION_CASE,
    ANNOTATION_REPEAT,
    ANNOTATION_SEED,
    AUDIENCE,
    case_pod_name,
)
from casewarden.core import case_containers as containers
from casewarden.core import containers as c
from casewarden.core import datasets as data
from casewarden.core.facts import CANDIDATE_SHM, CANDIDATE_TMP, ENVIRONMENT_PREFIX, STATE
from casewarden.core.model import AttemptKey, PlannedCase
from casewarden.core.pod_context import (
    CandidateSpec,
    EnvironmentSpec,
    KindSpec,
    PodContext,
    attempt_uid,
    backstop_seconds,
)

__all__ = [
    "CandidateSpec", "EnvironmentSpec", "KindSpec", "PodContext", "attempt_uid", "backstop_seconds", "case_pod",
    "conditions_of",
]  # fmt: skip

Manifest = dict[str, Any]
_BIN_MIB: Final = 32
_SOCKET_MIB: Final = 1
# An uploaded folder is at most 10 MiB of files.
_WORKSPACE_MIB: Final = 16
_EVIDENCE_TMP_MIB: Final = 16
_TASK_TMP_MIB: Final = 64


def case_pod(context: PodContext, case: PlannedCase, key: AttemptKey) -> Manifest:
    """Return the manifest of an attempt's pod."""
    kind = context.kinds[case.kind]
    name = case_pod_name(
        context.owner.name, context.owner.uid, key.case.seed, key.case.case_id, key.case.repeat, key.attempt
    )
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": c.metadata(
            name=name,
            namespace=context.namespace,
            owner=context.owner,
            role="case",
            network="relay",
            template=context.template,
            annotations={
                ANNOTATION_SEED: str(key.case.seed),
                ANNOTATION_CASE: key.case.case_id,
                ANNOTATION_REPEAT: str(key.case.repeat),
                ANNOTATION_ATTEMPT: str(key.attempt),
            },
        ),
        "spec": {
            **c.template_spec(context.template),
            "activeDeadlineSeconds": backstop_seconds(context),
            # A candidate must not learn from its host's name which case or attempt it is.
            "hostname": "case",
            **_names(context),
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "initContainers": [containers.evidence(context, case, key, name)],
            "containers": list(_containers(context, kind, key)),
            "volumes": list(_volumes(context, kind)),
        },
    }


def conditions_of(context: PodContext) -> Manifest:
    """Return what of the pods bears on what a candidate can do; two scores under different conditions differ by it."""
    return {
        "limits": dict(vars(context.limits)),
        "kinds": {
            name: {
                "candidate": containers.candidate_resources(context) if kind.candidate_image is not None else None,
                "environments": {
                    item.name: {"profile": item.profile, **containers.environment_resources(item)}
                    for item in kind.environments
                },
            }
            for name, kind in context.kinds.items()
        },
        "task": containers.task_resources(context),
        "runtime_class": context.template.runtime_class_name,
    }


def _names(context: PodContext) -> Manifest:
    if context.relay_address is None:
        return {"dnsPolicy": "ClusterFirst"}
    host = urlsplit(context.relay_url).hostname or ""
    return {
        # Without DNS there is no tunnel through it. A pod must name a server; nothing listens on this one.
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["127.0.0.1"]},
        "hostAliases": [{"ip": context.relay_address, "hostnames": [host]}],
    }


def _containers(context: PodContext, kind: KindSpec, key: AttemptKey) -> Iterator[Manifest]:
    uid = attempt_uid(context.owner.uid, key)
    if context.candidate is not None and kind.candidate_image is not None:
        yield containers.candidate_container(context, kind.candidate_image, uid)
    for number, environment in enumerate(kind.environments, start=1):
        yield containers.environment_container(environment, uid + number)
    yield containers.task_container(context, kind, key)


def _volumes(context: PodContext, kind: KindSpec) -> Iterator[Manifest]:
    limits, candidate = context.limits, context.candidate
    yield c.memory_volume("bin", _BIN_MIB)
    yield c.memory_volume("task-socket", _SOCKET_MIB)
    yield c.memory_volume("candidate-socket", _SOCKET_MIB)
    yield {"name": "spool", "emptyDir": {"sizeLimit": f"{containers.SPOOL_MIB}Mi"}}
    yield c.memory_volume("evidence-tmp", _EVIDENCE_TMP_MIB)
    yield c.memory_volume("task-tmp", _TASK_TMP_MIB)
    yield from data.volumes(context.datasets, context.params)
    yield _token()
    if candidate is not None and kind.candidate_image is not None:
        yield c.memory_volume(STATE, limits.state_mib)
        yield c.memory_volume(CANDIDATE_TMP, limits.tmp_mib)
        yield c.memory_volume(CANDIDATE_SHM, containers.SHM_MIB)
    if candidate is not None and candidate.fetch_workspace:
        yield c.memory_volume("workspace", _WORKSPACE_MIB)
    elif candidate is not None and candidate.workspace_config_map is not None:
        yield {"name": "workspace", "configMap": {"name": candidate.workspace_config_map, "defaultMode": 0o644}}
    for environment in kind.environments:
        name = f"{ENVIRONMENT_PREFIX}{environment.name}"
        yield c.memory_volume(f"{name}-socket", _SOCKET_MIB)
        yield c.memory_volume(f"{name}-tmp", containers.ENVIRONMENT_TMP_MIB)
        yield c.memory_volume(f"{name}-shm", containers.SHM_MIB)


def _token() -> Manifest:
    source = {"audience": AUDIENCE, "expirationSeconds": 3600, "path": "token"}
    return {"name": "token", "projected": {"sources": [{"serviceAccountToken": source}]}}
