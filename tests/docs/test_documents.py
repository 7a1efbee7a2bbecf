"""What the documents say exists, exists; what they show is accepted."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from casewarden.cli.app import run

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not {".venv", "node_modules", "build", "dist"} & set(path.relative_to(ROOT).parts)
)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    targets = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    assert [link for link in targets if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_manifest_on_a_page_is_accepted(page: Path, tmp_path: Path) -> None:
    for number, (language, text) in enumerate(FENCE.findall(page.read_text())):
        if language != "yaml" or "kind: EvalRun" not in text:
            continue
        file = tmp_path / f"{number}.yaml"
        file.write_text(text)
        done = subprocess.run(
            [str(ROOT / ".venv/bin/casewarden"), "validate", "-f", str(file)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


COMMANDS = sorted(
    {line for page in PAGES for line in re.findall(r"^(?:\$ |    )casewarden (.+)$", page.read_text(), re.M)}
)


@pytest.mark.parametrize("line", COMMANDS)
def test_every_command_of_ours_on_a_page_has_that_verb_and_those_options(line: str) -> None:
    words = shlex.split(line, comments=True)
    # What is asked for help beside an option that there is not, says that.
    assert run("casewarden", [*words, "--help"]) == 0


def test_an_option_that_there_is_not_is_noticed() -> None:
    assert len(COMMANDS) >= 15
    assert run("casewarden", ["verify", "kv-gpt", "--sgn", "key.pem", "--help"]) == 2


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_make_target_on_a_page_exists(page: Path) -> None:
    named = set(
        re.findall(r"\bmake ([a-z][a-z-]+)\b", "\n".join(re.findall(r"`[^`]+`|^\$ .*$", page.read_text(), re.M)))
    )
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.M))
    assert named <= targets


def test_every_example_is_yaml_with_only_known_kinds() -> None:
    kinds = {
        document["kind"]
        for path in (ROOT / "examples").glob("*.yaml")
        for document in yaml.safe_load_all(path.read_text())
        if document
    }
    assert "EvalRun" in kinds
    assert kinds <= {"EvalRun", "AuditRun", "ConfigMap", "Namespace"}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE"])
def test_the_house_is_complete(name: str) -> None:
    assert (ROOT / name).stat().st_size > 500
