"""``casewarden agent-test`` on a cluster: what an agent behind an endpoint answers, and why one does not."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.kubectl import Kubectl, evalrun
from support.offers import image_of
from support.scripted import scripted_models


@pytest.fixture(scope="module", autouse=True)
def _models(kubectl: Kubectl) -> Iterator[None]:
    with scripted_models(kubectl, image_of(kubectl, "python")):
        yield


def test_agent_test_says_what_comes_back_and_why_nothing_does(
    kubectl: Kubectl, module_namespace: str, casewarden: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    def tried(name: str, candidate: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        document = evalrun(
            module_namespace, name, task={"name": "agentbench-db"}, seeds={"values": [0]}, candidate=candidate
        )
        file = tmp_path / f"{name}.yaml"
        file.write_text(yaml.safe_dump(document))
        asked = ["agent-test", "-f", str(file), "-n", module_namespace, "--message", "hello", "--output", "json"]
        done = casewarden(*asked)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    code, told = tried("echoes", {"model": {"endpoint": "scripted", "name": "parrot"}})
    assert (code, told["answered"], told["history"][-1]["content"]) == (0, True, "echo: hello"), told
    code, told = tried("too-long", {"model": {"endpoint": "scripted", "name": "context"}})
    assert (code, told["answered"], told["reason"]) == (1, False, "ContextLimit"), told
