"""The examples come to what their page says: each is validated, and played case by case.

Those of AgentBench's environments are validated here, and played on a cluster.
"""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from casewarden.api.catalogue import Catalogue
from casewarden.api.documents import load_documents
from casewarden.core.scoring import CaseResult, weighted_dimensions
from casewarden.core.validate import validate_manifest
from casewarden.reporting.agentbench import ENVIRONMENTS
from casewarden_sdk.contract import Control, check_bits
from casewarden_sdk.testing import play
from casewarden_tasks import (
    agentbench_alfworld,
    agentbench_db,
    agentbench_dcg,
    agentbench_kg,
    agentbench_ltp,
    agentbench_mind2web,
    agentbench_os,
    agentbench_webshop,
    durable_kv,
    support_routing,
)

FOLDER = Path(__file__).resolve().parents[2] / "examples"
FILES = sorted([*FOLDER.glob("*.yaml"), *FOLDER.glob("agentbench/*.yaml")])
DOCUMENTS: list[dict[str, Any]] = [document for path in FILES for document in load_documents(path.read_text())]
RUNS = {document["metadata"]["name"]: document["spec"] for document in DOCUMENTS if document["kind"] == "EvalRun"}
FOLDERS = {document["metadata"]["name"]: document["data"] for document in DOCUMENTS if document["kind"] == "ConfigMap"}
PACKS: dict[str, Any] = {
    module.PACK.id: module.PACK
    for module in (
        agentbench_alfworld, agentbench_db, agentbench_dcg, agentbench_kg, agentbench_ltp, agentbench_mind2web,
        agentbench_os, agentbench_webshop, durable_kv, support_routing,
    )
}  # fmt: skip
PLAYED = [name for name, spec in RUNS.items() if not spec["task"]["name"].startswith("agentbench-")]
OF_THEIR_OWN_RULE = [
    name
    for name, spec in RUNS.items()
    if spec["task"]["name"].removeprefix("agentbench-") in ("alfworld", "dcg", "kg", "mind2web", "webshop")
    and "model" not in spec["candidate"]
]
CATALOGUE = Catalogue.model_validate(
    {
        "tasks": {name: {"image": "tasks:1"} for name in PACKS},
        "endpoints": {"team": {"url": "https://models.example/v1"}},  # what the examples call the model's
    }
)


def told() -> dict[str, str]:
    """The score of each run as the page says it."""
    return dict(re.findall(r"`([a-z-]+)` \| score ([0-9.]*[0-9])", (FOLDER / "README.md").read_text()))


def program_of(spec: dict[str, Any]) -> Control | dict[str, str]:
    candidate, pack = spec["candidate"], PACKS[spec["task"]["name"]]
    if "control" in candidate:
        return next(control for control in pack.controls if control.name == candidate["control"])  # type: ignore[no-any-return]
    return FOLDERS[candidate["program"]["workspace"]["configMap"]]  # type: ignore[no-any-return]


@pytest.mark.parametrize("document", [item for item in DOCUMENTS if item["kind"] == "EvalRun"], ids=str)
def test_an_example_is_a_valid_manifest(document: dict[str, Any]) -> None:
    assert validate_manifest(document, CATALOGUE) == []
    assert "namespace" not in document["metadata"]


def test_the_page_tells_of_every_run() -> None:
    page = (FOLDER / "README.md").read_text()
    assert [name for name in RUNS if f"`{name}`" not in page] == []
    assert set(PLAYED) <= set(told()) <= set(RUNS)


def test_the_whole_benchmark_is_one_candidate_and_one_run_of_each_environment() -> None:
    runs = load_documents((FOLDER / "agentbench" / "whole-benchmark.yaml").read_text())
    assert {str(item["spec"]["candidate"]) for item in runs} == {str(runs[0]["spec"]["candidate"])}
    tasks = [item["spec"]["task"]["name"] for item in runs]
    assert sorted(tasks) == sorted(set(tasks) & {environment.task for environment in ENVIRONMENTS})
    assert set(tasks) == {name for name in PACKS if name.startswith("agentbench-")}


@pytest.mark.parametrize("name", PLAYED)
def test_an_example_comes_to_the_score_that_its_page_tells(name: str) -> None:
    spec = RUNS[name]
    pack, program = PACKS[spec["task"]["name"]], program_of(spec)
    seeds = spec["seeds"].get("values", [5])[:1]
    results = []
    for case in pack.cases(seeds[0], {}):
        verdict = play(pack, case, program).verdict
        results.append(CaseResult(tuple(case.dimensions), verdict.status, check_bits(verdict.checks)))
    score = weighted_dimensions({key: Decimal(weight) for key, weight in pack.dimensions.items()}, results)
    assert score.score == told()[name]


@pytest.mark.parametrize("name", OF_THEIR_OWN_RULE)
def test_an_example_with_a_rule_of_its_task_s_own_comes_to_the_score_that_its_page_tells(name: str) -> None:
    spec = RUNS[name]
    pack = PACKS[spec["task"]["name"]]
    (seed,) = spec["seeds"]["values"]
    rows = []
    for case in pack.cases(seed, {}):
        played = play(pack, case, program_of(spec), seed=seed)
        output = played.record["output"]
        rows.append({"seed": seed, "repeat": 0, "params": {}, "index": output["index"],
                     "status": played.verdict.status, "output": output})  # fmt: skip
    assert pack.aggregate(rows)["score"] == told()[name]


@pytest.mark.parametrize("name", FOLDERS)
def test_a_candidate_falls_short_honestly_and_never_crashes(name: str) -> None:
    (spec,) = [spec for spec in map(RUNS.get, PLAYED) if spec and program_of(spec) is FOLDERS[name]]
    pack = PACKS[spec["task"]["name"]]
    statuses = {play(pack, case, FOLDERS[name]).verdict.status for case in pack.cases(17, {})}
    assert statuses == {"passed", "failed"}
