"""An environment container in a real pod: the driver acts in it, and an agent that kills it has failed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from support import sandbox_pack
from support.kubectl import Kubectl, evalrun, workspace
from support.offers import offering
from support.shipped_pack import command_of


class Sandbox(NamedTuple):
    """A task of the catalogue whose cases have an environment, and the catalogue's image with a Python."""

    task: str
    python: str


@pytest.fixture(scope="module")
def sandbox(kubectl: Kubectl) -> Iterator[Sandbox]:
    """The release with that task."""

    def add(catalogue: dict[str, Any]) -> None:
        catalogue["tasks"]["sandbox"] = {
            "image": catalogue["tasks"]["durable-kv"]["image"],
            "command": command_of(sandbox_pack),
        }

    with offering(kubectl, add) as catalogue:
        yield Sandbox("sandbox", catalogue["images"]["python"])


def test_the_driver_works_in_an_environment_and_an_agent_that_kills_it_has_failed(
    kubectl: Kubectl,
    namespace: str,
    sandbox: Sandbox,
    casewarden: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    kubectl.apply(
        workspace(namespace, "killer", {"main.py": sandbox_pack.KILLER}),
        *(
            evalrun(namespace, name, task={"name": sandbox.task}, seeds={"values": [1]}, keepPods="OnFailure",
                    candidate={"program": program})
            for name, program in (
                # All that it needs is in its image and its command.
                ("worker", {"image": sandbox.python, "argv": ["python3", "-I", "-c", sandbox_pack.REFERENCE]}),
                ("killer", {"workspace": {"configMap": "killer"}}),
            )
        ),
    )  # fmt: skip
    worker, killer = (kubectl.finished(namespace, name) for name in ("worker", "killer"))

    assert (worker["score"], worker["resolved"]) == ("1", True), worker
    shown = casewarden("show", "worker", "capitals", "-n", namespace, "--output", "json")
    record = json.loads(shown.stdout)["record"]
    assert record["made"] == "SHOUT\n"
    assert record["uid"] >= 1000, "the environment's user is its own, and not root"

    assert killer["score"] == "0", killer
    assert killer["cases"]["agentErrors"] == 1
    assert killer["attempts"]["total"] == 1, "it is not tried again"
    assert killer["failures"][0]["reason"] == "SandboxKilled"
    (pod,) = kubectl.pods_of(namespace, "killer")
    ended = {item["name"]: item["state"]["terminated"] for item in pod["status"]["containerStatuses"]}
    assert ended["env-shell"]["exitCode"] == 143
    assert ended["task"]["exitCode"] == 0
