"""The four kinds of containers of a case pod: evidence, candidate, environments and task."""

from __future__ import annotations

from typing import Any, Final

from casewarden.api.names import CANDIDATE, EVIDENCE, TASK
from casewarden.core import containers as c
from casewarden.core import datasets as data
from casewarden.core.facts import CANDIDATE_SHM, CANDIDATE_TMP, ENVIRONMENT_PREFIX, STATE
from casewarden.core.model import AttemptKey, PlannedCase
from casewarden.core.pod_context import GATEWAY_PORT, EnvironmentSpec, KindSpec, PodContext
from casewarden_sdk.canonical import canonical

__all__ = [
    "ENVIRONMENT_TMP_MIB", "SHM_MIB", "SPOOL_MIB", "candidate_container", "candidate_resources",
    "environment_container", "environment_resources", "evidence", "task_container", "task_resources",
]  # fmt: skip

Manifest = dict[str, Any]
EVIDENCE_UID: Final = 65530
SPOOL_MIB: Final = 512
SHM_MIB: Final = 16
ENVIRONMENT_TMP_MIB: Final = 64
_TASK_MEMORY_MIB: Final = 512
_WORKSPACE: Final = "/candidate"
_SHIM_IN_IMAGE: Final = "/usr/local/bin/shim"
_DIAL: Final = ("/casewarden/bin/shim", "--dial", "/casewarden/socket/shim.sock")
# An environment's shim waits for its driver, whose image may still be on its way; the pod's own deadline ends the wait.
_DIAL_DRIVER: Final = (*_DIAL, "--retry", "7200")
_RECORDER: Final = ("python3", "-I", "-m", "casewarden.casepod")


