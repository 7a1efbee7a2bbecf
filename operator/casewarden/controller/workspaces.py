"""The candidate's files, fixed for the run: a ConfigMap's immutable copy, a control's own, or an uploaded folder."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from casewarden.api.evalrun import EvalRunSpec
from casewarden.api.plan import Plan
from casewarden.api.reasons import RunReason
from casewarden.controller.identity import RunIdentity
from casewarden.core.run_conditions import Why
from casewarden.ports.evidence import Evidence
from casewarden.ports.kube import CONFIG_MAPS, AlreadyExists, KubeApi, Manifest, NotFound
from casewarden_sdk.workspace import WorkspaceError, digest_workspace, workspace_of

__all__ = ["NoWorkspace", "Snapshot", "take_snapshot"]

_FIELD = "spec.candidate.program.workspace"


class NoWorkspace(Exception):
    """There are no files to run, or they may not be run; ``why`` names the field, the value and the cure."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.why = Why(RunReason.WORKSPACE_MISSING, message)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Where the files are: ``digest`` (hex, None for no files); ``config_map`` is the copy, None where uploaded."""

    digest: str | None = None
    config_map: str | None = None

    @property
    def fetch(self) -> bool:
        """Tell whether the case pod fetches the files from the relay."""
        return self.digest is not None and self.config_map is None


async def take_snapshot(
    api: KubeApi, evidence: Evidence, run: RunIdentity, spec: EvalRunSpec, plan: Plan | None
) -> Snapshot:
    """Return the run's files, copied if they are not yet; ``NoWorkspace`` where that cannot be."""
    candidate = spec.candidate
    if candidate.control is not None:
        control = plan.control(candidate.control) if plan is not None else None
        if control is None:
            raise NoWorkspace(f"spec.candidate.control: {candidate.control!r}: the task has no such control")
        return await _copied(api, run, {"data": dict(control.files)}, f"the control {candidate.control}")
    workspace = candidate.program.workspace if candidate.program is not None else None
    if workspace is None:
        return Snapshot()
    if workspace.digest is not None:
        if not await evidence.has_workspace(run.namespace, workspace.digest):
            raise NoWorkspace(
                f"{_FIELD}.digest: {workspace.digest!r}: no folder of this digest was uploaded to namespace "
                f"{run.namespace}: upload it with `casewarden evaluate`"
            )
        return Snapshot(workspace.digest.removeprefix("sha256:"))
    name = workspace.config_map or ""
    try:
        return await _existing(api, run)
    except NotFound:
        pass
    try:
        source = await api.get(CONFIG_MAPS, run.namespace, name)
    except NotFound:
        raise NoWorkspace(
            f"{_FIELD}.configMap: {name!r}: there is no such ConfigMap in namespace {run.namespace}: create it first"
        ) from None
    return await _copied(api, run, source, f"{_FIELD}.configMap: {name!r}")


async def _existing(api: KubeApi, run: RunIdentity) -> Snapshot:
    body = run.config_map("workspace", "workspace")
    copy = await api.get(CONFIG_MAPS, run.namespace, body["metadata"]["name"])
    return Snapshot(_digest(copy, "the copy of the workspace"), copy["metadata"]["name"])


async def _copied(api: KubeApi, run: RunIdentity, source: Mapping[str, Mapping[str, str]], what: str) -> Snapshot:
    content = {key: dict(source[key]) for key in ("data", "binaryData") if source.get(key)}
    digest = _digest(content, what)
    body = run.config_map("workspace", "workspace", immutable=True, **content)
    try:
        await api.create(CONFIG_MAPS, run.namespace, body)
    except AlreadyExists:
        return await _existing(api, run)
    return Snapshot(digest, body["metadata"]["name"])


def _digest(source: Mapping[str, Mapping[str, str]] | Manifest, what: str) -> str:
    texts = [(name, text.encode()) for name, text in (source.get("data") or {}).items()]
    blobs = [(name, base64.b64decode(blob)) for name, blob in (source.get("binaryData") or {}).items()]
    try:
        return digest_workspace(workspace_of([*texts, *blobs]))
    except WorkspaceError as error:
        raise NoWorkspace(f"{what}: {error}") from None
