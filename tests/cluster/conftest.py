"""The cluster of the cluster tests: made here unless one is named, with the release installed from this checkout."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.kubectl import Kubectl

ROOT = Path(__file__).resolve().parents[2]
RELEASE_NAMESPACE = "casewarden-system"


def _sh(*command: str, seconds: float, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        pytest.fail(
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-8000:]}",
            pytrace=False,
        )
    return done.stdout.strip()


@pytest.fixture(scope="session")
def kubeconfig() -> str:
    """The kubeconfig of a running cluster with the release installed.

    ``CASEWARDEN_TEST_KUBECONFIG`` names a cluster that is up already, with the images loaded; else a one-node cluster
    is brought up, and left up: the next session starts in seconds, `make clean` ends it.
    """
    if named := os.environ.get("CASEWARDEN_TEST_KUBECONFIG"):
        config = named
    else:
        name = os.environ.get("CLUSTER_NAME", "test")
        _sh("dev/cluster", "up", seconds=2400, CLUSTER_NAME=name)
        config = _sh("dev/cluster", "kubeconfig", seconds=30, CLUSTER_NAME=name)
        _sh("dev/cluster", "load", seconds=2400, CLUSTER_NAME=name)
    _sh("dev/install", seconds=300, KUBECONFIG=config)
    return config


@pytest.fixture(scope="session")
def kubectl(kubeconfig: str) -> Kubectl:
    """kubectl against the cluster under test."""
    return Kubectl(kubeconfig)


@pytest.fixture(scope="session")
def here(kubectl: Kubectl) -> str:
    """The address under which pods find this machine."""
    node = kubectl("get", "nodes", "-o", "jsonpath={.items[0].status.addresses[?(@.type=='InternalIP')].address}")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((node.split()[0], 6443))
        return str(probe.getsockname()[0])


@pytest.fixture(scope="session")
def trial_image(kubeconfig: str) -> str:
    """The image with what tests put into pods beside the product; built and loaded when it is first asked for.

    ``CASEWARDEN_TEST_TRIAL_IMAGE`` names it where ``CASEWARDEN_TEST_KUBECONFIG`` names a cluster that has it.
    """
    if named := os.environ.get("CASEWARDEN_TEST_TRIAL_IMAGE"):
        return named
    _sh("dev/cluster", "load", "trial", seconds=1200, CLUSTER_NAME=Path(kubeconfig).resolve().parent.name)
    return "casewarden-trial:dev"


@pytest.fixture
def namespace(kubectl: Kubectl, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own that enforces the ``restricted`` Pod Security Standard."""
    with _a_namespace(kubectl, request.node.name) as name:
        yield name


@pytest.fixture(scope="module")
def module_namespace(kubectl: Kubectl, request: pytest.FixtureRequest) -> Iterator[str]:
    """As ``namespace``, shared by the tests of a module."""
    with _a_namespace(kubectl, request.node.name.rsplit("/", 1)[-1].removesuffix(".py")) as name:
        yield name


class _a_namespace:  # noqa: N801 - reads as a phrase at the one place that uses it
    def __init__(self, kubectl: Kubectl, title: str) -> None:
        stem = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-")
        self.kubectl, self.name = kubectl, f"{stem}-{uuid.uuid4().hex[:6]}"

    def __enter__(self) -> str:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        self.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name, "labels": labels}})
        self.kubectl.until(
            lambda: self.kubectl.find("serviceaccount", self.name, "default"),
            30,
            lambda: f"{self.name} has no service account",
        )
        return self.name

    def __exit__(self, *_: object) -> None:
        self.kubectl("delete", "namespace", self.name, "--wait=false", "--ignore-not-found")


@pytest.fixture(scope="session")
def casewarden(kubeconfig: str) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command line, against the cluster under test."""

    def run(*args: str, seconds: float = 300) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(ROOT / ".venv/bin/casewarden"), *args],
            env={**os.environ, "KUBECONFIG": kubeconfig},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    return run


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test of this folder, so that `-m "not cluster"` leaves them out; leave long ones to `make soak`."""
    soak = Path(__file__).parent / "soak"
    if not os.environ.get("CASEWARDEN_SOAK_SECONDS"):
        long = [item for item in items if soak in item.path.parents]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.cluster)
