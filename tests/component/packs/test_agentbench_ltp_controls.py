"""The controls over the pack's own driver with a scripted judge, its parameters, and the figures of AgentBench."""

from __future__ import annotations

import functools
import io
import tarfile
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook
from support.fake_models import puzzle_judge

from casewarden_sdk.agentbench import SampleStatus, TaskOutput
from casewarden_sdk.contract import Control
from casewarden_sdk.errors import ContractError, EnvironmentFailure
from casewarden_sdk.plan import build_plan
from casewarden_sdk.testing import Played, play
from casewarden_tasks.agentbench_ltp import PACK
from casewarden_tasks.agentbench_ltp.task import Puzzles

FAULTS = [control for control in PACK.controls if control.kind == "fault"]
CASES = PACK.cases(0, {})
PAGE = Path(__file__).resolve().parents[3] / "docs" / "packs" / "agentbench-ltp.md"


def judge(body: Any) -> str:
    return puzzle_judge(body["messages"])


def control_of(name: str) -> Control:
    return next(control for control in PACK.controls if control.name == name)


@functools.cache
def played(name: str) -> tuple[Played, ...]:
    return tuple(play(PACK, case, control_of(name), models={"judge": judge}) for case in CASES)


def aggregated(name: str) -> Any:
    return PACK.aggregate(
        [
            {"seed": 0, "repeat": 0, "params": {}, "index": case.content["index"], "status": one.verdict.status,
             "output": one.record["output"]}
            for case, one in zip(CASES, played(name), strict=True)
        ]
    )  # fmt: skip


def test_the_plan_says_that_a_judge_is_needed() -> None:
    assert list(build_plan(PACK, [0], {})["models"]) == ["judge"]


def test_the_reference_finds_every_part_of_every_puzzle() -> None:
    assert [one.verdict.status for one in played("reference")] == ["passed"] * 22
    found = aggregated("reference")
    assert found["score"] == "1"
    assert found["overall"]["custom"]["judge"]["flipped"] == 0


def test_the_null_agent_finds_nothing_and_the_crashing_one_is_an_agent_error() -> None:
    assert {(one.verdict.status, one.record["output"]["status"]) for one in played("null-agent")} == {
        ("failed", "completed")
    }
    assert aggregated("null-agent")["score"] == "0"
    assert {one.verdict.status for one in played("crashing-agent")} == {"agent_error"}
    assert aggregated("crashing-agent")["score"] == "0"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_caught_in_its_target_and_breaks_what_it_declares_and_nothing_else(fault: Control) -> None:
    failed = {name for one in played(fault.name) for name, right in one.verdict.checks.items() if not right}
    assert failed == {fault.target, *fault.collateral}
    assert {one.verdict.status for one in played(fault.name)} == {"failed"}


def test_the_page_for_users_lists_every_control_with_its_detecting_cases_and_its_score() -> None:
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in PAGE.read_text().splitlines()]
    told = {row[0]: (row[3], row[4]) for row in rows if row[0] in {control.name for control in PACK.controls}}
    seen = {}
    for control in PACK.controls:
        caught = sum(one.verdict.checks.get(control.target or "") is False for one in played(control.name))
        detected = {"reference": "–", "fault": str(caught)}.get(control.kind, "all")
        seen[control.name] = (detected, aggregated(control.name)["score"])
    assert told == seen


def test_a_game_that_ends_by_its_rounds_reached_the_tasks_limit() -> None:
    assert {one.record["output"]["status"] for one in played("misses-the-last")} == {"task limit reached"}
    verdict = played("misses-the-last")[-1].verdict
    assert verdict.error == "solved: 4 of 5 parts of the truth were found"
    assert (verdict.metrics["progress"], verdict.metrics["rounds"]) == ("0.8", "25")


def test_a_judge_that_answers_nonsense_is_the_environments_failure() -> None:
    result = play(PACK, CASES[0], control_of("reference"), models={"judge": lambda _: "Perhaps."})
    assert (result.verdict.status, result.verdict.reason) == ("environment_error", "ModelUnavailable")
    assert "the judge answered 'Perhaps.'" in str(result.verdict.error)


def test_a_judge_that_fails_is_too() -> None:
    def away(_: Any) -> str:
        raise EnvironmentFailure("ModelUnavailable", "gone")

    assert play(PACK, CASES[0], control_of("reference"), models={"judge": away}).verdict.status == "environment_error"


def test_repeats_of_the_judge_are_counted_and_its_flips_are_shown() -> None:
    asked: list[str] = []

    def wavering(body: Any) -> str:
        asked.append(body["messages"][-1]["content"])
        found = puzzle_judge(body["messages"])
        return "Irrelevant" if found == "Yes" and "Question:" in asked[-1] and len(asked) % 3 == 1 else found

    case = PACK.cases(0, {"judgeRepeats": 3})[0]
    result = play(PACK, case, control_of("reference"), models={"judge": wavering})
    metrics = result.verdict.metrics
    assert result.verdict.passed
    assert int(metrics["judge_flips"]) >= 1
    assert int(metrics["judge_calls"]) > 2 * int(metrics["judge_judgements"])
    custom = Puzzles([], [], 25, 3, False).calculate_overall([TaskOutput.parse_obj(result.record["output"])])
    assert 0 < custom["judge"]["agreement"] < 1


