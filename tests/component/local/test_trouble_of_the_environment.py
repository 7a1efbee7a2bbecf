"""What is not the candidate's doing is tried again within the run's budget, counted, and never a score."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from support.troubled_pack import TROUBLE

from casewarden.core.policies import retry


@pytest.fixture(autouse=True)
def _no_delay(monkeypatch):
    monkeypatch.setattr(retry, "FIRST_DELAY_SECONDS", 0.05)


@pytest.fixture
def troubled(run, tmp_path, monkeypatch):
    def start(*troubles: str, **spec):
        (tmp_path / "trouble").write_text(" ".join(troubles))
        monkeypatch.setenv(TROUBLE, str(tmp_path / "trouble"))
        return run(pack="support.troubled_pack:PACK", parallelism=1, **spec)

    return start


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [("environment", "ModelUnavailable"), ("bug", "TaskFailed"), ("unsaid", "TaskFailed"), ("killed", "TaskFailed")],
)
async def test_it_is_tried_again_and_the_case_is_assessed(troubled, trouble, reason):
    result = await troubled("none", trouble, seeds={"values": [1, 2]})
    assert (result.status["score"], result.status["valid"]) == ("1", True)
    assert result.status["attempts"] == {"total": 3, "environmentRetries": 1, "interruptions": 0, "suspended": 0}
    assert [row.reason for row in result.rows if row.kind == "environment"] == [reason]


async def test_a_partial_bundle_is_kept_of_the_attempt_that_failed(troubled):
    result = await troubled("none", "environment", seeds={"values": [1, 2]})
    assert [path.name for path in result.folder.rglob("*.partial.tar.zst")] == ["1.partial.tar.zst"]


async def test_a_budget_that_is_spent_leaves_no_score_and_no_zero(troubled):
    result = await troubled("none", "bug", "bug", seeds={"values": [1, 2]}, retries={"environment": 1})
    assert result.status["valid"] is False
    assert "score" not in result.status
    assert result.status["cases"]["environmentErrors"] == 1
    assert result.status["failures"][0]["reason"] == "TaskFailed"
    assert "KeyError" in result.status["failures"][0]["error"]
    assert "a bug of the pack's" in next(iter(result.logs.values()))


async def test_a_run_whose_first_attempts_all_fail_alike_is_stopped(troubled):
    result = await troubled(*["bug"] * 9, seeds={"values": [1, 2, 3]})
    failed = next(item for item in result.status["conditions"] if item["type"] == "Failed")
    assert (failed["status"], failed["reason"]) == ("True", "CircuitBreaker")
    assert result.status["attempts"]["total"] < 9


async def test_a_run_that_is_past_its_deadline_stops_what_runs(troubled):
    result = await troubled("hangs", activeDeadlineSeconds=2)
    failed = next(item for item in result.status["conditions"] if item["type"] == "Failed")
    assert (failed["status"], failed["reason"]) == ("True", "DeadlineExceeded")
    assert "score" not in result.status


async def test_a_run_that_is_cancelled_stops_its_processes_and_seals_nothing_more(troubled, tmp_path):
    running = asyncio.ensure_future(troubled("hangs"))
    async with asyncio.timeout(20):
        while not _drivers():
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not _drivers()
    assert not list((tmp_path / "store").rglob("sealed.json"))


def _drivers() -> list[Path]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
            command = (path / "cmdline").read_bytes()
        except OSError:
            continue
        if parent == str(os.getpid()) and b"troubled_pack" in command and b"drive" in command:
            found.append(path)
    return found
