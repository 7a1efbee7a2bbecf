from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.fake_models import FakeModels

from casewarden.local.shim import find_shim
from casewarden_sdk.contract import Case, Verdict
from casewarden_tasks._template import PACK as TEMPLATE
from casewarden_tasks.agentbench_mind2web.own import own_tasks

PACK = ["--pack", "casewarden_tasks._template:PACK"]
REFERENCE = next(control for control in TEMPLATE.controls if control.kind == "reference")
FAULT = next(control for control in TEMPLATE.controls if control.kind == "fault")


@pytest.fixture(autouse=True)
def shim(monkeypatch: pytest.MonkeyPatch) -> None:
    """Name the shim, so that it is not built again in the home folder of a test."""
    monkeypatch.setenv("CASEWARDEN_SHIM", str(find_shim()))


def manifest(candidate: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "casewarden.dev/v1alpha1",
        "kind": "EvalRun",
        "metadata": {"name": "mine"},
        "spec": {"task": {"name": TEMPLATE.id}, "seeds": {"values": [17]}, "candidate": candidate, **spec},
    }


def folder_of(cli: Any, files: Any) -> Path:
    agent = cli.folder / "agent"
    agent.mkdir()
    for name, text in files.items():
        (agent / name).write_text(text)
    return Path(agent)


@pytest.mark.parametrize(("control", "code"), [(REFERENCE, 0), (FAULT, 1)])
async def test_run_does_the_whole_job_without_a_cluster(cli: Any, control: Any, code: int) -> None:
    file = cli.write("run.yaml", yaml.safe_dump(manifest({"control": control.name})))

    ran = await cli("run", "-f", file, *PACK, "-o", "json")

    assert ran.code == code, ran.err
    assert ran.json["status"]["valid"] is True
    assert ran.err.splitlines()[0] == "casewarden: a local run is no sandbox: the candidate runs with your rights"
    assert ran.err.splitlines()[-1].startswith("mine: complete")
    verified = await cli("verify", "casewarden-runs", "--regrade", *PACK, "-o", "json")
    assert verified.code == 0, verified.out
    assert verified.json["digest"] == ran.json["status"]["evidence"]["digest"]
    assert verified.json["regraded"] == verified.json["verdicts"] > 0


async def test_a_runs_config_map_may_be_in_the_same_file(cli: Any) -> None:
    run = manifest({"program": {"workspace": {"configMap": "agent"}}})
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "agent"}, "data": dict(REFERENCE.files)}

    ran = await cli("run", "-f", cli.write("run.yaml", yaml.safe_dump_all([config_map, run])), *PACK)

    assert ran.code == 0, ran.err
    assert "score 1, resolved" in ran.out


async def test_a_folder_stands_in_for_what_the_manifest_names(cli: Any) -> None:
    file = cli.write("run.yaml", yaml.safe_dump(manifest({"program": {"workspace": {"configMap": "agent"}}})))
    refused = await cli("run", "-f", file, *PACK)
    assert refused.code == 2
    assert "give the folder with --workspace" in refused.err

    ran = await cli("run", "-f", file, *PACK, "-w", str(folder_of(cli, REFERENCE.files)))
    assert ran.code == 0, ran.err


async def test_evaluate_takes_a_folder_and_no_manifest(cli: Any) -> None:
    agent = folder_of(cli, FAULT.files)
    ran = await cli("evaluate", str(agent), "-t", TEMPLATE.id, "--seeds", "17,41", "--local", *PACK)

    assert ran.code == 1, ran.err
    failed = (await cli("cases", "casewarden-runs", "--failed", "-o", "json")).json
    assert {row["seed"] for row in failed} == {17, 41}
    shown = await cli("show", "casewarden-runs", failed[0]["case"], "--seed", str(failed[0]["seed"]))
    assert (shown.code, "FAIL" in shown.out, "-> " in shown.out) == (0, True, True)


async def test_an_edited_local_run_does_not_verify(cli: Any) -> None:
    file = cli.write("run.yaml", yaml.safe_dump(manifest({"control": FAULT.name})))
    await cli("run", "-f", file, *PACK)
    (results,) = (cli.folder / "casewarden-runs").rglob("results.jsonl")
    results.write_text(results.read_text().replace('"failed"', '"passed"'))

    ran = await cli("verify", "casewarden-runs")

    assert ran.code == 2
    assert "NOT consistent" in ran.out


async def test_verify_refuses_to_grade_again_by_another_grader(cli: Any) -> None:
    file = cli.write("run.yaml", yaml.safe_dump(manifest({"control": REFERENCE.name})))
    await cli("run", "-f", file, *PACK)

    ran = await cli("verify", "casewarden-runs", "--regrade", "--pack", "durable-kv")

    assert ran.code == 2
    assert "install that version" in ran.err


async def test_plan_says_what_would_run_and_validate_what_is_wrong(cli: Any) -> None:
    good = cli.write("good.yaml", yaml.safe_dump(manifest({"control": REFERENCE.name})))
    bad = cli.write("bad.yaml", yaml.safe_dump(manifest({"control": "nope"}, limits={"caseSeconds": 86400})))

    planned = await cli("plan", "-f", good, *PACK, "-o", "json")
    assert (planned.code, planned.json["task"]["id"], planned.json["seeds"]) == (0, TEMPLATE.id, [17])
    assert (await cli("validate", "-f", good, *PACK)).code == 0

    ran = await cli("validate", "-f", bad, *PACK)
    assert ran.code == 2
    assert "spec.limits.caseSeconds is 86400: a run may only tighten the task's limits" in ran.out
    assert 'spec.candidate.control is "nope": the task has no such control' in ran.out
    assert (await cli("validate", "-f", bad, "--no-plan")).code == 0


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"seeds": {"values": [1, 1]}}, "the seed is there twice"),
        ({"seedz": {}}, "spec.seedz: there is no such field"),
        ({"candidate": {}}, "there is nothing to evaluate"),
        ({"candidate": {"control": "nope"}}, "the task has no such control"),
        ({"task": {"name": "nope"}}, "nope"),
    ],
)
async def test_a_run_that_cannot_be_run_says_why_and_exits_2(cli: Any, spec: dict[str, Any], said: str) -> None:
    document = manifest({"control": REFERENCE.name})
    document["spec"].update(spec)
    pack = [] if "task" in spec else PACK

    ran = await cli("run", "-f", cli.write("run.yaml", yaml.safe_dump(document)), *pack)

    assert ran.code == 2
    assert said in ran.out + ran.err
    assert "Traceback" not in ran.out + ran.err


