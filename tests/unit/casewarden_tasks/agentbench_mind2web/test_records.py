"""Mind2Web's files by reference: read as they are, and what is broken is left out and named."""

from __future__ import annotations

import copy
import json
import pickle
import random
from pathlib import Path
from typing import Any

import pytest

from casewarden_sdk.errors import ContractError
from casewarden_sdk.testing import play
from casewarden_tasks.agentbench_mind2web import PACK
from casewarden_tasks.agentbench_mind2web.own import own_tasks
from casewarden_tasks.agentbench_mind2web.planted import answering
from casewarden_tasks.agentbench_mind2web.rounds import Rounds

TASK: dict[str, Any] = copy.deepcopy(own_tasks()[0])
KEYS = [f"own-00_{action['action_uid']}" for action in TASK["actions"]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CASEWARDEN_DATASETS", json.dumps({"m2w": {"path": str(tmp_path)}}))
    (tmp_path / "data_dev").mkdir()
    # A folder that is alone at the top is taken for what an archive was packed in.
    (tmp_path / "LICENSE").write_text("CC-BY-4.0")
    return tmp_path


def write(folder: Path, *tasks: Any, name: str = "test_domain_0.json") -> None:
    (folder / "data_dev" / name).write_text(json.dumps(list(tasks)))


def params(**more: Any) -> dict[str, Any]:
    return {"dataset": "m2w", "split": "dev", **more}


def ranks(best: str, of: str) -> dict[str, Any]:
    """Ranks in which one element is first, and the others are behind the tenth."""
    return {"scores": {}, "ranks": {of: {best: 0}}}


def test_an_action_is_a_case_and_a_program_that_knows_it_passes(folder: Path) -> None:
    write(folder, TASK)
    cases = PACK.cases(0, params())
    assert [case.content["action"]["key"] for case in cases] == KEYS
    program = {"main.py": answering(list(PACK.task(params(), 0).records.samples.values()))}
    assert [play(PACK, case, program).verdict.status for case in cases] == ["passed"] * len(KEYS)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda task: task.pop("confirmed_task"), "has no confirmed_task"),
        (lambda task: task["action_reprs"].pop(), "has 3 actions and 2 action_reprs"),
        (lambda task: task["actions"][0].pop("cleaned_html"), "action 0: has no cleaned_html"),
        (lambda task: task["actions"][0]["operation"].update(op="HOVER"), "action 0: operation.op is 'HOVER'"),
        (lambda task: task["actions"][0].update(cleaned_html="<p/>"), "action 0: cleaned_html has no element with"),
    ],
)  # fmt: skip
def test_a_record_that_is_none_is_left_out_and_named(folder: Path, change: Any, why: str) -> None:
    broken = copy.deepcopy(TASK)
    change(broken)
    write(folder, broken, TASK)
    records = PACK.task(params(), 0).records
    assert len(records.samples) in (len(KEYS), 2 * len(KEYS) - 1)
    assert records.broken[0].startswith(f"data_dev/test_domain_0.json, task 0: {why}")
    overall = PACK.aggregate([])["overall"]
    assert overall["total"] == 0


@pytest.mark.parametrize("kind", ["json", "pkl"])
def test_ranks_of_the_data_decide_what_is_asked(folder: Path, kind: str) -> None:
    node = TASK["actions"][0]["pos_candidates"][0]["backend_node_id"]
    document = {"scores": {}, "ranks": {KEYS[0]: {node: 0, "101": 3, "108": 12}}}
    data = json.dumps(document).encode() if kind == "json" else pickle.dumps(document)
    (folder / f"scores_all_data.{kind}").write_bytes(data)
    write(folder, TASK)
    task = PACK.task(params(), 0)
    assert task.records.samples[0].candidates == (node, "101")
    assert task.records.broken == [
        f"data_dev/test_domain_0.json, task 0: action {number}: has no ranks under {KEYS[number]!r}"
        for number in (1, 2)
    ]


