"""What holds for every pack of an AgentBench environment: it is found by its folder, ``agentbench_*``."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

import casewarden_sdk.agentbench
import casewarden_tasks
from casewarden_sdk.agentbench import AgentBenchPack
from casewarden_sdk.errors import ContractError
from casewarden_sdk.plan import build_plan

HERE = Path(casewarden_tasks.__file__).parent
FOLDERS = sorted(path.parent.name for path in HERE.glob("agentbench_*/__init__.py"))
every_pack = pytest.mark.parametrize("name", FOLDERS)


def pack_of(name: str) -> Any:
    return importlib.import_module(f"casewarden_tasks.{name}").PACK


@every_pack
def test_it_is_planned_with_nothing_but_what_it_brings_and_the_plan_is_the_same_again(name: str) -> None:
    pack = pack_of(name)
    assert isinstance(pack, AgentBenchPack)
    assert pack.id == name.replace("_", "-")
    plan = build_plan(pack, (0,), {})
    assert plan == build_plan(pack, (0,), {})
    assert plan["aggregation"] == "agentbench/v1"


@every_pack
def test_an_unknown_parameter_and_an_unknown_data_set_are_refused_by_their_fields(name: str) -> None:
    with pytest.raises(ContractError, match=r"^spec\.task\.params\.no-such-thing: .*; remove it$"):
        pack_of(name).cases(0, {"no-such-thing": 1})
    with pytest.raises(ContractError, match=r"^spec\.task\.params\.dataset: there is no data set 'nowhere'"):
        pack_of(name).cases(0, {"dataset": "nowhere"})


@every_pack
def test_its_sources_are_all_its_files_but_those_of_the_controls_and_what_makes_verdicts_of_statuses(name: str) -> None:
    folder = HERE / name
    found = {
        path
        for path in folder.rglob("*")
        if path.is_file() and not {"controls", "__pycache__"} & set(path.relative_to(folder).parts)
    }
    listed = {Path(source) for source in pack_of(name).sources}
    shared = {Path(source) for source in casewarden_sdk.agentbench.SOURCES}
    assert listed == (found | shared) - {folder / "planted.py"}


@every_pack
def test_it_says_what_passed_means_where_its_score_is_and_has_a_fault_for_every_dimension(name: str) -> None:
    pack = pack_of(name)
    assert pack.passes.strip()
    assert pack.score.strip()
    assert pack.contract.startswith(f"# {pack.id} {pack.version}\n")
    faults = {control.target for control in pack.controls if control.kind == "fault"}
    assert faults | set(pack.unfaulted) == set(pack.dimensions)
    assert [control.kind for control in pack.controls].count("reference") == 1
