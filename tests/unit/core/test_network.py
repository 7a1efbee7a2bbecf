"""The second fence: what the pods of a run may reach."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.golden import check_golden

from casewarden.core.network import NetworkContext, Owner, network_policy

RELAY = NetworkContext("casewarden-system")
OWNERS = (Owner("kv", "uid-1"), Owner("support", "uid-2"))


@pytest.mark.parametrize("profile", ["relay", "none"])
def test_the_policy_is_the_one_that_was_looked_at(profile):
    check_golden(
        Path(__file__).parent / "golden" / f"network_policy_{profile}.yaml",
        network_policy(profile, "evals", RELAY, OWNERS),
    )


@pytest.mark.parametrize("profile", ["relay", "none"])
def test_nothing_comes_in(profile):
    spec = network_policy(profile, "evals", RELAY)["spec"]
    assert spec["ingress"] == []
    assert spec["policyTypes"] == ["Ingress", "Egress"]


def test_case_pods_reach_the_relay_and_names_where_they_must():
    egress = network_policy("relay", "evals", RELAY)["spec"]["egress"]
    assert [port["port"] for rule in egress for port in rule["ports"]] == [8080, 53, 53]
    without = network_policy("relay", "evals", NetworkContext("casewarden-system", dns=False))["spec"]["egress"]
    assert without == egress[:1]


def test_every_peer_is_pods_of_one_namespace_and_never_all_of_either():
    for rule in network_policy("relay", "evals", RELAY)["spec"]["egress"]:
        for peer in rule["to"]:
            assert peer["namespaceSelector"]["matchLabels"]
            assert peer["podSelector"]["matchLabels"]


def test_pods_without_need_of_a_network_have_none():
    assert network_policy("none", "evals", RELAY)["spec"]["egress"] == []


def test_each_run_that_uses_it_owns_it_and_none_controls_it():
    owners = network_policy("relay", "evals", RELAY, OWNERS)["metadata"]["ownerReferences"]
    assert [owner["uid"] for owner in owners] == ["uid-1", "uid-2"]
    assert all("controller" not in owner and "blockOwnerDeletion" not in owner for owner in owners)
