from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from devkit import debian, kwok
from devkit.errors import DevError
from devkit.settings import REPOSITORY

MAKEFILE = (REPOSITORY / "Makefile").read_text()


def said(*words: str) -> str:
    return subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=True, timeout=60).stdout


@pytest.mark.parametrize(
    ("command", "verbs"),
    [
        ("dev/cluster", ["up", "down", "status", "load", "kubeconfig", "kwok"]),
        ("dev/images", ["build", "list", "load", "push"]),
    ],
)
def test_a_command_explains_its_verbs(command: str, verbs: list[str]) -> None:
    text = said(command, "--help")
    assert [verb for verb in verbs if not re.search(rf"^ +{verb}\s+\S", text, re.MULTILINE)] == []


@pytest.mark.parametrize("command", ["dev/install", "dev/demo"])
def test_a_command_names_the_variables_that_choose_the_cluster(command: str) -> None:
    text = said(command, "--help")
    assert "$CONTEXT" in text
    assert "$REGISTRY" in text


def test_make_help_explains_every_target() -> None:
    targets = set(re.findall(r"^\.PHONY: (\S+)$", MAKEFILE, re.MULTILINE))
    explained = set(re.findall(r"^  make (\S+) +\S", said("make", "help"), re.MULTILINE))
    assert targets == explained


def test_ci_runs_what_the_readme_tells_a_user_to_run() -> None:
    assert "make test" in (REPOSITORY / ".ci" / "run").read_text()
    assert "make test" in (REPOSITORY / "README.md").read_text()


def test_every_hook_runs_the_locked_tools() -> None:
    (repo,) = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text())["repos"]
    assert repo["repo"] == "local"
    assert [hook["id"] for hook in repo["hooks"] if not re.match(r"dev/uv run --frozen|make ", hook["entry"])] == []


def test_a_package_that_is_missing_is_named_to_a_user_who_may_not_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(DevError, match=r"not installed: nothing-real"):
        debian.require((debian.Package("nothing-real", "no-such-program"), debian.Package("sh", "sh")))


def test_packages_that_are_there_are_not_asked_for_again() -> None:
    debian.require((debian.Package("sh", "sh"), debian.Package("passwd", "/etc/passwd")))


def test_pretended_nodes_keep_real_pods_away() -> None:
    node = kwok.node(3)
    assert node["metadata"]["labels"]["type"] == "kwok"
    assert [taint["effect"] for taint in node["spec"]["taints"]] == ["NoSchedule"]


def test_a_pretended_pod_ends_with_the_message_of_its_annotation() -> None:
    stages = {
        document["metadata"]["name"]: document["spec"]
        for document in yaml.safe_load_all(Path(kwok.CONFIGURATION).read_text())
        if document["kind"] == "Stage"
    }
    ended = stages["pod-ended"]
    assert any("termination-message" in rule["key"] for rule in ended["selector"]["matchExpressions"])
    assert "message: {{ $message | Quote }}" in ended["next"]["statusTemplate"]
