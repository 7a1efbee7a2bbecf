"""JUnit, CSV and Inspect: rejected is not the same as not assessed, and nothing a candidate wrote breaks a format."""

from __future__ import annotations

import csv
import io
import json
import xml.etree.ElementTree as ET
import zipfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.reports import HOSTILE, case, rows, run

from casewarden.reporting.csvfile import to_csv
from casewarden.reporting.inspectlog import to_inspect
from casewarden.reporting.junit import to_junit
from casewarden.reporting.run import NOT_ASSESSED, ReportedRun

CASES = [
    case("good"),
    case("bad", "failed", error="expected 3"),
    case("broke", "agent_error", reason="TimeLimit", error="too slow"),
    case("lost", "environment_error", reason="Evicted", error="the node was full", attempts=3),
    case("never", NOT_ASSESSED, seconds=None, attempt=None, attempts=0, ended_at=None),
]


def junit(*runs: ReportedRun) -> ET.Element:
    return ET.fromstring(to_junit(runs))


def test_a_rejection_is_a_failure_and_what_could_not_be_assessed_an_error() -> None:
    root = junit(run(CASES))
    (suite,) = root
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5", "failures": "2", "errors": "2", "skipped": "0",
    }  # fmt: skip
    found = {item.get("name"): [(child.tag, child.get("type"), child.get("message")) for child in item]
             for item in suite.findall("testcase")}  # fmt: skip
    assert found == {
        "good[seed=17]": [],
        "bad[seed=17]": [("failure", "failed", "expected 3")],
        "broke[seed=17]": [("failure", "TimeLimit", "too slow")],
        "lost[seed=17]": [("error", "Evicted", "the node was full")],
        "never[seed=17]": [("error", NOT_ASSESSED, NOT_ASSESSED)],
    }


def test_totals_are_over_all_suites_and_an_invalid_run_has_no_score() -> None:
    root = junit(run(CASES), run([case("good")], name="two"))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("6", "2", "2")
    names = [{item.get("name") for item in suite.iter("property")} for suite in root]
    assert "score" not in names[0]
    assert "score" in names[1]


@given(st.text(max_size=50))
def test_any_text_makes_a_document(text: str) -> None:
    (suite,) = junit(run([case("a", "failed", error=text, reason=text)], candidate=text))
    assert suite.find("testcase/failure") is not None


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    (suite,) = junit(run([case("a", "failed", error=text)]))
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert len(failure) == 0
    assert len(list(csv.reader(io.StringIO(to_csv([run([case("a", "failed", error=text)])])), strict=True))) == 2


def test_csv_has_a_line_for_each_case_and_a_column_for_each_check() -> None:
    lines = list(csv.DictReader(io.StringIO(to_csv([run(CASES)]))))
    assert [line["case"] for line in lines] == [item.key.case_id for item in CASES]
    assert [line["check_basic"] for line in lines] == ["1", "0", "0", "", ""]
    assert lines[3]["attempts"] == "3"
    assert lines[4]["seconds"] == ""


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\tx"])
def test_no_cell_is_a_formula(text: str) -> None:
    (line,) = csv.DictReader(io.StringIO(to_csv([run([case("a", "failed", error=text)])])))
    assert line["error"] == f"'{text}"


def log(found: ReportedRun) -> dict[str, Any]:
    data = to_inspect(found, lambda item: ({"id": item.key.case_id}, rows("hello", *HOSTILE)))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: json.loads(archive.read(name)) for name in archive.namelist()}


def test_an_inspect_log_of_an_invalid_run_is_no_success() -> None:
    files = log(run(CASES))
    assert files["header.json"]["status"] == "error"
    assert "2 of 5 cases" in files["header.json"]["error"]["message"]
    assert log(run(CASES[:3]))["header.json"]["status"] == "success"


def test_an_inspect_sample_has_its_scores_or_its_error() -> None:
    files = log(run(CASES))
    good, broke, lost = (files[f"samples/{name}-17_epoch_1.json"] for name in ("good", "broke", "lost"))
    assert {name: score["value"] for name, score in good["scores"].items()} == {"basic": 1, "crash": 1}
    assert {name: score["value"] for name, score in broke["scores"].items()} == {"basic": 0, "crash": 0}
    assert broke["limit"] == {"type": "time", "limit": 120.0, "reason": "TimeLimit"}
    assert "scores" not in lost
    assert lost["error"]["message"] == "Evicted: the node was full"
    assert [message["role"] for message in good["messages"]] == ["assistant"] * 5
    assert good["output"]["choices"][0]["message"]["content"] == HOSTILE[-1]


def test_scores_of_an_inspect_log_count_what_was_not_scored() -> None:
    results = log(run(CASES))["header.json"]["results"]
    assert (results["total_samples"], results["completed_samples"]) == (5, 3)
    assert {(s["name"], s["scored_samples"], s["unscored_samples"]) for s in results["scores"]} == {
        ("basic", 3, 2),
        ("crash", 3, 2),
    }


def test_the_same_run_gives_the_same_bytes() -> None:
    found = run(CASES)
    assert to_inspect(found, lambda _: ({}, [])) == to_inspect(found, lambda _: ({}, []))
