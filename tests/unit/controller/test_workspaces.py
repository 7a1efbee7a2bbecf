"""A candidate's files are fixed once: copied, a control's own, or uploaded."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from support.packs import EchoPack

from casewarden.api.evalrun import EvalRunSpec
from casewarden.api.plan import Plan
from casewarden.controller.identity import RunIdentity
from casewarden.controller.workspaces import NoWorkspace, Snapshot, take_snapshot
from casewarden.ports.evidence import MemoryEvidence
from casewarden.ports.kube import CONFIG_MAPS
from casewarden.ports.memory_kube import MemoryKube
from casewarden_sdk.plan import build_plan
from casewarden_sdk.workspace import digest_workspace, workspace_of

RUN = RunIdentity("evals", "one", "uid-1")
PLAN = Plan.model_validate(build_plan(EchoPack(), [17], {}))


def spec(**candidate: Any) -> EvalRunSpec:
    return EvalRunSpec.model_validate({"task": {"name": "echo"}, "seeds": {"values": [17]}, "candidate": candidate})


def from_config_map(name: str = "agent") -> EvalRunSpec:
    return spec(program={"workspace": {"configMap": name}})


async def a_source(api: MemoryKube, **content: Any) -> None:
    await api.create(CONFIG_MAPS, "evals", {"metadata": {"name": "agent"}, **content})


async def taken(api: MemoryKube, wanted: EvalRunSpec, evidence: MemoryEvidence | None = None) -> Snapshot:
    return await take_snapshot(api, evidence or MemoryEvidence(), RUN, wanted, PLAN)


async def test_a_config_map_is_copied_with_text_and_bytes_and_its_digest() -> None:
    api = MemoryKube()
    await a_source(api, data={"main.py": "pass"}, binaryData={"x.bin": base64.b64encode(b"\0\1").decode()})
    found = await taken(api, from_config_map())
    copy = await api.get(CONFIG_MAPS, "evals", found.config_map or "")
    assert copy["immutable"] is True
    assert copy["metadata"]["ownerReferences"][0]["uid"] == "uid-1"
    assert found.digest == digest_workspace(workspace_of([("main.py", b"pass"), ("x.bin", b"\0\1")]))
    assert not found.fetch


async def test_the_copy_counts_when_the_source_has_changed_or_gone() -> None:
    api = MemoryKube()
    await a_source(api, data={"main.py": "one"})
    first = await taken(api, from_config_map())
    await api.patch(CONFIG_MAPS, "evals", "agent", {"data": {"main.py": "two"}})
    assert await taken(api, from_config_map()) == first
    await api.delete(CONFIG_MAPS, "evals", "agent")
    assert await taken(api, from_config_map()) == first


async def test_a_control_brings_its_own_files() -> None:
    api = MemoryKube()
    found = await taken(api, spec(control="deaf"))
    copy = await api.get(CONFIG_MAPS, "evals", found.config_map or "")
    control = PLAN.control("deaf")
    assert control is not None
    assert copy["data"] == control.files


async def test_an_uploaded_folder_is_fetched_by_the_pods() -> None:
    evidence, digest = MemoryEvidence(), "a" * 64
    wanted = spec(program={"workspace": {"digest": f"sha256:{digest}"}})
    with pytest.raises(NoWorkspace, match="no folder of this digest was uploaded to namespace evals"):
        await taken(MemoryKube(), wanted, evidence)
    evidence.workspaces["evals", f"sha256:{digest}"] = b"tar"
    found = await taken(MemoryKube(), wanted, evidence)
    assert found == Snapshot(digest)
    assert found.fetch


async def test_a_program_without_files_has_none() -> None:
    assert await taken(MemoryKube(), spec(program={"argv": ["agent"]})) == Snapshot()


async def test_what_is_missing_or_empty_is_named() -> None:
    api = MemoryKube()
    with pytest.raises(NoWorkspace, match="configMap: 'agent': there is no such ConfigMap in namespace evals"):
        await taken(api, from_config_map())
    await a_source(api)
    with pytest.raises(NoWorkspace, match="has no file"):
        await taken(api, from_config_map())
