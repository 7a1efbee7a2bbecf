"""Samples in every form that AgentBench's files have, and what is told of those that are malformed."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_sdk.agentbench import Dataset
from casewarden_sdk.errors import ContractError
from casewarden_tasks.agentbench_os import PACK, own_samples
from casewarden_tasks.agentbench_os.samples import Source, load, samples_of

ROW = {"description": "What?", "evaluation": {"match": "log"}}
COMPARED = {"language": "python", "file": "check/integer-match.py"}
SCRIPTS = {"init/a.sh": "touch a", "check/0.sh": "test -e a", "check/2.py": "print(2)"}


def read(row, name="data/1/stock.json"):
    (sample,) = samples_of(name, json.dumps([{**ROW, **row}]), "std-001-stock-", SCRIPTS.get)
    return sample


def test_a_list_an_object_and_json_lines_are_samples_numbered_from_nought(tmp_path):
    (tmp_path / "data" / "1").mkdir(parents=True)
    (tmp_path / "scripts").mkdir()
    for name, text in {
        "data/1/b.json": json.dumps([ROW, ROW]),
        "data/1/a.json": json.dumps(ROW),
        "data/1/c.jsonl": f"{json.dumps(ROW)}\n\n{json.dumps(ROW)}\n",
        "data/2.json": json.dumps([ROW]),
    }.items():
        (tmp_path / name).write_text(text)
    found = load(Dataset("d", str(tmp_path)), [Source("data/1/*.json*", "scripts", "std-001-")])
    assert [sample["id"] for sample in found] == [
        "std-001-a-00000", "std-001-b-00000", "std-001-b-00001", "std-001-c-00000", "std-001-c-00001",
    ]  # fmt: skip
    assert (found[2]["file"], found[2]["index_in_file"]) == ("data/1/b.json", 1)


@pytest.mark.parametrize(
    ("create", "init"),
    [
        ({}, []),
        ({"local": "default"}, []),
        ({"init": "touch a"}, [{"language": "bash", "code": "touch a"}]),
        ({"init": {"code": "a = 1", "language": "python"}}, [{"language": "python", "code": "a = 1"}]),
        ({"init": {"file": "init/a.sh"}}, [{"language": "bash", "code": "touch a"}]),
        ({"init": ["x", None, {"code": "y"}]}, [{"language": "bash", "code": "x"}, {"language": "bash", "code": "y"}]),
        ([None, COMPARED], []),
    ],
)
def test_what_prepares_a_sample_may_be_a_text_code_a_file_a_list_or_by_a_slip_something_else(create, init):
    assert read({"create": create})["init"] == init


@pytest.mark.parametrize(
    ("rule", "match"),
    [
        ("log", {"answer": "log", "strip": True}),
        ({"answer": "a", "strip": False}, {"answer": "a", "strip": False}),
        ({"regex": "a+"}, {"regex": "a+", "strip": True}),
    ],
)
def test_a_match_is_a_text_or_an_object(rule, match):
    assert read({"evaluation": {"match": rule}})["match"] == match


def test_null_is_the_example_and_runs_in_the_twin_and_a_comparison_is_the_graders():
    rules = {"check": [None, COMPARED], "example": {"code": "nproc"}}
    steps = [{"where": "twin", "language": "bash", "code": "nproc"}, {"where": "grader", "program": "integer-match"}]
    assert read({"evaluation": rules})["steps"] == steps
    in_the_sandbox = read({"evaluation": {**rules, "reference": "sandbox"}})["steps"]
    assert [step["where"] for step in in_the_sandbox] == ["sandbox", "grader"]


def test_checks_of_every_form_run_in_the_sandbox():
    scripts = ["test -e a", {"code": "int x;", "language": "c++"}, {"file": "check/2.py", "language": "python"}]
    assert read({"evaluation": {"check": scripts}})["steps"] == [
        {"where": "sandbox", "language": "bash", "code": "test -e a"},
        {"where": "sandbox", "language": "c++", "code": "int x;"},
        {"where": "sandbox", "language": "python", "code": "print(2)"},
    ]
    (step,) = read({"evaluation": {"check": {"file": "check/0.sh"}, "example": "touch a"}})["steps"]
    assert step == {"where": "sandbox", "language": "bash", "code": "test -e a"}


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"description": 7}, "description is a int; it must be a text"),
        ({"evaluation": None}, "evaluation must be an object with one of match and check"),
        ({"evaluation": {"match": "a", "check": "b"}}, "evaluation must be an object with one of match and check"),
        ({"evaluation": {"match": {"regex": "("}}}, "evaluation.match.regex '(' is no pattern: "),
        ({"evaluation": {"match": {"answer": 4}}}, "evaluation.match.answer is a int; it must be a text"),
        ({"evaluation": {"match": {"strip": True}}}, "evaluation.match must be a text, or an object with one of"),
        ({"evaluation": {"match": {"answer": "a", "strip": 1}}}, "evaluation.match.strip is 1; it must be true"),
        ({"evaluation": {"check": []}}, "evaluation.check is empty"),
        ({"evaluation": {"check": [None]}}, "evaluation.check[0] is null, which stands for evaluation.example"),
        ({"evaluation": {"check": [COMPARED]}}, "evaluation.check[0]: check/integer-match.py compares with what"),
        ({"evaluation": {"check": {"file": "check/9.sh"}}}, "evaluation.check[0].file: there is no script"),
        ({"evaluation": {"check": {"file": "a", "code": "b"}}}, "evaluation.check[0] must be a text, or an object"),
        ({"evaluation": {"check": {"code": "x", "language": "perl"}}}, "evaluation.check[0].language is 'perl'"),
        ({"evaluation": {"check": "a", "reference": "moon"}}, "evaluation.reference is 'moon'"),
        ({"create": {"local": "windows"}}, "create.local is 'windows'; it must be one of default, packages, ubuntu"),
        ({"create": {"image": "x"}}, "create.image: images by name are not taken"),
        ({"start": ["a"]}, "start is a list; it must be a text"),
    ],
)  # fmt: skip
def test_a_malformed_sample_is_named_with_its_file_its_place_and_its_field(row, told):
    where = "spec.task.params.dataset: data/1/stock.json, sample 0: "
    with pytest.raises(ContractError, match="^" + re.escape(where + told)):
        read(row)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[{", "data/x.json is no JSON: "),
        ("3", "data/x.json holds a int; "),
        ("[3]", "data/x.json, sample 0: it is a int"),
    ],
)
def test_a_malformed_file_is_named(text, told):
    with pytest.raises(ContractError, match=re.escape(told)):
        samples_of("data/x.json", text, "x-", SCRIPTS.get)


def test_a_data_set_without_the_files_is_told_as_such_and_no_script_leads_out_of_its_folder(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "scripts").mkdir()
    (tmp_path / "secret").write_text("x")
    row = {**ROW, "evaluation": {"check": {"file": "../secret"}}}
    (tmp_path / "data" / "a.json").write_text(json.dumps([row]))
    data = Dataset("d", str(tmp_path))
    with pytest.raises(ContractError, match=r"^spec\.task\.params\.dataset: there is no data/b\*\.json"):
        load(data, [Source("data/b*.json", "scripts", "b-")])
    with pytest.raises(ContractError, match=r"there is no script '\.\./secret'"):
        load(data, [Source("data/a.json", "scripts", "a-")])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["description", "evaluation", "match", "check", "example", "create", "init", "code", "file", "language"]
    ), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(JSON)
def test_whatever_a_file_holds_it_is_samples_or_a_clear_error(document):
    samples, told = [], "spec.task.params.dataset: data/x.json"
    try:
        samples = samples_of("data/x.json", json.dumps(document), "x-", SCRIPTS.get)
    except ContractError as error:
        told = str(error)
    assert told.startswith("spec.task.params.dataset: data/x.json")
    assert all(("match" in sample) != ("steps" in sample) for sample in samples)


def test_the_packs_own_data_has_problems_of_every_difficulty_and_both_ways_of_judging_each_with_its_solution():
    samples = own_samples()
    assert len(samples) == 26
    assert len({sample["description"] for sample in samples}) == 26
    assert all(sample["example"] is not None for sample in samples)
    deeds = [sample for sample in samples if "steps" in sample and sample["steps"][0]["where"] == "sandbox"]
    assert len(deeds) >= 7
    assert sum("match" in sample for sample in samples) >= 4


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"split": "dev"}, r"^spec\.task\.params\.split: the pack's own data set has no splits; remove it$"),
        ({"images": "all"}, r"^spec\.task\.params\.images is 'all'; give default .* or declared"),
        ({"round_limit": 0}, r"^spec\.task\.params\.round_limit is 0; give a whole number, 1 to 100$"),
        ({"round_limit": True}, r"^spec\.task\.params\.round_limit is True"),
        ({"indices": "own-own-00001"}, r"^spec\.task\.params\.indices is 'own-own-00001'; give a list of indices"),
        (
            {"indices": ["own-own-00001", "own-own-00026"]},
            r"^spec\.task\.params\.indices: there is no sample 'own-own-00026'; they go from own-own-00000 to ",
        ),
        ({"rounds": 3}, r"^spec\.task\.params\.rounds: agentbench-os has dataset, .*; remove it$"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused_with_the_cure(params, told):
    with pytest.raises(ContractError, match=told):
        PACK.cases(0, params)
