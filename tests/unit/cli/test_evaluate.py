from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from casewarden.api.manifest import parse
from casewarden.cli.evaluate import Wanted, manifest_of
from casewarden.cli.failure import Failure
from casewarden.cli.relay import relay_port

DIGEST = "0" * 64


@pytest.mark.parametrize(
    "wanted",
    [
        Wanted("durable-kv"),
        Wanted("durable-kv", seeds=[17, 41], repeats=3, parallelism=5, threshold="0.8", families=["read-write-delete"]),
        Wanted("durable-kv", random=8, name="mine", image="registry.example/agent:1"),
        Wanted("durable-kv", model="team/qwen/3-8b"),
    ],
)
@pytest.mark.parametrize("folder", ["agent", "My Agent (2)", "ä", "-x-", "x" * 200])
def test_the_manifest_that_is_made_is_valid_whatever_the_folder_is_called(wanted: Wanted, folder: str) -> None:
    run = parse(manifest_of(wanted, Path("/work") / folder, DIGEST))

    assert run.spec.candidate.program.workspace.digest == f"sha256:{DIGEST}"  # type: ignore[union-attr]
    assert run.metadata.name == (wanted.name or run.metadata.name)


def test_a_programs_model_is_named_by_endpoint_and_name() -> None:
    made = manifest_of(Wanted("durable-kv", model="team/qwen/3-8b"), Path("/agent"), DIGEST)
    assert made["spec"]["candidate"]["model"] == {"endpoint": "team", "name": "qwen/3-8b"}
    for wrong in ("team", "/x", "team/"):
        with pytest.raises(Failure, match="give ENDPOINT/NAME"):
            manifest_of(Wanted("durable-kv", model=wrong), Path("/agent"), DIGEST)


def test_two_evaluations_of_one_folder_have_two_names() -> None:
    names = {manifest_of(Wanted("durable-kv"), Path("/agent"), DIGEST)["metadata"]["name"] for _ in range(20)}
    assert len(names) == 20


POD: dict[str, Any] = {
    "metadata": {"name": "relay-0"},
    "spec": {"containers": [{"name": "x"}, {"name": "relay", "ports": [{"name": "http", "containerPort": 8081}]}]},
}


@pytest.mark.parametrize(
    ("port", "number"),
    [
        ({"port": 80, "targetPort": "http"}, 8081),
        ({"port": 80, "targetPort": 9000}, 9000),
        ({"port": 80}, 80),
    ],
)
def test_the_relays_port_is_the_one_behind_its_service(port: dict[str, Any], number: int) -> None:
    assert relay_port({"spec": {"ports": [port]}}, POD) == number


def test_a_port_that_the_pod_lacks_is_named() -> None:
    with pytest.raises(Failure, match="'grpc', which pod relay-0 lacks"):
        relay_port({"spec": {"ports": [{"port": 80, "targetPort": "grpc"}]}}, POD)
