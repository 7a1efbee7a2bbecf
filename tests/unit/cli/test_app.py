from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from casewarden.cli import app as app_module
from casewarden.cli import main
from casewarden.cli.app import run
from casewarden.cli.reference import reference

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"
COMMANDS = [
    "run", "evaluate", "apply", "get", "watch", "slots", "cases", "show", "plan", "validate", "verify", "selftest",
    "report", "export", "regrade", "compare", "agent-test", "import", "version",
]  # fmt: skip


def test_the_reference_page_is_what_the_commands_say() -> None:
    assert PAGE.read_text() == reference(), "run: python -m casewarden.cli.reference > docs/reference/cli.md"


def test_every_command_and_every_option_has_help() -> None:
    text = reference()

    assert [line.split()[2].strip("`") for line in text.splitlines() if line.startswith("## ")] == COMMANDS
    assert "None" not in text
    assert "|  |\n" not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_good(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("casewarden", [command, "--help"]) == 0
    assert f"Usage: casewarden {command}" in capsys.readouterr().out


def test_without_a_command_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("casewarden", []) == 0
    assert "Commands:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope"], "nope"),
        (["run"], "--file"),
        (["get", "--bogus"], "--bogus"),
        (["get", "-o", "xml"], "xml"),
        (["plan"], "give exactly one of --file and --task"),
        (["plan", "-t", "durable-kv", "--seeds", "1,x"], "whole numbers separated by commas"),
        (["plan", "-t", "durable-kv", "--params", "["], "--params: is no JSON"),
        (["plan", "-t", "no-such-task"], "no_such_task"),
        (["run", "-f", "/nowhere.yaml"], "/nowhere.yaml: No such file or directory"),
        (["verify", "./nowhere"], "./nowhere: no such folder"),
    ],
)
def test_a_mistake_is_one_line_on_stderr_and_exit_code_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("casewarden", arguments) == 2

    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert len(captured.err.splitlines()) == 1
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (BrokenPipeError(), 0), (ValueError("x"), 2)])
def test_whatever_ends_a_command_becomes_an_exit_code(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(**_: Any) -> None:
        raise error

    monkeypatch.setattr(app_module, "app", broken)
    stdout = sys.stdout
    assert run("casewarden", ["get"]) == code
    sys.stdout = stdout
    assert "Traceback" not in capsys.readouterr().err


def test_it_calls_itself_as_it_was_called(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/kubectl-casewarden"])
    main(["get", "--help"])
    assert "Usage: kubectl casewarden get" in capsys.readouterr().out


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from casewarden.cli import main; main(['--help']);"
        "heavy = {'aiohttp', 'kubernetes', 'pydantic', 'yaml', 'rich', 'zstandard'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    started = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
    # 0.2 s where nothing else runs; what matters is that it is not the 2 s of the libraries above.
    assert time.monotonic() - started < 10
