"""The model servers of a local run: where they are, and where their keys come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from casewarden.cli.endpoints import read_endpoints
from casewarden.cli.failure import Failure

FILE = "catalogue: {endpoints: {team-gpt: {url: 'https://m.example/v1', secret: {name: s}, namespaces: [evals]}}}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "endpoints.yaml"
    path.write_text(FILE)
    return path


def test_an_endpoint_is_a_word_or_in_a_file_and_its_key_in_the_environment(file: Path) -> None:
    found = read_endpoints(["local=http://localhost:11434/v1"], file, {"CASEWARDEN_KEY_TEAM_GPT": " sk-1\n"})
    assert found.endpoints["local"].url == "http://localhost:11434/v1"
    assert found.endpoints["team-gpt"].allows("anybody"), "namespaces are a cluster's"
    assert found.keys == {"team-gpt": "sk-1"}
    assert read_endpoints(["team-gpt=http://other/v1"], file, {}).endpoints["team-gpt"].url == "http://other/v1"


@pytest.mark.parametrize(
    ("words", "text", "said"),
    [
        (["http://localhost"], None, "give NAME=URL, as in team="),
        (["Team=http://localhost"], None, "give NAME=URL"),
        (["team=localhost:80"], None, "--endpoint team: url"),
        ([], FILE, "as CASEWARDEN_KEY_TEAM_GPT"),
        ([], "tasks: {}", "it has no endpoints"),
        ([], "endpoints: {a: {url: 'http://x', conc: 1}}", "a: conc"),
        ([], "a: [", "it is no YAML"),
    ],
)
def test_what_is_no_endpoint_is_refused_with_its_cure(
    tmp_path: Path, words: list[str], text: str | None, said: str
) -> None:
    file = None
    if text is not None:
        file = tmp_path / "endpoints.yaml"
        file.write_text(text)
    with pytest.raises(Failure, match=said):
        read_endpoints(words, file, {})
    with pytest.raises(Failure, match="No such file"):
        read_endpoints([], tmp_path / "none", {})
