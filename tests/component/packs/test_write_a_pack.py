"""A newcomer who follows ``docs/write-a-pack.md`` to the letter gets there: every command on the page is run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "write-a-pack.md").read_text()
NEEDED = (
    "pyproject.toml", "tasks", "docs/packs", "tests/support",
    "tests/unit/casewarden_tasks", "tests/component/packs/test_controls.py",
)  # fmt: skip
COMMANDS = [
    line.removeprefix("$ ")
    for block in re.findall(r"^```console\n(.*?)^```$", PAGE, re.M | re.S)
    for line in block.splitlines()
    if line.startswith("$ ")
]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in NEEDED:
        source, target = ROOT / name, tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    (manifest,) = [text for text in re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S) if "kind: EvalRun" in text]
    (tmp_path / "my-run.yaml").write_text(manifest)
    return tmp_path


def run(command: str, checkout: Path) -> subprocess.CompletedProcess[str]:
    variables = {
        **os.environ,
        "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(checkout / "tasks"),
    }
    return subprocess.run(
        ["bash", "-c", command], cwd=checkout, env=variables, capture_output=True, text=True, timeout=250, check=False
    )


def test_the_page_works_as_it_is_written(checkout: Path) -> None:
    fixes_the_version = [command for command in COMMANDS if "test_fingerprints.py" in command]
    assert COMMANDS[-1:] == fixes_the_version
    for command in COMMANDS[:-1]:
        done = run(command, checkout)
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"

    refused = run(COMMANDS[-1], checkout)
    assert refused.returncode == 1
    told = re.search(r'"(my-task@0\.1\.0)": (\{[^}]*\})', re.sub(r"^E ?", "", refused.stdout, flags=re.M))
    assert told, refused.stdout
    table = checkout / "tests" / "unit" / "casewarden_tasks" / "fingerprints.json"
    table.write_text(json.dumps({**json.loads(table.read_text()), told[1]: json.loads(told[2])}))
    assert run(COMMANDS[-1], checkout).returncode == 0


def test_the_new_pack_is_asked_for_a_version_when_its_grading_changes(checkout: Path) -> None:
    for command in COMMANDS[:2]:
        assert run(command, checkout).returncode == 0
    table = checkout / "tests" / "unit" / "casewarden_tasks" / "fingerprints.json"
    row = json.loads(table.read_text())["template@0.1.0"]
    table.write_text(json.dumps({**json.loads(table.read_text()), "my-task@0.1.0": row}))
    refused = run(COMMANDS[-1], checkout)
    assert "contract, grading of my-task@0.1.0 changed" in refused.stdout
    assert "raise the version in tasks/casewarden_tasks/my_task/__init__.py" in refused.stdout
