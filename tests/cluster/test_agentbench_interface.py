"""AgentBench's interface in real pods: a user's task unchanged, its own score, the end of a pod, data by reference."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support import dataset_pack
from support.kubectl import Kubectl, evalrun, workspace
from support.offers import offering

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "agentbench-task"
BOOT = """\
import base64, json, pathlib, sys, zlib
for name, text in json.loads(zlib.decompress(base64.b64decode({files!r}))).items():
    pathlib.Path("/tmp", name).write_text(text)
sys.path.insert(0, "/tmp")
from casewarden_sdk.__main__ import main
sys.exit(main([{pack!r}, *sys.argv[1:]]))
"""
SILENT = "import sys\nfor line in sys.stdin: pass\n"
ECHO = (
    "import json, sys\n"
    "for line in sys.stdin:\n"
    "    said = json.loads(line)['messages'][-1]['content']\n"
    "    print(json.dumps({'role': 'assistant', 'content': said}), flush=True)\n"
)
Casewarden = Callable[..., subprocess.CompletedProcess[str]]


def command(pack: str, *files: Path) -> list[str]:
    """A task container's command that has these files beside its image's."""
    packed = zlib.compress(json.dumps({path.name: path.read_text() for path in files}).encode())
    return ["python3", "-B", "-c", BOOT.format(files=base64.b64encode(packed).decode(), pack=pack)]


def archive() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as made:
        member = tarfile.TarInfo(f"AgentBench/{dataset_pack.WORDS}")
        data = b"alpha beta\n"
        member.size = len(data)
        made.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture(scope="module")
def tasks(kubectl: Kubectl) -> Iterator[None]:
    """The release with two more tasks."""

    def add(catalogue: dict[str, Any]) -> None:
        image = catalogue["tasks"]["durable-kv"]["image"]
        kept = {"volume": {"configMap": {"name": "words"}}, "path": "words.tar.xz"}
        catalogue["tasks"]["virtual-task"] = {
            "image": image,
            "command": command("virtual_pack:PACK", EXAMPLE / "virtual_task.py", EXAMPLE / "virtual_pack.py"),
        }
        catalogue["tasks"]["words"] = {
            "image": image,
            "command": command("dataset_pack:PACK", Path(dataset_pack.__file__)),
            "datasets": {
                "words": kept,
                "tampered": {**kept, "sha256": "0" * 64},
                "missing": {**kept, "volume": {"configMap": {"name": "no-such-words"}}},
            },
        }

    with offering(kubectl, add):
        yield


def program(name: str) -> dict[str, Any]:
    return {"candidate": {"program": {"workspace": {"configMap": name}}}, "seeds": {"values": [0]}}


def test_tasks_of_agentbench_s_interface(
    kubectl: Kubectl, module_namespace: str, tasks: None, casewarden: Casewarden, tmp_path: Path
) -> None:
    namespace = module_namespace
    words = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words", "namespace": namespace}}
    kubectl.apply(
        {**words, "binaryData": {"words.tar.xz": base64.b64encode(archive()).decode()}},
        workspace(namespace, "echo", {"main.py": ECHO}),
        workspace(namespace, "silent", {"main.py": SILENT}),
        evalrun(namespace, "virtual", task={"name": "virtual-task"}, parallelism=10, **program("echo")),
        evalrun(namespace, "slow", task={"name": "virtual-task"}, select={"families": ["3"]},
                limits={"caseSeconds": 5}, **program("silent")),
        evalrun(namespace, "paused", task={"name": "virtual-task"}, select={"families": ["3"]}, **program("silent")),
        *(
            evalrun(namespace, name, task={"name": "words", "params": {"dataset": name}}, **program("echo"))
            for name in ("words", "tampered", "missing", "unheard-of")
        ),
    )  # fmt: skip

    virtual = kubectl.finished(namespace, "virtual")
    assert (virtual["score"], virtual["assessed"], virtual["cases"]["passed"]) == ("0.4", "10/10", 10), virtual
    verified = casewarden("verify", "virtual", "-n", namespace, "--keep", str(tmp_path / "run"))
    assert verified.returncode == 0, verified.stderr
    overall = json.loads((tmp_path / "run" / "overall.json").read_text())
    assert (overall["total"], overall["custom"]) == (10, {"score": 0.4})
    lines = (tmp_path / "run" / "runs.jsonl").read_text().splitlines()
    assert [json.loads(line)["index"] for line in lines] == list(range(10))

    read = kubectl.finished(namespace, "words")
    assert (read["score"], read["assessed"]) == ("1", "2/2"), read
    for name, condition, words_of in (
        ("tampered", "Planned", "is wanted; mount the right data"),
        ("missing", "Planned", "where nothing is; mount it"),
        ("unheard-of", "Accepted", "no such data set: use one of its own (missing, tampered, words)"),
    ):
        conditions = {item["type"]: item for item in kubectl.finished(namespace, name)["conditions"]}
        assert "spec.task.params.dataset" in conditions[condition]["message"], conditions[condition]
        assert words_of in conditions[condition]["message"]

    slow = kubectl.finished(namespace, "slow")
    assert (slow["failures"][0]["status"], slow["failures"][0]["reason"]) == ("agent_error", "TimeLimit"), slow
    record = shown(casewarden, namespace, "slow")
    assert (record["told"], record["ended"], record["cause"]["party"]) == (True, "returned", "candidate")

    kubectl.until(lambda: said(kubectl, namespace, "paused"), 60, lambda: "its task does not ask the agent")
    kubectl("patch", "er", "paused", "-n", namespace, "--type", "merge", "-p", '{"spec": {"suspend": true}}')
    kubectl.until(lambda: not kubectl.pods_of(namespace, "paused"), 60, lambda: "its pod does not go")
    record = shown(casewarden, namespace, "paused")
    assert (record["told"], record["ended"], record["cause"]["reason"]) == (True, "returned", "Deleted")
    assert record["output"]["history"][-1]["content"] == "cancelled"


def said(kubectl: Kubectl, namespace: str, run: str) -> bool:
    """Tell whether the task of the run's one case has begun."""
    pods = kubectl.pods_of(namespace, run)
    if not pods:
        return False
    (pod,) = pods
    return "begins" in kubectl("logs", pod["metadata"]["name"], "-n", namespace, "-c", "task", check=False)


def shown(casewarden: Casewarden, namespace: str, run: str) -> dict[str, Any]:
    done = casewarden("show", run, "3", "-n", namespace, "--output", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["record"]  # type: ignore[no-any-return]
