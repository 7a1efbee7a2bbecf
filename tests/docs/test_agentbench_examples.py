"""The examples of AgentBench's environments are valid, and those that need no model come to what their page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from casewarden.api.catalogue import Catalogue
from casewarden.api.documents import load_documents
from casewarden.core.validate import validate_manifest
from casewarden_sdk.testing import play
from casewarden_tasks import agentbench_dcg, agentbench_ltp

FOLDER = Path(__file__).resolve().parents[2] / "examples"
FILES = ("card-game.yaml", "lateral-thinking.yaml")
RUNS: dict[str, Any] = {
    document["metadata"]["name"]: document
    for name in FILES
    for document in load_documents((FOLDER / "agentbench" / name).read_text())
}
PACKS: dict[str, Any] = {pack.id: pack for pack in (agentbench_dcg.PACK, agentbench_ltp.PACK)}
CATALOGUE = Catalogue.model_validate(
    {
        "tasks": {name: {"image": "tasks:1"} for name in PACKS},
        "endpoints": {"team": {"url": "https://models.example/v1"}},
    }
)


@pytest.mark.parametrize("name", RUNS)
def test_an_example_is_a_valid_manifest_and_its_page_tells_of_it(name: str) -> None:
    assert validate_manifest(RUNS[name], CATALOGUE) == []
    assert f"`{name}`" in (FOLDER / "README.md").read_text()
    task = RUNS[name]["spec"]["task"]
    assert PACKS[task["name"]].cases(RUNS[name]["spec"]["seeds"]["values"][0], task.get("params", {}))


@pytest.mark.parametrize("name", [name for name in RUNS if name.startswith("card-game")])
def test_a_card_game_comes_to_the_score_that_its_page_tells(name: str) -> None:
    (told,) = re.findall(rf"`{name}` \| .*score ([0-9.]*[0-9])", (FOLDER / "README.md").read_text())
    pack, control = agentbench_dcg.PACK, RUNS[name]["spec"]["candidate"]["control"]
    program = next(item for item in pack.controls if item.name == control)
    rows = []
    for case in pack.cases(17, {}):
        played = play(pack, case, program, seed=17)
        rows.append({"seed": 17, "repeat": 0, "params": {}, "index": case.content["index"],
                     "status": played.verdict.status, "output": played.record["output"]})  # fmt: skip
    assert pack.aggregate(rows)["score"] == told
