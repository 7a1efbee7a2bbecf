from __future__ import annotations

import sys
from pathlib import Path

import pytest

from devkit.errors import DevError, tail
from devkit.shell import run, succeeds, wait_until


def test_a_wait_that_runs_out_names_what_was_awaited_the_log_and_its_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "kubelet.log"
    log.write_text("first\nthe disk is full\n")
    with pytest.raises(DevError) as caught:
        wait_until(lambda: False, seconds=0.01, what="the node", log=log, detail=lambda: "NotReady")
    message = str(caught.value)
    assert "the node: not there after 0 s (NotReady)" in message
    assert str(log) in message
    assert "the disk is full" in message


def test_a_wait_ends_as_soon_as_its_probe_answers() -> None:
    answers = iter([False, False, True])
    wait_until(lambda: next(answers), seconds=5, what="it")
    assert list(answers) == []


def test_a_program_that_fails_is_reported_with_its_exit_code_and_last_words() -> None:
    with pytest.raises(DevError, match=r"(?s)a step: .* exited 3.*no such luck"):
        run([sys.executable, "-c", "import sys; print('no such luck', file=sys.stderr); sys.exit(3)"], what="a step")


def test_a_program_that_fails_with_a_log_is_reported_with_the_log(tmp_path: Path) -> None:
    log = tmp_path / "deep" / "step.log"
    with pytest.raises(DevError, match=r"(?s)see .*step\.log.*told"):
        run([sys.executable, "-c", "print('told'); raise SystemExit(1)"], what="a step", log=log)
    assert log.read_text() == "told\n"


def test_a_program_that_is_not_installed_is_named() -> None:
    with pytest.raises(DevError, match="a step: no-such-program is not installed"):
        run(["no-such-program"], what="a step")


def test_a_program_that_does_not_end_is_ended() -> None:
    with pytest.raises(DevError, match="not done after 0 s"):
        run([sys.executable, "-c", "import time; time.sleep(60)"], what="a step", seconds=0.2)


def test_a_missing_program_does_not_succeed() -> None:
    assert not succeeds(["no-such-program"])
    assert succeeds(["true"])
    assert not succeeds(["false"])


def test_the_tail_of_a_missing_log_says_so(tmp_path: Path) -> None:
    assert "no such file" in tail(tmp_path / "none")
