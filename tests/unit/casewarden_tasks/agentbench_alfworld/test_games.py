"""ALFWorld's files by AgentBench's lists: what is read, what is left out and named, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from casewarden_sdk.errors import ContractError
from casewarden_sdk.testing import play
from casewarden_tasks.agentbench_alfworld import PACK
from casewarden_tasks.agentbench_alfworld.engine import own_document
from casewarden_tasks.agentbench_alfworld.own import own_games

GAME = own_games()[0]
DOCUMENT: dict[str, Any] = {**own_document(GAME.problem, GAME.task), "solvable": True}
PATH = "json_2.1.3/valid_unseen/pick-Apple/trial_1/game.tw-pddl"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CASEWARDEN_DATASETS", json.dumps({"house": {"path": str(tmp_path)}}))
    write(tmp_path, {"pick_and_place": [PATH]}, DOCUMENT)
    return tmp_path


def write(folder: Path, lists: Any, document: Any = None) -> None:
    place = folder / "data" / "alfworld"
    (place / PATH).parent.mkdir(parents=True, exist_ok=True)
    (place / "dev.json").write_text(json.dumps(lists))
    if document is not None:
        (place / PATH).write_text(document if isinstance(document, str) else json.dumps(document))


def params(**more: Any) -> dict[str, Any]:
    return {"dataset": "house", "split": "dev", **more}


def test_a_game_of_the_list_is_a_case_with_its_digest(folder: Path) -> None:
    (case,) = PACK.cases(0, params())
    assert (case.id, case.content["kind"], case.content["path"]) == ("0", "pick_and_place", PATH)
    assert len(case.content["game_sha256"]) == 64


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("{", "is no JSON"),
        ({"grammar": "x"}, "is no game: it needs pddl_domain, grammar, pddl_problem"),
        ({**DOCUMENT, "solvable": False}, "says itself that it cannot be won"),
    ],
)
def test_a_file_that_is_no_game_is_left_out_and_named(folder: Path, document: Any, why: str) -> None:
    other = PATH.replace("trial_1", "trial_2")
    write(folder, {"pick_and_place": [PATH, other, "json_2.1.3/nowhere/game.tw-pddl"]}, document)
    (folder / "data/alfworld" / other).parent.mkdir(parents=True)
    (folder / "data/alfworld" / other).write_text(json.dumps(DOCUMENT))
    (case,) = PACK.cases(0, params())
    assert case.id == "1"
    overall = PACK.aggregate(
        [{"seed": 0, "repeat": 0, "params": params(), "index": 1, "status": "failed", "output": None}]
    )["overall"]
    assert overall["custom"]["excluded"] == [
        f"game 0, {PATH}: {overall['custom']['excluded'][0].partition(': ')[2]}",
        "game 2, json_2.1.3/nowhere/game.tw-pddl: is missing",
    ]
    assert why in overall["custom"]["excluded"][0]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("(canContain DiningTableType AppleType)", ""), "it has no solution: its goal cannot be reached"),
        (("(define (problem own)", "(define (problem"), "the engine cannot read it"),
    ],
)
def test_a_game_that_cannot_be_played_is_nobodys_score_and_is_named(
    folder: Path, change: tuple[str, str], why: str
) -> None:
    write(folder, {"pick_and_place": [PATH]}, {**DOCUMENT, "pddl_problem": DOCUMENT["pddl_problem"].replace(*change)})
    (case,) = PACK.cases(0, params())
    verdict = play(PACK, case, {"main.py": "import sys\nfor line in sys.stdin: pass\n"}).verdict
    assert (verdict.status, verdict.reason) == ("environment_error", "TaskFailed")
    assert f"game 0, {PATH}: {why}" in (verdict.error or "")


@pytest.mark.parametrize(
    ("lists", "given", "why"),
    [
        ([], {}, r"data/alfworld/dev\.json is no object of lists"),
        ({}, {}, "there is no game to play: the list is empty"),
        ({"pick_and_place": ["nowhere"]}, {}, "there is no game to play: game 0, nowhere: is missing"),
        ({"pick_and_place": ["../../etc/passwd"]}, {}, "is missing"),
        ({"pick_and_place": [PATH]}, {"split": "std"}, r"has no file 'data/alfworld/standard\.json'"),
        ({"pick_and_place": [PATH]}, {"split": "test"}, r"params\.split is 'test'; give one of dev, std"),
        ({"pick_and_place": [PATH]}, {"max_step": 0}, r"params\.max_step is 0; give a whole number from 1 to 50"),
        ({"pick_and_place": [PATH]}, {"indices": [3]}, r"params\.indices is \[3\]"),
        ({"pick_and_place": [PATH]}, {"datasetDigest": "sha256:" + "0" * 64}, r"params\.datasetDigest"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_its_field(folder: Path, lists: Any, given: Any, why: str) -> None:
    write(folder, lists)
    with pytest.raises(ContractError, match=why):
        PACK.cases(0, params(**given))
