"""``report`` and ``export`` on the folder of a run: what they write, and how they say what is wrong."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from support.audit_evidence import AuditFolder
from support.evidence import RunFolder, finished_run

from casewarden.cli.app import run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return kept(tmp_path / "a-run", finished_run())


def kept(folder: Path, found: RunFolder) -> Path:
    for path, data in found.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return folder


def told(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


def test_the_report_has_the_transcript_of_what_failed_and_what_was_drawn_of_it(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    assert run("casewarden", ["report", str(folder), "-o", str(out)]) == 0
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', out.read_text(), re.S)
    data = json.loads(text)
    (first, *rest) = data["cases"]
    assert first[:5] == [0, 17, "restart", 0, "failed"]
    assert first[9] == 2
    assert [row[2:] for row in data["transcripts"][first[10]]] == [
        ["in", "[1, 2]"], ["out", "base64 MyD/"], ["table", "a |##|\nb |# |"],
    ]  # fmt: skip
    assert all(item[10] is None for item in rest)


def test_passed_cases_have_theirs_where_they_are_asked_for(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    assert run("casewarden", ["report", str(folder), "-o", str(out), "--passed"]) == 0
    assert "4 transcripts are in this report." in out.read_text()


def test_an_audit_is_shown_with_its_margins_beside_a_run_or_alone(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "audits" / "a0d1-audit"
    for path, data in AuditFolder().files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(data)
    out = tmp_path / "r.html"
    for targets in ([str(folder), str(place)], [str(place)]):
        assert run("casewarden", ["report", *targets, "-o", str(out)]) == 0
        text = re.sub(r"<[^>]+>", "|", out.read_text())
        assert "evals/trial: |passed|" in text
        assert "|weakest margin||1 family|" in text
        assert "|faults caught||1 of 1|" in text
        assert re.search(r"\|wrong\|\|fault\|\|recovery\|\|+yes\|+restart\|", text)
    assert run("casewarden", ["export", str(place), "-f", "csv"]) == 2
    assert "is an audit: export the runs of its controls" in told(capsys)
    (place / "audit.json").write_text("{}")
    assert run("casewarden", ["report", str(place), "-o", str(out)]) == 2
    assert "is not what an audit leaves" in told(capsys)


def test_what_models_used_is_read_from_the_folder(folder: Path, tmp_path: Path) -> None:
    used = {
        "v": 1,
        "prompt_tokens": 1200,
        "completion_tokens": 30,
        "model_calls": 4,
        "source": "reported",
        "cost": "1.5",
    }
    (folder / "usage.json").write_text(json.dumps(used))
    out = tmp_path / "r.html"
    assert run("casewarden", ["report", str(folder), "-o", str(out)]) == 0
    cells = re.findall(r"<t[dh][^>]*>([^<]*)</t[dh]>", out.read_text().partition("Models and costs")[2])
    assert cells[7:13] == ["evals/small-run", "reported", "4", "1,200", "30", "1.5"]
    assert float(cells[13]) > 0


def test_csv_goes_to_standard_output(folder: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run("casewarden", ["export", str(folder), "-f", "csv"]) == 0
    lines = list(csv.DictReader(io.StringIO(capfdbinary.readouterr().out.decode())))
    assert [(line["case"], line["status"]) for line in lines][:2] == [("add", "passed"), ("restart", "failed")]


def test_an_inspect_log_is_of_one_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("casewarden", ["export", str(folder), str(folder), "-f", "inspect"]) == 2
    assert "export each run to a file of its own" in told(capsys)


def test_a_run_without_results_has_no_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "results.jsonl").unlink()
    assert run("casewarden", ["report", str(folder)]) == 2
    assert "has no results.jsonl" in told(capsys)


def test_a_damaged_bundle_is_named(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "17/restart/0/2.tar.zst").write_bytes(b"no bundle")
    assert run("casewarden", ["report", str(folder), "-o", str(tmp_path / "r.html")]) == 2
    assert "case 17/restart/0" in told(capsys)
    assert not (tmp_path / "r.html").exists()


def test_a_plan_that_is_none_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "plan.json").write_text("{}")
    assert run("casewarden", ["export", str(folder), "-f", "junit"]) == 2
    assert "is not what a run leaves" in told(capsys)


def test_a_file_that_cannot_be_written_is_named(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("casewarden", ["report", str(folder), "-o", str(tmp_path / "nowhere" / "r.html")]) == 2
    assert "give a file in a folder that is there" in told(capsys)
