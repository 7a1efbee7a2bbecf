from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from devkit import units
from devkit.settings import Cluster

DEV, TEST = Cluster("dev", Path("/c/clusters/dev")), Cluster("test", Path("/c/clusters/test"))


def made(cluster: Cluster = DEV) -> tuple[units.Unit, ...]:
    return units.units(cluster, Path("/p"), "/usr/bin/containerd")


def test_nothing_that_one_cluster_is_told_is_of_another() -> None:
    told = units.specification(TEST, made(TEST)) + json.dumps(units.files(TEST))
    assert not re.search(r"clusters/dev|casewarden-dev", told)


def test_the_kubelet_limits_the_processes_of_a_pod() -> None:
    assert json.loads(units.kubelet_config(DEV))["podPidsLimit"] == 1024


def test_pods_are_kept_in_the_cgroup_that_clearing_up_empties() -> None:
    assert json.loads(units.kubelet_config(DEV))["cgroupRoot"] == f"/{DEV.cgroup}"


@pytest.mark.parametrize("pods", [True, False])
def test_containerds_configuration_is_valid_and_keeps_images_apart_from_what_a_run_makes(pods: bool) -> None:
    config = tomllib.loads(units.containerd_config(DEV, pods=pods))
    assert Path(config["root"]) == DEV.image_store
    assert DEV.run not in DEV.image_store.parents
    assert DEV.run in Path(config["state"]).parents


def test_the_network_policies_enforcer_waits_for_the_node() -> None:
    router = next(unit for unit in made() if unit.name == "kube-router")
    assert router.gates == (f"api:/api/v1/nodes/{DEV.node}",)


def test_the_admission_that_a_user_gets_by_default_is_on() -> None:
    server = next(unit for unit in made() if unit.name == "kube-apiserver")
    assert not [flag for flag in server.argv if "disable-admission-plugins" in flag]


def test_every_gate_is_of_a_kind_that_the_first_process_knows() -> None:
    kinds = {gate.partition(":")[0] for unit in made() for gate in unit.gates}
    assert kinds <= {"file", "socket", "tcp", "api"}
