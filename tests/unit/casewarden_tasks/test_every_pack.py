"""What holds for every pack in the tree, a new one included: it is found by its folder.

Those of AgentBench, ``agentbench_*``, have a page of their own: they read a data set.
"""

from __future__ import annotations

import importlib
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import casewarden_tasks
from casewarden_sdk.contract import Control, Pack
from casewarden_sdk.errors import ContractError
from casewarden_sdk.plan import build_plan

FOLDERS = sorted(
    path.parent
    for path in Path(casewarden_tasks.__file__).parent.glob("*/__init__.py")
    if not path.parent.name.startswith("agentbench_")
)
PACKS: dict[str, Pack] = {path.name: importlib.import_module(f"casewarden_tasks.{path.name}").PACK for path in FOLDERS}
SEEDS = (17, 41, 97)
every_pack = pytest.mark.parametrize("name", PACKS)


@every_pack
def test_it_can_be_planned_and_the_plan_is_the_same_again(name: str) -> None:
    assert build_plan(PACKS[name], SEEDS, {}) == build_plan(PACKS[name], SEEDS, {})


@every_pack
@settings(max_examples=25)
@given(seed=st.integers())
def test_any_seed_gives_the_same_bytes_twice_and_checks_every_dimension(name: str, seed: int) -> None:
    pack = PACKS[name]
    cases = pack.cases(seed, {})
    assert [case.sha256 for case in cases] == [case.sha256 for case in pack.cases(seed, {})]
    assert {dimension for case in cases for dimension in case.dimensions} == set(pack.dimensions)


@every_pack
def test_an_unknown_parameter_is_refused_by_its_field_and_with_the_cure(name: str) -> None:
    with pytest.raises(ContractError, match=r"^spec\.task\.params\.no-such-thing: .*; remove it$"):
        PACKS[name].cases(17, {"no-such-thing": 1})


@every_pack
def test_its_sources_are_all_its_files_but_those_of_the_controls(name: str) -> None:
    folder = Path(casewarden_tasks.__file__).parent / name
    found = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not {"controls", "__pycache__"} & set(path.relative_to(folder).parts)
    }
    listed = {Path(source).relative_to(folder).as_posix() for source in PACKS[name].sources}
    # Which programs audit a grader decides no verdict.
    assert listed == found - {"planted.py"}


@every_pack
def test_it_has_a_reference_a_null_agent_a_crashing_agent_and_a_fault_for_every_dimension(name: str) -> None:
    pack = PACKS[name]

    def of(kind: str) -> list[Control]:
        return [control for control in pack.controls if control.kind == kind]

    assert [len(of("reference")), len(of("null")), len(of("crash"))] == [1, 1, 1]
    assert {control.target for control in of("fault")} | set(getattr(pack, "unfaulted", {})) == set(pack.dimensions)
    assert {control.target for control in of("fault") if control.protocol_fault} <= {"protocol"}


@every_pack
def test_no_control_can_be_told_from_a_candidate_by_its_command(name: str) -> None:
    assert {control.argv for control in PACKS[name].controls} == {None}
    assert {tuple(control.files) for control in PACKS[name].controls} == {("main.py",)}


@every_pack
def test_its_contract_page_says_version_sections_weights_and_limits(name: str) -> None:
    pack = PACKS[name]
    page = pack.contract
    assert page.startswith(f"# {pack.id} {pack.version}\n")
    for section in ("Goal", "Protocol", "reset", "Limits", "What the scores mean"):
        assert any(line.startswith("## ") and section in line for line in page.splitlines()), section
    rows = [[cell.strip(" `") for cell in line.split("|")] for line in page.splitlines() if line.startswith("|")]
    for dimension, weight in pack.dimensions.items():
        (row,) = [row for row in rows if row[1] == dimension]
        assert Decimal(row[2]) == Decimal(weight)
    limits = page[page.index("## Limits") :].split("\n## ")[0]
    for words in (f"{pack.limits.case_seconds:g} s", f"{pack.limits.response_seconds:g} s", "1 MiB", "256 MiB"):
        assert words in limits
    assert pack.limits.actions is None or f" {pack.limits.actions} " in limits
