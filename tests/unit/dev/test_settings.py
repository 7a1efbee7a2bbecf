from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devkit.errors import DevError
from devkit.settings import SOCKET_PATH_LIMIT, Cluster, cache_root

NAMES = st.from_regex(r"\A[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?\Z")


def cluster(name: str, cache: str = "/c") -> Cluster:
    return Cluster.from_environ({"CLUSTER_NAME": name, "XDG_CACHE_HOME": cache, "HOME": "/home/someone"})


@given(one=NAMES, other=NAMES)
def test_clusters_of_different_names_share_no_folder_and_no_interface(one: str, other: str) -> None:
    if one == other:
        return
    a, b = cluster(one), cluster(other)
    assert not {a.root, a.lock, a.link, a.cgroup, a.node} & {b.root, b.lock, b.link, b.cgroup, b.node}
    assert a.root not in b.root.parents


def test_the_clusters_of_development_and_of_the_tests_have_addresses_of_their_own() -> None:
    assert cluster("dev").address != cluster("test").address


@given(NAMES)
def test_a_name_makes_an_interface_name_that_the_kernel_takes(name: str) -> None:
    assert len(cluster(name).link) <= 15


@given(NAMES)
def test_both_ends_of_the_cable_are_in_one_network_of_four_addresses(name: str) -> None:
    made = cluster(name)
    host, node = (address.rpartition(".") for address in (made.host_address, made.address))
    assert host[0] == node[0]
    assert (host[2], node[2]) == ("1", "2")


@pytest.mark.parametrize("name", ["-dev", "dev-", "Dev", "dev/x", "..", "twelve-chars"])
def test_a_name_that_cannot_be_an_interface_is_refused_with_the_cure(name: str) -> None:
    with pytest.raises(DevError, match=r"CLUSTER_NAME='.*': use 1 to 10"):
        cluster(name)


def test_without_a_name_the_cluster_is_that_of_development() -> None:
    assert Cluster.from_environ({"HOME": "/h"}).root == Path("/h/.cache/casewarden/clusters/dev")


def test_a_folder_too_deep_for_a_socket_is_refused_before_anything_is_started() -> None:
    with pytest.raises(DevError, match="XDG_CACHE_HOME to a shorter path"):
        cluster("dev", "/" + "x" * SOCKET_PATH_LIMIT)


def test_the_cache_is_where_the_user_keeps_caches() -> None:
    assert cache_root({"XDG_CACHE_HOME": "/x", "HOME": "/h"}) == Path("/x/casewarden")


def test_a_cluster_is_a_value() -> None:
    made = cluster("dev")
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.name = "other"  # type: ignore[misc]
