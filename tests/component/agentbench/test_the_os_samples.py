"""AgentBench's own OS samples of the dev split, as agentbench-os reads them."""

from __future__ import annotations

import json

import pytest
from support.agentbench_data import DATA, packed

from casewarden_sdk.agentbench.dataset import VARIABLE
from casewarden_sdk.errors import ContractError
from casewarden_sdk.plan import build_plan
from casewarden_tasks.agentbench_os import PACK


@pytest.fixture(params=["folder", "archive"])
def params(request, tmp_path, monkeypatch):
    """The data set as the run names it, once as a folder and once as an archive."""
    place = str(DATA)
    if request.param == "archive":
        archive = tmp_path / "agentbench.tar.xz"
        archive.write_bytes(packed("data/os_interaction"))
        place = str(archive)
    monkeypatch.setenv(VARIABLE, json.dumps({"agentbench": {"path": place}}))
    return {"dataset": "agentbench", "split": "dev"}


def test_there_are_26_and_what_stands_for_a_script_that_the_data_has_not_is_ours(params):
    cases = PACK.cases(0, params)
    assert [case.id for case in cases] == [f"dev-001-dev-{n:05d}" for n in range(26)]
    samples = [case.content["sample"] for case in cases]
    assert [n for n, sample in enumerate(samples) if "match" in sample] == [0, 1, 2, 4, 24]
    assert [n for n, sample in enumerate(samples) if sample["example"] is None] == [0, 1, 2, 4, 24]
    assert {case.kind for case in cases} == {"default", "default-and-twin"}
    assert [n for n, case in enumerate(cases) if case.kind == "default"] == [0, 1, 2, 3, 4, 5, 24]
    assert samples[10]["init"] == [], "its create is a list, by a slip"
    assert "awk" in samples[25]["init"][0]["code"]


def test_its_controls_are_made_for_these_samples_and_the_plan_is_the_same_again(params):
    plan = build_plan(PACK, (0,), params)
    assert plan == build_plan(PACK, (0,), params)
    (reference,) = (control for control in plan["controls"] if control["kind"] == "reference")
    known: dict[str, object] = {}
    exec(reference["files"]["main.py"].partition("\n\n\n")[0], known)
    assert set(known["KNOWN"]) == {case.content["sample"]["description"] for case in PACK.cases(0, params)}


def test_a_split_that_the_data_has_not_is_told(params):
    with pytest.raises(ContractError, match=r"there is no data/os_interaction/data/1/\*\.json\* in the data set"):
        PACK.cases(0, {**params, "split": "std"})
