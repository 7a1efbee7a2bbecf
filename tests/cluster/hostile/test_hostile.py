"""Every hostile program of `casewarden selftest` on a real cluster: none gains, none becomes unassessed, none sees."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from casewarden.selftest.table import load

PROGRAMS = [program.name for program in load()]


@pytest.fixture(scope="module")
def report(casewarden: Callable[..., subprocess.CompletedProcess[str]], module_namespace: str) -> dict[str, Any]:
    """What the command found, with all programs played once."""
    done = casewarden("selftest", "-n", module_namespace, "-p", "12", "-o", "json", seconds=1500)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.timeout(1600)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_comes_to_what_it_must(report: dict[str, Any], name: str) -> None:
    row = next(row for row in report["programs"] if row["name"] == name)
    assert not row["problems"], f"it tries to {row['tries']}"


def test_there_are_at_least_forty() -> None:
    assert len(PROGRAMS) - 1 >= 40


def test_the_clusters_own_fences_are_reported(report: dict[str, Any]) -> None:
    assert report["network"]["enforced"] is True
    assert report["kernel"]["no_new_privs"] == "1"
    assert report["kernel"]["seccomp"].startswith("2 ")
    assert report["kernel"]["capabilities"].split()[0] == "0" * 16
    assert report["kernel"]["cgroup"] in ("v1", "v2")
    assert report["kernel"]["landlock"].isdigit()


def test_the_nodes_are_well_afterwards(report: dict[str, Any], kubectl: Any) -> None:
    nodes = kubectl("get", "nodes", "-o", 'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}')
    assert report["programs"]
    assert set(nodes.split()) == {"True"}


def test_nothing_is_left_of_it(report: dict[str, Any], kubectl: Any, module_namespace: str) -> None:
    assert report["programs"]
    assert kubectl.list("evalruns", module_namespace) == []