def evidence(context: PodContext, case: PlannedCase, key: AttemptKey, pod_name: str) -> Manifest:
    """Return the recorder: the one native sidecar, up before the others start and stopped after they have."""
    candidate = context.candidate
    mounts = [
        c.mount("bin", "/casewarden/bin"),
        c.mount("task-socket", "/casewarden/task"),
        c.mount("candidate-socket", "/casewarden/candidate"),
        c.mount("spool", "/casewarden/spool"),
        c.mount("evidence-tmp", "/tmp"),  # noqa: S108
        c.mount("token", "/var/run/casewarden", read_only=True),
    ]
    if candidate is not None and candidate.has_workspace:
        mounts.append(c.mount("workspace", _WORKSPACE, read_only=not candidate.fetch_workspace))
    return {
        "name": EVIDENCE,
        "image": context.evidence_image,
        "imagePullPolicy": "IfNotPresent",
        "restartPolicy": "Always",
        "command": list(_RECORDER),
        "env": [
            {"name": "CASEWARDEN_POD_UID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
            c.env("CASEWARDEN_ATTEMPT", canonical(_attempt(context, case, key, pod_name))),
        ],
        # Before any other container starts, so that no image has to bring the shim.
        "lifecycle": {"postStart": {"exec": {"command": [_SHIM_IN_IMAGE, "--copy", "/casewarden/bin"]}}},
        "resources": c.resources(
            cpu="15m" if context.model is None and not context.task_models else "100m",
            memory="64Mi",
            memory_limit="256Mi",
            storage="32Mi",
            storage_limit=f"{SPOOL_MIB + 128}Mi",
        ),
        "securityContext": c.restricted(EVIDENCE_UID),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _attempt(context: PodContext, case: PlannedCase, key: AttemptKey, pod_name: str) -> Manifest:
    limits, candidate = context.limits, context.candidate
    return {
        "run_uid": context.owner.uid,
        "seed": key.case.seed,
        "case_id": key.case.case_id,
        "repeat": key.case.repeat,
        "attempt": key.attempt,
        "pod_name": pod_name,
        "case_sha256": case.sha256,
        "dimensions": sorted(case.dimensions),
        "limits": {
            "case_seconds": limits.case_seconds,
            "response_seconds": limits.response_seconds,
            "start_seconds": limits.start_seconds,
            "actions": limits.actions,
            "output_bytes": limits.output_bytes,
            "request_bytes": limits.request_bytes,
            "processes": limits.processes,
            "state_mib": limits.state_mib,
            "hold_seconds": context.hold_seconds,
        },
        "candidate": None
        if candidate is None
        else {
            "argv": None if candidate.argv is None else list(candidate.argv),
            "default_argv": list(candidate.default_argv),
            "env": [{"name": name, "value": value} for name, value in candidate.env],
            "network": candidate.network,
            "workspace_digest": candidate.workspace_digest,
            "fetch_workspace": candidate.fetch_workspace,
            **({} if candidate.port is None else {"port": candidate.port}),
            **({} if candidate.agent is None else {"agent": dict(candidate.agent)}),
        },
        **({} if context.model is None else {"model": context.model.to_json(limits.tokens, GATEWAY_PORT)}),
        **(
            {"models": {role: model.to_json(None, GATEWAY_PORT) for role, model in context.task_models.items()}}
            if context.task_models
            else {}
        ),
        "relay_url": context.relay_url,
    }


def candidate_container(context: PodContext, image: str, uid: int) -> Manifest:
    """Return the container of the untrusted program; it starts nothing until the recorder says so."""
    has_workspace = context.candidate is not None and context.candidate.has_workspace
    return {
        "name": CANDIDATE,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(_DIAL),
        # An image may bring the program's files there. Where it does not, the runtime makes the folder.
        "workingDir": _WORKSPACE,
        "resources": candidate_resources(context),
        "securityContext": c.restricted(uid),
        "volumeMounts": [
            c.mount("bin", "/casewarden/bin", read_only=True),
            c.mount("candidate-socket", "/casewarden/socket", read_only=True),
            *([c.mount("workspace", _WORKSPACE, read_only=True)] if has_workspace else []),
            c.mount(STATE, "/state"),
            c.mount(CANDIDATE_TMP, "/tmp"),  # noqa: S108
            c.mount(CANDIDATE_SHM, "/dev/shm"),  # noqa: S108
        ],
    }


def environment_container(environment: EnvironmentSpec, uid: int) -> Manifest:
    """Return a container that the agent acts upon, by the driver's hand."""
    name = f"{ENVIRONMENT_PREFIX}{environment.name}"
    return {
        "name": name,
        "image": environment.image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(_DIAL_DRIVER),
        "resources": environment_resources(environment),
        "securityContext": c.restricted(uid) if environment.profile == "restricted" else _baseline(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            c.mount("bin", "/casewarden/bin", read_only=True),
            c.mount(f"{name}-socket", "/casewarden/socket", read_only=True),
            c.mount(f"{name}-tmp", "/tmp"),  # noqa: S108
            c.mount(f"{name}-shm", "/dev/shm"),  # noqa: S108
        ],
    }


def _baseline() -> Manifest:
    """Return the security of an environment that must be root: it is the default one without raw sockets."""
    return {
        "runAsUser": 0,
        "runAsGroup": 0,
        "runAsNonRoot": False,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["NET_RAW"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def task_container(context: PodContext, kind: KindSpec, key: AttemptKey) -> Manifest:
    """Return the driver. It is told seed and case, and neither repeat nor attempt."""
    case = {"seed": key.case.seed, "case_id": key.case.case_id, "params": dict(context.params)}
    run = {"command": c.command((*context.task_command, "drive"))} if context.task_command else {"args": ["drive"]}
    return {
        "name": TASK,
        "image": context.task_image,
        "imagePullPolicy": "IfNotPresent",
        **run,
        "env": [c.env("CASEWARDEN_CASE", canonical(case)), *data.environment(context.datasets)],
        "resources": task_resources(context),
        "securityContext": c.restricted(c.TASK_UID),
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            c.mount("task-socket", "/casewarden/task", read_only=True),
            *(
                c.mount(f"{ENVIRONMENT_PREFIX}{item.name}-socket", f"/casewarden/env/{item.name}")
                for item in kind.environments
            ),
            c.mount("task-tmp", "/tmp"),  # noqa: S108
            *data.mounts(context.datasets, context.params),
        ],
    }


def candidate_resources(context: PodContext) -> Manifest:
    """Return what the candidate's container asks for and may use."""
    limits, template = context.limits, context.template.candidate
    # Its volumes are its memory too: a full /state must answer ENOSPC and not be an OOM kill.
    memory = limits.memory_mib + limits.state_mib + limits.tmp_mib + SHM_MIB
    default = c.resources(cpu="40m", memory=f"{memory}Mi")
    return c.override(default, template.resources if template else None)


def environment_resources(environment: EnvironmentSpec) -> Manifest:
    """Return what an environment's container asks for and may use; a writable root is on the node's disk."""
    memory = environment.memory_mib + ENVIRONMENT_TMP_MIB + SHM_MIB
    storage = "64Mi" if environment.profile == "restricted" else "1Gi"
    return c.resources(cpu="50m", memory=f"{memory}Mi", storage_limit=storage)


def task_resources(context: PodContext) -> Manifest:
    """Return what the driver's container asks for and may use."""
    template = context.template.task
    default = c.resources(cpu="15m", memory="64Mi", memory_limit=f"{_TASK_MEMORY_MIB}Mi", storage_limit="256Mi")
    return c.override(default, template.resources if template else None)
