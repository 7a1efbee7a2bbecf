"""The same manifest, status and evidence as on a cluster, from processes of this machine."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from support.packs import CONTROLS, REFERENCE

from casewarden.adapters.stores.zstd import decompress
from casewarden.api.status import EvalRunStatus
from casewarden.core.evidence import row_of_result
from casewarden.core.fingerprints import candidate_fingerprint
from casewarden.core.verify import verify_run
from casewarden.local.run import LocalResult
from casewarden_sdk.workspace import digest_workspace, workspace_of

SERVER = {"image": "x", "argv": ["x"], "port": 1}
MODEL = {"endpoint": "e", "name": "m"}


def condition(result: LocalResult, name: str) -> tuple[str, str, str]:
    found = next(item for item in result.status["conditions"] if item["type"] == name)
    return found["status"], found["reason"], found["message"]


def verify(result: LocalResult):
    def read(path: str) -> bytes | None:
        file = result.folder / path
        return file.read_bytes() if file.is_file() else None

    paths = [str(path.relative_to(result.folder)) for path in result.folder.rglob("*") if path.is_file()]
    return verify_run(read, paths, decompress, status_digest=result.status["evidence"]["digest"])


async def test_a_reference_resolves_its_cases_and_its_evidence_verifies(run):
    seen: list = []
    result = await run(repeats=2, seen=seen)
    status = EvalRunStatus.model_validate(result.status)
    assert (status.score, status.valid, status.resolved, status.progress) == ("1", True, True, "2/2")
    assert condition(result, "Complete")[0] == condition(result, "Passed")[0] == "True"
    verification = verify(result)
    assert (verification.findings, verification.authenticated, verification.bundles) == ([], True, 2)
    assert seen[0]["progress"] == "0/2"
    assert max(item["cases"]["running"] for item in seen) >= 1
    assert [row_of_result(json.loads(line)).status for line in (result.folder / "results.jsonl").open()] == [
        "passed"
    ] * 2


async def test_a_changed_byte_of_the_evidence_is_found(run):
    result = await run()
    bundle = next(result.folder.rglob("*.tar.zst"))
    bundle.write_bytes(bundle.read_bytes()[:-1] + b"x")
    assert verify(result).findings


@pytest.mark.parametrize(
    ("program", "status", "reason"),
    [("for line in open(0): print(0, flush=True)", "failed", None), ("raise SystemExit(127)", "agent_error", "Exited")],
)
async def test_a_program_that_is_wrong_or_breaks_is_assessed(run, program, status, reason):
    result = await run(files={"main.py": program})
    assert (result.status["score"], result.status["valid"], result.status["resolved"]) == ("0", True, False)
    (failure,) = result.status["failures"]
    assert (failure["status"], failure.get("reason")) == (status, reason)
    assert condition(result, "Passed")[:2] == ("False", "NotResolved")
    assert result.status["attempts"]["total"] == 1


async def test_a_control_and_a_folder_of_the_same_bytes_are_one_candidate(run):
    control = await run()
    folder = await run(files={"main.py": REFERENCE})
    assert control.status["fingerprints"] == folder.status["fingerprints"]
    digest = digest_workspace(workspace_of([("main.py", CONTROLS[0].files["main.py"].encode())]))
    assert folder.status["fingerprints"]["candidate"] == candidate_fingerprint(argv=None, workspace=digest)


async def test_the_runs_own_command_wins_and_changes_the_candidate(run):
    program = {"workspace": {"configMap": "agent"}, "argv": ["{python}", "{workspace}/other.py"]}
    files = {"main.py": "", "other.py": REFERENCE}
    result = await run(files=files, candidate={"program": program})
    plain = await run(files=files)
    assert (result.status["score"], plain.status["score"]) == ("1", "0")
    assert result.status["fingerprints"]["candidate"] != plain.status["fingerprints"]["candidate"]


async def test_a_workspaces_manifest_is_used(run):
    files = {"evalarc.toml": 'command = ["{python}", "agent.py"]', "agent.py": REFERENCE}
    assert (await run(files=files)).status["score"] == "1"


async def test_drawn_seeds_are_told(run):
    result = await run(seeds={"random": 3})
    assert len(set(result.status["seeds"])) == 3
    assert result.status["progress"] == "3/3"


async def test_limits_of_the_run_reach_the_candidate(run):
    result = await run(files={"main.py": "import time; time.sleep(60)"}, limits={"caseSeconds": 1})
    assert result.status["failures"][0]["reason"] == "TimeLimit"
    assert "more than its 1 s" in result.status["failures"][0]["error"]


ROOT = {"pack": "casewarden_tasks.agentbench_os:PACK", "candidate": {"control": "reference"}}


@pytest.mark.parametrize(
    ("spec", "type_", "reason", "message"),
    [
        ({"candidate": {"control": "nope"}}, "Planned", "PlanRefused", "no such control"),
        ({"select": {"families": ["nope"]}}, "Planned", "PlanRefused", "spec.select.families: no family 'nope'"),
        ({"limits": {"caseSeconds": 999}}, "Planned", "PlanRefused", "may only tighten"),
        ({"pack": "support.packs:UNSTABLE"}, "Planned", "PlanUnstable", "made two plans"),
        ({"pack": "no.such.module:PACK"}, "Planned", "PlanFailed", "No module named"),
        ({"pack": "support.packs:NOPE"}, "Planned", "PlanFailed", "has no NOPE"),
        ({**ROOT, "seeds": {"values": [0]}}, "Planned", "PlanRefused", "its agent is root of a container"),
        ({"pack": None, "task": {"image": "x:1"}}, "Accepted", "UnknownTask", "name the pack instead"),
        ({"candidate": {"server": SERVER}}, "Planned", "PlanRefused", "the task takes no servers"),
        ({"candidate": {"model": MODEL}}, "Accepted", "UnknownEndpoint", "spec.candidate.model.endpoint"),
        ({"candidate": {"program": {"workspace": {"configMap": "a"}}}}, "Accepted", "WorkspaceMissing", "are not here"),
    ],
)
async def test_what_cannot_be_run_is_said_in_the_status_and_nothing_is_started(run, spec, type_, reason, message):
    result = await run(**spec)
    status, found, text = condition(result, type_)
    assert (status, found) == ("False", reason)
    assert message in text
    assert condition(result, "Failed")[:2] == ("True", reason)
    assert "score" not in result.status
    assert result.rows == ()


async def test_a_folder_of_another_digest_than_the_runs_is_refused(run):
    candidate = {"program": {"workspace": {"digest": "sha256:" + "0" * 64}}}
    result = await run(files={"main.py": REFERENCE}, candidate=candidate)
    assert condition(result, "Accepted")[1] == "WorkspaceMissing"


async def test_nothing_is_left_behind(run, monkeypatch):
    with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        daemon = "import os, time\nif os.fork(): raise SystemExit(0)\nos.setsid()\ntime.sleep(60)"
        await run(files={"main.py": daemon})
        assert list(Path(folder).iterdir()) == []
        assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if folder.encode() in _read(path)]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
