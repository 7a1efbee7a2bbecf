from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from devkit import namespaces
from devkit.settings import Cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    made = Cluster("dev", tmp_path / "clusters" / "dev")
    made.run.mkdir(parents=True)
    return made


def test_a_process_that_took_the_number_of_a_dead_cluster_is_not_the_cluster(cluster: Cluster) -> None:
    cluster.pid_file.write_text(json.dumps({"pid": os.getpid(), "start": "1"}))
    assert namespaces.init_pid(cluster) is None
    cluster.pid_file.write_text(json.dumps({"pid": os.getpid(), "start": namespaces.started_at(os.getpid())}))
    assert namespaces.init_pid(cluster) == os.getpid()


@pytest.mark.parametrize("note", ["", "{}", "[]", '{"pid": "x", "start": "1"}', '{"pid": 1, "start": null}'])
def test_a_damaged_note_is_no_cluster(cluster: Cluster, note: str) -> None:
    cluster.pid_file.write_text(note)
    assert namespaces.init_pid(cluster) is None


def test_a_process_that_ended_has_no_start() -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait(10)
    assert namespaces.started_at(ended.pid) is None


def test_on_version_1_the_pods_cgroup_is_made_under_every_controller(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for controller in ("pids", "memory"):
        (tmp_path / "cg" / controller).mkdir(parents=True)
        (tmp_path / "cg" / controller / "cgroup.procs").touch()
    (tmp_path / "cg" / "unmounted").mkdir()
    monkeypatch.setattr(namespaces, "CGROUPS", tmp_path / "cg")
    namespaces.make_cgroups(cluster)
    assert sorted(path.parent.name for path in namespaces.cgroups(cluster)) == ["memory", "pids"]


def test_on_version_2_the_pods_cgroup_is_made_once_with_every_controller(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "cg"
    root.mkdir()
    (root / "cgroup.controllers").write_text("cpu memory pids\n")
    (root / "cgroup.subtree_control").touch()
    monkeypatch.setattr(namespaces, "CGROUPS", root)
    namespaces.make_cgroups(cluster)
    assert namespaces.cgroups(cluster) == [root / cluster.cgroup]
    assert (root / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"


def test_clearing_what_is_not_there_finds_nothing(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cg").mkdir()
    monkeypatch.setattr(namespaces, "CGROUPS", tmp_path / "cg")
    gone = Cluster("nosuch", tmp_path / "clusters" / "nosuch")
    assert namespaces.clear(gone) == []


def test_clearing_removes_a_runs_files_and_keeps_the_image_store(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cg").mkdir()
    monkeypatch.setattr(namespaces, "CGROUPS", tmp_path / "cg")
    cluster.image_store.mkdir()
    namespaces.clear(Cluster("unheardof", cluster.root))
    assert not cluster.run.exists()
    assert cluster.image_store.exists()