def test_means_are_over_all_samples_and_one_without_a_result_counts_0() -> None:
    figures = {"progress": 1.0, "efficiency": 0.5, "accuracy": 0.25, "relevance": 0.75,
               "judge": {"calls": 3, "judgements": 2, "flipped": 1}}  # fmt: skip
    results = [TaskOutput(0, SampleStatus.COMPLETED, figures, []), TaskOutput(1, SampleStatus.UNKNOWN, None, [])]
    assert Puzzles([], [], 25, 1, False).calculate_overall(results) == {
        "main": 0.5, "RE": 0.25, "SGA": 0.125, "QR": 0.375, "GP": 0.5,
        "judge": {"calls": 3, "judgements": 2, "flipped": 1, "agreement": 0.5},
    }  # fmt: skip


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A data set in AgentBench's layout with a sheet of two rows."""
    book = Workbook()
    assert book.active is not None
    for row in (("story", "answer", "Story keys", "Answer keys"), ("A?", "a", "s", "One"), ("B?", "b", "s", "1. Two")):
        book.active.append(row)
    sheet = io.BytesIO()
    book.save(sheet)
    path = tmp_path / "data.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("AgentBench/data/lateralthinkingpuzzle/dev.xlsx")
        member.size = len(sheet.getvalue())
        archive.addfile(member, io.BytesIO(sheet.getvalue()))
    monkeypatch.setenv("CASEWARDEN_DATASETS", f'{{"ab": {{"path": "{path}"}}}}')
    return "ab"


def test_a_data_set_takes_the_place_of_our_own(dataset: str) -> None:
    cases = PACK.cases(0, {"dataset": dataset, "split": "dev"})
    assert [case.content["puzzle"]["answer_keys"] for case in cases] == [["One"], ["Two"]]
    path = "data/lateralthinkingpuzzle/dev.xlsx"
    assert len(PACK.cases(0, {"dataset": dataset, "filepath": path})) == 2


def test_the_reference_of_a_data_set_knows_its_puzzles(dataset: str) -> None:
    plan = build_plan(PACK, [0], {"dataset": dataset, "split": "dev"})
    (reference,) = [control for control in plan["controls"] if control["kind"] == "reference"]
    case = PACK.cases(0, {"dataset": dataset, "split": "dev"})[1]
    result = play(PACK, case, reference["files"], models={"judge": judge})
    assert result.record["output"]["result"]["history"][0]["question"].endswith("than it sounds: Two?")


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"split": "std"}, "has no file 'data/lateralthinkingpuzzle/standard.xlsx'"),
        ({"split": "all"}, "spec.task.params.split is 'all'; give one of dev, std"),
        ({"filepath": 7}, "spec.task.params.filepath is 7; give the path of an xlsx file in the data set"),
        ({"split": "dev", "datasetDigest": "sha256:" + "0" * 64}, "spec.task.params.datasetDigest: data set 'ab'"),
    ],
)
def test_a_data_set_that_is_not_as_it_should_be_is_refused(dataset: str, params: dict[str, Any], told: str) -> None:
    with pytest.raises(ContractError) as refused:
        PACK.cases(0, {"dataset": dataset, **params})
    assert told in str(refused.value)


def test_a_run_may_name_the_rows_that_it_plays() -> None:
    assert [case.content["index"] for case in PACK.cases(0, {"indices": [8, 0]})] == [8, 0]


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"split": "dev"}, "spec.task.params.split: says what of a data set is played; give dataset too"),
        ({"round": 0}, "spec.task.params.round is 0; give a whole number from 1 to 100"),
        ({"judgeRepeats": 10}, "spec.task.params.judgeRepeats is 10; give a whole number from 1 to 9"),
        ({"judgeRepeats": True}, "spec.task.params.judgeRepeats is True; give a whole number from 1 to 9"),
        ({"indices": [22]}, "spec.task.params.indices is [22]; give a list of different whole numbers from 0 to 21"),
        ({"indices": []}, "spec.task.params.indices is []; give a list of different whole numbers from 0 to 21"),
        (
            {"indices": [0, 0]},
            "spec.task.params.indices is [0, 0]; give a list of different whole numbers from 0 to 21",
        ),
        ({"compat": "v0.1"}, "spec.task.params.compat is 'v0.1'; give 'v0.2', or leave it out"),
    ],
)
def test_bad_parameters_are_refused_with_the_cure(params: dict[str, Any], told: str) -> None:
    with pytest.raises(ContractError) as refused:
        PACK.cases(0, params)
    assert str(refused.value) == told
