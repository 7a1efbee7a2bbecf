"""Parameters and data sets of the pack: what is taken, and what is refused by its field."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from casewarden_sdk.errors import ContractError
from casewarden_tasks.agentbench_kg import PACK

ROW = {
    "question": "what is it?", "entities": {"it": "m.1"}, "actions": ["get_relations(m.1)", "get_neighbors(m.1,a.r)"],
    "answer": [{"answer_type": "Entity", "answer_argument": "m.2", "entity_name": "That"}],
}  # fmt: skip
FOLDER = "src/server/tasks/knowledgegraph/ontology"
NS = "http://rdf.freebase.com/ns/"
FILES = {
    "data/knowledgegraph/std.json": json.dumps([ROW, {"question": "?"}, {**ROW, "entities": ["it"]}]),
    f"{FOLDER}/fb_roles": "t.a a.r t.b\nlost its end\nand more than three words\n",
    f"{FOLDER}/fb_types": "t.b meta.subclassOf t.c .\n",
    f"{FOLDER}/vocab.json": json.dumps({"relations": ["a.r"], "attributes": [], "classes": []}),
    "graph.nt": f"<{NS}m.1> <{NS}a.r> <{NS}m.2> .\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CASEWARDEN_DATASETS", json.dumps({"mine": {"path": str(tmp_path)}}))
    write(tmp_path, FILES)
    return tmp_path


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def params(**more: Any) -> dict[str, Any]:
    return {"dataset": "mine", **more}


def test_agentbenchs_files_are_read_and_rows_that_are_no_question_are_left_out_and_named(folder: Path) -> None:
    (case,) = PACK.cases(0, params())
    assert case.content["question"]["answer"] == ["m.2"]
    assert case.dimensions == ("executable", "complete", "precise")
    row = {"seed": 0, "repeat": 0, "params": params(), "index": 0, "status": "passed", "output": {
        "index": 0, "status": "completed", "result": {"predict": ["m.2"], "actions": []}, "history": [],
    }}  # fmt: skip
    made = PACK.aggregate([row])
    assert (made["score"], made["overall"]["custom"]["EM"]) == ("1", 1.0)
    assert made["overall"]["custom"]["excluded"] == [
        "row 1: has no entities",
        "row 2: question must be a text and entities an object",
    ]
    # Three rows are in the file, and v0.2 divides by them.
    compat = PACK.aggregate([{**row, "params": params(compat="v0.2")}])
    assert compat["score"] == "0.33333333"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"split": "test"}, r"params\.split is 'test'; give one of dev, std"),
        ({"split": "dev"}, r"params\.dataset: data set 'mine' has no file 'data/knowledgegraph/dev\.json'"),
        ({"compat": "v1"}, r"params\.compat is 'v1'"),
        ({"round": 0}, r"params\.round is 0; give a whole number from 1 to 100"),
        ({"endpoint": "ftp://x"}, r"params\.endpoint is 'ftp://x'; give the http or https URL"),
        ({"endpoint": "http://user:secret@x/"}, r"params\.endpoint: has a user name or a password"),
        ({"datasetDigest": "sha256:" + "0" * 64}, r"params\.datasetDigest"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_its_field(folder: Path, given: dict[str, Any], why: str) -> None:
    with pytest.raises(ContractError, match=why) as caught:
        PACK.cases(0, params(**given))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("file", "text", "why"),
    [
        ("data/knowledgegraph/std.json", "{", "is no JSON"),
        ("data/knowledgegraph/std.json", "[]", "is no list of questions"),
        ("data/knowledgegraph/std.json", "[1]", "has no question: row 0"),
        (f"{FOLDER}/fb_roles", "", "has no line of 3 words"),
        (f"{FOLDER}/vocab.json", "{}", "needs lists relations and attributes"),
        ("graph.nt", "nothing", "is no graph in N-Triples"),
        ("graph.nt", None, r"params\.endpoint: is missing, and data set 'mine' has no graph\.nt"),
        (f"{FOLDER}/fb_types", None, "has no ontology/fb_types"),
    ],
)
def test_a_broken_data_set_says_which_file_and_why(folder: Path, file: str, text: str | None, why: str) -> None:
    (folder / file).unlink()
    if text is not None:
        (folder / file).write_text(text)
    with pytest.raises(ContractError, match=why):
        PACK.cases(0, params())


@pytest.mark.parametrize("name", ["split", "endpoint"])
def test_what_goes_with_a_data_set_is_refused_without_one(name: str) -> None:
    with pytest.raises(ContractError, match=rf"params\.{name}: goes with the questions of a data set"):
        PACK.cases(0, {name: "dev" if name == "split" else "http://x/"})


def test_an_endpoint_takes_the_place_of_the_graph(folder: Path) -> None:
    (folder / "graph.nt").unlink()
    assert len(PACK.cases(0, params(endpoint="http://localhost:9/sparql"))) == 1
