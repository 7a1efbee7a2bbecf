"""AgentBench's presets as EvalRuns, endpoints and Secrets: golden files, and what is refused or told."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.golden import check_golden

from casewarden.api.catalogue import Catalogue
from casewarden.cli.agentbench_config import Loader
from casewarden.cli.agentbench_convert import convert
from casewarden.cli.app import run
from casewarden.cli.failure import Failure

HERE = Path(__file__).parent / "agentbench"
PRESETS = ["default", "lite"]


def whole(name: str) -> dict[str, Any]:
    made = convert(Loader().load(HERE / "configs" / "assignments" / f"{name}.yaml"), "agentbench")
    return {"runs": made.runs, "values": made.values, "secrets": made.secrets, "notes": made.notes}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_becomes_what_was_looked_at(name: str) -> None:
    check_golden(HERE / "golden" / f"{name}.yaml", whole(name))


@pytest.mark.parametrize("name", PRESETS)
def test_what_comes_of_it_is_valid_and_only_the_secrets_have_a_key(name: str) -> None:
    made = whole(name)
    Catalogue.model_validate(made["values"]["catalogue"])
    assert "PUT-YOUR" in str(made["secrets"])
    assert "PUT-YOUR" not in str([made["runs"], made["values"], made["notes"]])


def test_the_command_writes_three_files_and_only_the_user_may_read_the_keys(tmp_path, capsys) -> None:
    config = str(HERE / "configs" / "assignments" / "default.yaml")
    assert run("casewarden", ["import", "agentbench", config, "--out", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs.yaml", "secrets.yaml", "values.yaml"]
    assert stat.S_IMODE((tmp_path / "secrets.yaml").stat().st_mode) == 0o600
    runs = list(yaml.safe_load_all((tmp_path / "runs.yaml").read_text()))
    assert [item["metadata"]["name"] for item in runs] == [
        "gpt-3-5-turbo-0613-dbbench-std",
        "gpt-3-5-turbo-0613-os-std",
    ]
    assert "placeholder" in capsys.readouterr().out


CHAT = {
    "module": "src.client.agents.HTTPAgent",
    "parameters": {
        "url": "https://models.example/v1/chat/completions",
        "headers": {"Authorization": "bearer sk-1", "X-Team": "a"},
        "body": {"model": "m", "temperature": 0},
        "prompter": {"name": "role_content_dict", "args": {"agent_role": "bot"}},
        "sleep": 3,
    },
}


def config(**changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "definition": {"agent": {"a": CHAT}, "task": {"os-dev": {"parameters": {"round_limit": 4}}}},
        "concurrency": {"agent": {"a": 2}, "task": {"os-dev": 3}},
        "assignments": [{"agent": "a", "task": ["os-dev", "os-dev"]}],
    }
    return {**made, **changes}


def test_pairs_are_counted_once_and_the_lesser_concurrency_is_the_parallelism() -> None:
    made = convert(config(), "checkout")
    (item,) = made.runs
    assert item["spec"]["task"] == {
        "name": "agentbench-os",
        "params": {"dataset": "checkout", "split": "dev", "round_limit": 4},
    }
    assert item["spec"]["parallelism"] == 2
    assert item["spec"]["candidate"]["model"]["prompter"] == {
        "name": "role_content_dict",
        "args": {"agent_role": "bot"},
    }
    assert made.secrets[0]["stringData"] == {"key": "sk-1"}
    assert "sk-1" not in str([made.runs, made.values, made.notes])
    assert any("X-Team" in note for note in made.notes)
    assert any("sleep" in note for note in made.notes)


def test_a_task_of_one_s_own_keeps_its_parameters_and_is_told_of() -> None:
    tasks = {"mine": {"module": "x.Mine", "parameters": {"name": "My-Task", "rounds": 3, "concurrency": 2}}}
    made = convert(
        config(
            definition={"agent": {"a": CHAT}, "task": tasks},
            concurrency={"agent": {"a": 1}, "task": {"mine": 1}},
            assignments={"agent": "a", "task": "mine"},
        ),
        "agentbench",
    )
    assert made.runs[0]["spec"]["task"] == {"name": "my-task", "params": {"rounds": 3}}
    assert any("my-task" in note for note in made.notes)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"assignments": []}, "assignments: is empty"),
        ({"assignments": [{"agent": "b", "task": "os-dev"}]}, "agent 'b' is not in definition.agent"),
        ({"assignments": [{"agent": "a", "task": "x"}]}, "task 'x' is not in definition.task"),
        ({"assignments": [{"agent": 3, "task": "os-dev"}]}, "agent is 3; give a name"),
        ({"concurrency": {"agent": {}, "task": {"os-dev": 1}}}, r"concurrency.agent.a: is None; give a number"),
        (
            {"definition": {"agent": {"a": {"module": "x.Y", "parameters": {}}}, "task": {"os-dev": {}}}},
            r"definition.agent.a.module: 'x.Y'",
        ),
        ({"definition": None}, "definition: is missing"),
    ],
)
def test_what_cannot_be_taken_over_is_refused_by_its_field(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(Failure, match=told):
        convert(config(**changes), "agentbench")


@pytest.mark.parametrize("url", ["ftp://x/v1/chat/completions", "https://user:pw@x/v1/chat/completions"])
def test_an_address_that_is_none_or_has_a_password_is_refused(url: str) -> None:
    agent = {**CHAT, "parameters": {**CHAT["parameters"], "url": url}}  # type: ignore[dict-item]
    with pytest.raises(Failure, match=r"parameters\.url: "):
        convert(config(definition={"agent": {"a": agent}, "task": {"os-dev": {}}}), "agentbench")


@pytest.mark.parametrize(
    "parameters",
    [
        {"headers": "Authorization: Bearer sk-very-secret"},
        {"headers": ["sk-very-secret"]},
        {"body": "sk-very-secret"},
        {"url": "ftp://user:sk-very-secret@x/v1"},
        {"url": "user:sk-very-secret@x/v1"},
    ],
)
def test_no_error_repeats_what_may_be_a_key(parameters: dict[str, Any]) -> None:
    agent = {**CHAT, "parameters": {**CHAT["parameters"], **parameters}}  # type: ignore[dict-item]
    with pytest.raises(Failure) as caught:
        convert(config(definition={"agent": {"a": agent}, "task": {"os-dev": {}}}), "agentbench")
    assert "very-secret" not in str(caught.value)
    assert f"parameters.{next(iter(parameters))}" in str(caught.value)
