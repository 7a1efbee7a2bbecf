"""A pack with a rule of its own, on this machine: its score, its files, and that both can be computed again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.agentbench_tasks import PACK, SAYS_SEVEN

from casewarden.adapters.stores.zstd import decompress
from casewarden.cli.verifying import reader, regrader_of
from casewarden.core.regrade import regrade_run
from casewarden.core.verify import verify_run
from casewarden.local.run import LocalResult

AT = {"pack": "support.agentbench_tasks:PACK", "task": {"name": "lengths"}, "seeds": {"values": [0]}}


def verify(result: LocalResult, **again: Any) -> list[str]:
    paths = [str(path.relative_to(result.folder)) for path in result.folder.rglob("*") if path.is_file()]
    digest = result.status["evidence"]["digest"]
    found = verify_run(reader(result.folder), paths, decompress, status_digest=digest, **again)
    assert found.bundles == 3
    return [f"{finding.path}: {finding.problem}" for finding in found.findings]


@pytest.fixture
async def result(run) -> LocalResult:
    return await run(**AT, files={"main.py": SAYS_SEVEN.replace("'7'", "'3' if len(asked) < 5 else 'seven'")})


async def test_the_score_is_the_task_s_own_and_the_files_are_agentbench_s(result):
    status = result.status
    assert (status["score"], status["valid"], status["assessed"]) == ("0.33333333", True, "3/3")
    assert "scoreInterval" not in status
    overall = json.loads((result.folder / "overall.json").read_text())
    assert overall["custom"] == {"overall": {"acc": 1 / 3}, "indices": [0, 1, "2"]}
    assert overall["validation"]["completed"] == 1.0
    assert overall["validation"]["average_history_length"] == 2.0
    lines = [json.loads(line) for line in (result.folder / "runs.jsonl").open()]
    assert [line["index"] for line in lines] == [0, 1, "2"]
    assert lines[1]["output"]["history"][1] == {"role": "agent", "content": "seven"}
    assert lines[0]["error"] is None
    assert sorted(lines[0]["time"]) == ["str", "timestamp"]
    assert (result.folder / "error.jsonl").read_text() == ""


async def test_all_of_it_can_be_computed_again(result):
    assert verify(result, regrade=regrader_of(PACK), reaggregate=PACK.aggregate) == []
    regraded = regrade_run(
        reader(result.folder),
        decompress,
        regrader_of(PACK),
        paths=[str(path.relative_to(result.folder)) for path in result.folder.rglob("*") if path.is_file()],
        reaggregate=PACK.aggregate,
    )
    assert (regraded.changes, regraded.after["score"]) == ([], "0.33333333")


@pytest.mark.parametrize("name", ["overall.json", "runs.jsonl"])
async def test_a_changed_file_is_found(result, name):
    path: Path = result.folder / name
    path.write_text(path.read_text().replace("completed", "compl3ted").replace("0.3333333333333333", "0.9"))
    assert any(name in finding for finding in verify(result))


async def test_what_an_agent_broke_is_a_run_with_its_transcript_and_the_score_has_it(run):
    result = await run(**AT, files={"main.py": "raise SystemExit(3)"})
    assert (result.status["score"], result.status["cases"]["agentErrors"]) == ("0", 3)
    lines = [json.loads(line) for line in (result.folder / "runs.jsonl").open()]
    assert [line["output"]["status"] for line in lines] == ["completed"] * 3
    assert lines[0]["output"]["history"][1]["content"] == "cancelled"
    assert verify(result) == []


async def test_a_rule_that_makes_no_score_fails_the_run_and_says_why(run):
    result = await run(**{**AT, "pack": "support.agentbench_tasks:NO_SCORE"})
    failed = next(item for item in result.status["conditions"] if item["type"] == "Failed")
    assert (failed["status"], failed["reason"]) == ("True", "AggregateFailed")
    assert "the score is to be at 'overall.nowhere'" in failed["message"]
    assert "score" not in result.status
