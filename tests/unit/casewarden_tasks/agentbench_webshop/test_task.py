"""Replies, and what a run of WebShop's own files is made of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from casewarden_sdk.agentbench import SampleStatus, TaskOutput
from casewarden_sdk.errors import ContractError
from casewarden_tasks.agentbench_webshop import PACK
from casewarden_tasks.agentbench_webshop.task import opening, parsed


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        ("Thought:\nx\n\nAction:\nsearch[red mug]", ("search", "red mug")),
        ("action:\nclick[buy now]", ("click", "buy now")),
        ("Action: \n  click[a]b]", ("click", "a")),
        ("Action:\nclick[one]\nAction:\nclick[two]", ("click", "one")),
        ("Action: search[red mug]", None),
        ("ACTION:\nsearch[x]", None),
        ("Action:\nbuy[x]", None),
        ("", None),
    ],
)
def test_the_first_action_after_its_line_counts(reply: str, action: Any) -> None:
    assert parsed(reply) == action


def test_the_example_keeps_the_form_that_it_asks_for() -> None:
    items = opening()
    assert [item.role for item in items] == ["user", "agent"] * 5
    assert all(parsed(item.content) for item in items[3::2])


def product(number: int) -> dict[str, Any]:
    return {"asin": f"B{number}", "name": f"Mug {number}", "pricing": "$9.00", "query": "mugs"}


@pytest.fixture
def webshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data set in WebShop's form with 210 goals and a row that is no product."""
    data = tmp_path / "data"
    data.mkdir()
    asked = [{"instruction": "buy it", "instruction_attributes": ["round"], "instruction_options": []}]
    rows = [*(product(number) for number in range(210)), {"asin": "BAD"}]
    (data / "items_shuffle_1000.json").write_text(json.dumps(rows))
    (data / "items_ins_v2_1000.json").write_text(json.dumps({"B0": {"attributes": ["round"]}}))
    (data / "items_human_ins.json").write_text(json.dumps({row["asin"]: asked for row in rows}))
    monkeypatch.setenv("CASEWARDEN_DATASETS", json.dumps({"webshop": {"path": str(tmp_path)}}))
    return data


@pytest.mark.parametrize(("split", "indices"), [("std", range(200)), ("dev", range(200, 210))])
def test_splits_are_places_in_agentbench_s_order(webshop: Path, split: str, indices: range) -> None:
    cases = PACK.cases(0, {"dataset": "webshop", "split": split})
    assert [case.content["index"] for case in cases] == list(indices)


def test_rows_that_are_no_product_are_named_beside_the_score(webshop: Path) -> None:
    task = PACK.task({"dataset": "webshop"}, 0)
    result = TaskOutput(0, SampleStatus.COMPLETED, {"reward": 0.5, "history": []}, [])
    assert task.calculate_overall([result, TaskOutput(1, SampleStatus.UNKNOWN, None, [])]) == {
        "reward": 0.25,
        "catalogue": {"products": 210, "broken": 1, "named": ["row 210 (BAD): it has no 'name'"]},
    }


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"split": "dev"}, "split: says what of a data set is played; give dataset too"),
        ({"dataset": "webshop", "split": "all"}, "split is 'all'; give one of dev, std"),
        ({"compat": "v0.1"}, "compat is 'v0.1'; give 'v0.2'"),
        ({"round": 0}, "round is 0; give a whole number from 1 to 100"),
        ({"dataset": "webshop", "datasetDigest": "sha256:" + "0" * 64}, "has the digest sha256:"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_by_their_fields(
    webshop: Path, params: dict[str, Any], said: str
) -> None:
    with pytest.raises(ContractError, match=r"^spec\.task\.params\.") as refused:
        PACK.cases(0, params)
    assert said in str(refused.value)


def test_a_data_set_without_one_of_the_files_is_refused(webshop: Path) -> None:
    (webshop / "items_human_ins.json").unlink()
    with pytest.raises(ContractError, match=r"spec\.task\.params\.dataset: data set 'webshop' has no items_human_ins"):
        PACK.cases(0, {"dataset": "webshop"})


def test_a_split_behind_the_last_goal_is_refused(webshop: Path) -> None:
    (webshop / "items_human_ins.json").write_text(
        json.dumps({"B1": [{"instruction": "buy it", "instruction_attributes": ["round"]}]})
    )
    with pytest.raises(ContractError, match="dev starts at goal 200, and the data set has 1"):
        PACK.cases(0, {"dataset": "webshop", "split": "dev"})
