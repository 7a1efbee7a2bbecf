from __future__ import annotations

import json
from pathlib import Path

import pytest

from devkit import images, targets
from devkit.errors import DevError

KUBECTL = """#!/bin/sh
case "$*" in
  "config current-context") echo "$CURRENT";;
  *"config view"*) echo '{"kind": "Config"}';;
esac
"""


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user with a kubectl, a context and nothing else."""
    tool = tmp_path / "kubectl"
    tool.write_text(KUBECTL)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CURRENT", "production")
    monkeypatch.delenv("KUBECONFIG", raising=False)


def test_a_cluster_that_cannot_see_the_images_is_refused_with_the_cure() -> None:
    with pytest.raises(DevError, match=r"context 'production': .* as in REGISTRY="):
        targets.named("", "")


def test_a_named_context_with_a_registry_is_used_through_it() -> None:
    found = targets.named("staging", "registry.example/team")
    assert isinstance(found, targets.Elsewhere)
    assert found.registry == "registry.example/team"
    assert found.kubeconfig.stat().st_mode & 0o077 == 0


def test_a_context_of_kind_is_loaded_without_a_registry() -> None:
    found = targets.named("kind-mine", "")
    assert isinstance(found, targets.Kind)
    assert found.name == "mine"


def test_the_kubeconfig_of_a_cluster_made_here_stands_for_that_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    monkeypatch.setenv("KUBECONFIG", "/c/casewarden/clusters/test/kubeconfig")
    found = targets.named("", "")
    assert isinstance(found, targets.Own)
    assert found.cluster.name == "test"


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Docker, kind and buildah that only note how they are called; every image is built, under the key `k`."""
    noted = tmp_path / "calls"
    noted.touch()
    for name in ("docker", "kind"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@" >>{noted}\n')
        (tmp_path / name).chmod(0o755)
    built = {name: {"key": "k", "digest": "sha256:d", "engine": "docker"} for name in images.IMAGES}
    monkeypatch.setattr("devkit.builds.build", lambda names, engine: {name: built[name] for name in names})
    return noted


def test_kind_is_loaded_with_each_image_under_the_name_of_its_contents(calls: Path, tmp_path: Path) -> None:
    references = targets.Kind("mine", tmp_path / "config").provide()
    assert references["tasks"] == "casewarden-tasks:k"
    loads = [line for line in calls.read_text().splitlines() if line.startswith("kind load")]
    assert loads == [f"kind load docker-image casewarden-{name}:k --name mine" for name in images.PRODUCT]


def test_another_cluster_is_served_through_the_registry(calls: Path, tmp_path: Path) -> None:
    references = targets.Elsewhere(tmp_path / "config", "registry.example/team/").provide()
    assert references["operator"] == "registry.example/team/casewarden-operator:k"
    pushes = [line for line in calls.read_text().splitlines() if line.startswith("docker push")]
    assert pushes == [f"docker push {references[name]}" for name in images.PRODUCT]


def test_kind_is_taken_where_docker_runs_and_made_where_it_is_not_there(calls: Path) -> None:
    found = targets.choose("", "")
    assert isinstance(found, targets.Kind)
    assert "kind create cluster --name casewarden --wait 180s" in calls.read_text()


def test_the_chart_is_told_each_image_by_the_name_that_the_cluster_has() -> None:
    references = {name: f"r/{name}:1" for name in ("operator", "evidence", "tasks", *targets.ENVIRONMENTS)}
    values = json.loads(targets.chart_values(references))
    assert values["image"] == {"operator": "r/operator:1", "evidence": "r/evidence:1"}
    assert values["catalogue"]["images"] == {name: f"r/{name}:1" for name in targets.ENVIRONMENTS}
    assert {pack["image"] for pack in values["catalogue"]["tasks"].values()} == {"r/tasks:1"}
