"""The controls of every pack do what they are declared to do: this is what makes an audit's result mean something."""

from __future__ import annotations

import functools
import importlib
from decimal import Decimal
from pathlib import Path

import pytest

import casewarden_tasks
from casewarden.core.scoring import CaseResult, weighted_dimensions
from casewarden_sdk.contract import AGENT_ERROR, Control, Pack, Verdict, check_bits
from casewarden_sdk.testing import play

# Those of AgentBench act upon environment containers, and are audited on a cluster.
FOLDERS = sorted(
    path.parent.name
    for path in Path(casewarden_tasks.__file__).parent.glob("*/__init__.py")
    if not path.parent.name.startswith("agentbench_")
)
PACKS: dict[str, Pack] = {name: importlib.import_module(f"casewarden_tasks.{name}").PACK for name in FOLDERS}
FAULTS = [(name, control.name) for name, pack in PACKS.items() for control in pack.controls if control.kind == "fault"]
SEEDS = (17, 20261130)
PAGES = Path(__file__).resolve().parents[3] / "docs" / "packs"


def control_of(name: str, wanted: str) -> Control:
    (control,) = (control for control in PACKS[name].controls if wanted in (control.kind, control.name))
    return control


@functools.cache
def verdicts(name: str, control: str, seed: int) -> tuple[Verdict, ...]:
    pack = PACKS[name]
    return tuple(play(pack, case, control_of(name, control), seed=seed).verdict for case in pack.cases(seed, {}))


def failed_dimensions(judged: tuple[Verdict, ...]) -> set[str]:
    return {dimension for verdict in judged for dimension, right in verdict.checks.items() if not right}


@pytest.mark.parametrize("name", PACKS)
@pytest.mark.parametrize("seed", [*SEEDS, 41, 97])
def test_the_reference_resolves_every_case(name: str, seed: int) -> None:
    assert [v.to_json() for v in verdicts(name, "reference", seed) if not v.passed] == []


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_a_fault_is_caught_in_its_target_and_breaks_what_it_declares_and_nothing_else(
    name: str, fault: str, seed: int
) -> None:
    control = control_of(name, fault)
    assert failed_dimensions(verdicts(name, fault, seed)) == {control.target, *control.collateral}


@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_a_fault_runs_to_its_end_unless_it_is_one_of_protocol(name: str, fault: str) -> None:
    broken = any(verdict.status == AGENT_ERROR for verdict in verdicts(name, fault, SEEDS[0]))
    assert broken == control_of(name, fault).protocol_fault


@pytest.mark.parametrize("name", PACKS)
def test_the_null_agent_resolves_nothing_and_the_crashing_agent_is_an_agent_error_everywhere(name: str) -> None:
    assert not any(verdict.passed for verdict in verdicts(name, "null", SEEDS[0]))
    assert {verdict.status for verdict in verdicts(name, "crash", SEEDS[0])} == {AGENT_ERROR}


def score(name: str, judged: tuple[Verdict, ...]) -> str | None:
    weights = {dimension: Decimal(weight) for dimension, weight in PACKS[name].dimensions.items()}
    return weighted_dimensions(
        weights, [CaseResult(tuple(verdict.checks), verdict.status, check_bits(verdict.checks)) for verdict in judged]
    ).score


@pytest.mark.parametrize("name", [name for name, pack in PACKS.items() if (PAGES / f"{pack.id}.md").exists()])
def test_the_page_for_users_lists_every_control_with_its_score_and_its_detecting_cases(name: str) -> None:
    pack = PACKS[name]
    lines = (PAGES / f"{pack.id}.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines if line.startswith("| ")]
    told = {row[0]: (row[3], row[4]) for row in rows if row[0] in {control.name for control in pack.controls}}
    seen = {}
    for control in pack.controls:
        judged = verdicts(name, control.name, SEEDS[0])
        caught = sum(verdict.checks.get(control.target or "") is False for verdict in judged)
        seen[control.name] = ({"reference": "–", "fault": str(caught)}.get(control.kind, "all"), score(name, judged))
    assert told == seen
