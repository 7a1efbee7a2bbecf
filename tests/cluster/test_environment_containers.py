"""An environment container in a real pod: the driver acts in it, and an agent that kills it has failed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from support import sandbox_pack, strikes
from support.kubectl import Kubectl, condition, evalrun, message, reason, workspace
from support.offers import offering
from support.shipped_pack import command_of


class Sandbox(NamedTuple):
    """A task of the catalogue whose cases have an environment, and the catalogue's image with a Python."""

    task: str
    python: str


def _as_root(source: bytes) -> bytes:
    for old, new in ((b'id = "sandbox"', b'id = "rooted"'), (b'"profile": "restricted"', b'"profile": "baseline"')):
        assert source.count(old) == 1
        source = source.replace(old, new)
    return source


@pytest.fixture(scope="module")
def sandbox(kubectl: Kubectl) -> Iterator[Sandbox]:
    """The release with that task, and with `rooted`: the same, but that its environment runs as root."""

    def add(catalogue: dict[str, Any]) -> None:
        image = catalogue["tasks"]["durable-kv"]["image"]
        rooted = command_of(sandbox_pack, _as_root)
        catalogue["tasks"]["sandbox"] = {"image": image, "command": command_of(sandbox_pack)}
        catalogue["tasks"]["rooted"] = {"image": image, "command": rooted}
        catalogue["allowBaseline"] = ["rooted"]

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


def test_an_environment_that_dies_before_the_agents_first_action_is_not_the_agents(
    kubectl: Kubectl, namespace: str, sandbox: Sandbox
) -> None:
    kubectl.apply(
        workspace(namespace, "struck", {"main.py": sandbox_pack.THINKS}),
        evalrun(namespace, "struck", task={"name": sandbox.task}, seeds={"values": [1]},
                candidate={"program": {"workspace": {"configMap": "struck"}}}),
    )  # fmt: skip
    pod = strikes.play(kubectl, namespace, "struck")
    # Only the shim of an environment waits so long for its driver.
    os.kill(strikes.process(pod, "7200"), signal.SIGKILL)
    status = kubectl.finished(namespace, "struck")
    found = [(row["kind"], row["status"], row["reason"]) for row in strikes.ledger(kubectl, namespace, "struck")]
    assert found == [("environment", "environment_error", "EnvironmentFailed"), ("verdict", "passed", None)]
    assert (status["score"], status["attempts"]["environmentRetries"]) == ("1", 1)


def test_pods_that_pod_security_refuses_fail_the_run(kubectl: Kubectl, namespace: str, sandbox: Sandbox) -> None:
    """The administrator allows the pack's environment to be root, and the namespace does not."""
    program = {"image": sandbox.python, "argv": ["python3", "-I", "-c", sandbox_pack.REFERENCE]}
    kubectl.apply(
        evalrun(namespace, "root", task={"name": "rooted"}, seeds={"values": [1]}, candidate={"program": program})
    )
    status = kubectl.finished(namespace, "root", 90)
    assert (condition(status, "Failed"), reason(status, "Failed")) == ("True", "Refused")
    assert "PodSecurity" in message(status, "Failed")
    assert "score" not in status
    assert ("Warning", "Refused") in strikes.events(kubectl, namespace, "root")