def test_an_action_without_a_right_candidate_is_not_asked_and_not_right(folder: Path) -> None:
    (folder / "scores_all_data.json").write_text(json.dumps(ranks("101", KEYS[0])))
    write(folder, TASK)
    (case,) = PACK.cases(0, params())
    verdict = play(PACK, case, {"main.py": "raise SystemExit(3)"}).verdict
    assert (verdict.status, verdict.error) == (
        "failed", "the ranks bring no right element among the candidates: no agent can find it",
    )  # fmt: skip


class _Runs:
    def __reduce__(self) -> Any:
        return (print, ("a pickle ran",))


def test_a_pickle_of_anything_but_plain_values_is_refused_and_not_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder, TASK)
    (folder / "scores_all_data.pkl").write_bytes(pickle.dumps({"ranks": _Runs()}))
    with pytest.raises(ContractError, match=r"only plain values are read"):
        PACK.cases(0, params())
    assert "a pickle ran" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"split": "test"}, r"params\.split is 'test'; give one of dev, std"),
        ({"split": "std"}, r"params\.dataset: data set 'm2w' has no data_std/\*\.json"),
        ({"compat": "v1"}, r"params\.compat is 'v1'"),
        ({"indices": [99]}, r"params\.indices is \[99\]; give a list of different whole numbers from 0 to 2"),
        ({"datasetDigest": "sha256:" + "0" * 64}, r"params\.datasetDigest"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_its_field(folder: Path, given: dict[str, Any], why: str) -> None:
    write(folder, TASK)
    with pytest.raises(ContractError, match=why):
        PACK.cases(0, params(**given))


def test_a_file_that_is_no_list_of_tasks_is_named(folder: Path) -> None:
    (folder / "data_dev" / "x.json").write_text("{}")
    with pytest.raises(ContractError, match=r"data_dev/x\.json is no JSON list of tasks"):
        PACK.cases(0, params())


def test_v0_2_plays_a_hundred_at_most_in_an_order_that_hangs_on_those_before(folder: Path) -> None:
    tasks = [
        {**copy.deepcopy(task), "annotation_id": f"{turn}-{task['annotation_id']}"}
        for turn in range(2)
        for task in own_tasks()
    ]
    write(folder, *tasks)
    assert (len(PACK.cases(0, params())), len(PACK.cases(0, params(compat="v0.2")))) == (148, 100)
    (case,) = PACK.cases(0, params(compat="v0.2", indices=[1]))
    program = {"main.py": answering(list(PACK.task(params(), 0).records.samples.values()))}
    assert play(PACK, case, program).verdict.passed


def test_a_candidate_that_is_alone_is_asked_about_but_in_v0_2(folder: Path) -> None:
    node = TASK["actions"][0]["pos_candidates"][0]["backend_node_id"]
    (folder / "scores_all_data.json").write_text(json.dumps(ranks(node, KEYS[0])))
    write(folder, TASK)
    program = {"main.py": answering(list(PACK.task(params(), 0).records.samples.values()))}
    found = [play(PACK, PACK.cases(0, params(**more))[0], program).verdict for more in ({}, {"compat": "v0.2"})]
    assert [verdict.status for verdict in found] == ["passed", "agent_error"]


def test_what_cannot_be_found_draws_no_order_in_v0_2(folder: Path) -> None:
    document: dict[str, Any] = {"ranks": {KEYS[0]: {"101": 0}}}
    right = TASK["actions"][1]["pos_candidates"][0]["backend_node_id"]
    document["ranks"][KEYS[1]] = {right: 0, **{str(101 + 7 * place): place + 1 for place in range(8)}}
    (folder / "scores_all_data.json").write_text(json.dumps(document))
    write(folder, TASK)
    task = PACK.task(params(compat="v0.2"), 0)
    assert task.records.samples[0].positives == ()
    sample = task.records.samples[1]
    first = Rounds(sample, random.Random(123)).next()
    assert task._rounds(1, sample).next() == first