def test_an_interrupted_run_ends_with_130_and_leaves_no_process(tmp_path: Path) -> None:
    sleeper = "import sys, time\nfor line in sys.stdin:\n    time.sleep(60)\n"
    run = manifest({"program": {"workspace": {"configMap": "agent"}}})
    config_map = {"kind": "ConfigMap", "metadata": {"name": "agent"}, "data": {"main.py": sleeper}}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump_all([config_map, run]))
    command = [sys.executable, "-m", "casewarden.cli", "run", "-f", "run.yaml", *PACK]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "CASEWARDEN_MARK": str(tmp_path)},
        # A shell starts what runs in its background with interrupts ignored, the tests themselves perhaps among it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        wait_for(lambda: len(marked(tmp_path)) > 5)  # more than the two plans: cases are running
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()

    assert process.returncode == 130
    assert err.splitlines()[-1] == "casewarden: interrupted"
    assert "Traceback" not in err
    wait_for(lambda: not marked(tmp_path))


def wait_for(what: Any, seconds: float = 30.0) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, f"not within {seconds:g} s"
        time.sleep(0.05)


def marked(mark: Path) -> list[int]:
    """Return the processes that inherited the mark: the command, its shims and its drivers."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"CASEWARDEN_MARK={mark}".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


async def test_run_plays_a_model_at_an_endpoint_of_the_command_line(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    document = manifest({"model": {"endpoint": "team", "name": "support"}})
    document["spec"]["task"]["name"] = "support-routing"
    file = cli.write("run.yaml", yaml.safe_dump(document))
    monkeypatch.setenv("CASEWARDEN_KEY_TEAM", "sk-local")
    with FakeModels(key="sk-local") as models:
        ran = await cli("run", "-f", file, "--endpoint", f"team={models.url}")
        refused = await cli("run", "-f", file, "--endpoint", f"other={models.url}")
    assert ran.code == 0, ran.err
    assert f"{models.stats.calls} model calls, " in ran.out
    verified = await cli("verify", "casewarden-runs")
    assert (verified.code, f"{models.stats.calls} of the calls are in the bundles" in verified.out) == (0, True)
    assert refused.code == 2
    assert "--endpoint" in refused.out


async def test_a_run_reads_the_data_set_that_is_named_beside_it(cli: Any, tmp_path: Path) -> None:
    folder = tmp_path / "records"
    (folder / "data_dev").mkdir(parents=True)
    (folder / "LICENSE").write_text("CC-BY-4.0")
    (folder / "data_dev" / "tasks.json").write_text(json.dumps(own_tasks()[:1]))
    task = {"name": "agentbench-mind2web", "params": {"dataset": "records", "split": "dev"}}
    file = cli.write("run.yaml", yaml.safe_dump(manifest({"control": "reference"}, task=task, seeds={"values": [0]})))
    pack = ["--pack", "casewarden_tasks.agentbench_mind2web:PACK"]

    refused = await cli("run", "-f", file, *pack)
    assert refused.code != 0
    assert "there is no data set 'records'" in refused.out + refused.err

    ran = await cli("run", "-f", file, *pack, "--dataset", f"records={folder}", "-o", "json", "--out", "with")
    assert ran.code == 0, ran.err
    assert (ran.json["status"]["score"], ran.json["status"]["assessed"]) == ("1", "3/3")


async def test_records_are_graded_again_and_a_grader_that_judges_otherwise_is_said(
    cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = cli.write("run.yaml", yaml.safe_dump(manifest({"control": REFERENCE.name})))
    assert (await cli("run", "-f", file, *PACK, "--out", "kept")).code == 0

    equal = await cli("regrade", "kept", *PACK, "-o", "json")
    assert (equal.code, equal.json["changes"], equal.json["kept"]) == (0, [], 0), equal.err
    assert equal.json["graders"]["before"] == equal.json["graders"]["after"]

    other = await cli("regrade", "kept", "--pack", "casewarden_tasks.durable_kv:PACK")
    assert other.code == 2
    assert "records are graded by their own task only" in other.err

    def all_wrong(_: object, case: Case, record: object) -> Verdict:
        return Verdict.assessed(case, dict.fromkeys(case.dimensions, False), "no")

    monkeypatch.setattr(type(TEMPLATE), "grade", all_wrong)
    changed = await cli("regrade", "kept", *PACK, "-o", "json")
    assert (changed.code, len(changed.json["changes"])) == (1, equal.json["graded"])
    assert (changed.json["before"]["score"], changed.json["after"]["score"]) == ("1", "0")

    (results,) = (cli.folder / "kept").rglob("results.jsonl")
    results.write_bytes(results.read_bytes().replace(b"passed", b"failed"))
    touched = await cli("regrade", "kept", *PACK)
    assert touched.code == 2
    assert "results.jsonl" in touched.err
