"""Only what the administrator allows is run."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from casewarden.api.catalogue import Catalogue

CATALOGUE = Catalogue.model_validate(
    {
        "tasks": {"durable-kv": {"image": "tasks:1", "command": ["casewarden-task", "m:PACK"]}},
        "images": {"python": "python:1"},
        "allowedTaskImages": ["registry.example/team/", "registry.example/one", "other.example/two:1"],
    }
)


def test_a_task_is_found_by_its_name() -> None:
    task = CATALOGUE.task("durable-kv", None)
    assert task is not None
    assert (task.image, task.command) == ("tasks:1", ["casewarden-task", "m:PACK"])
    assert CATALOGUE.task("other", None) is None
    assert CATALOGUE.task(None, None) is None


@pytest.mark.parametrize(
    ("image", "allowed"),
    [
        ("registry.example/team/task:1", True),
        ("registry.example/team-of-others/task:1", False),
        ("registry.example/one", True),
        ("registry.example/one:2", True),
        ("registry.example/one@sha256:0", True),
        ("registry.example/one/more:1", True),
        ("registry.example/one-more:1", False),
        ("other.example/two:1", True),
        ("other.example/two:10", False),
        ("elsewhere.example/x", False),
    ],
)
def test_an_image_is_allowed_by_its_repository_and_not_by_a_common_beginning(image: str, allowed: bool) -> None:
    task = CATALOGUE.task(None, image)
    assert (task is not None) is allowed
    assert (CATALOGUE.image(image) is not None) is allowed


def test_an_alias_stands_for_its_image() -> None:
    assert CATALOGUE.image("python") == "python:1"
    assert CATALOGUE.image("ruby") is None


def test_an_empty_entry_of_the_allow_list_allows_nothing() -> None:
    assert Catalogue.model_validate({"allowedTaskImages": [""]}).task(None, "any:1") is None


@pytest.mark.parametrize(
    ("pools", "said"),
    [
        ({"tasks": {"durable-kw": {"concurrency": 1}}}, r"pools.tasks.durable-kw: .* no such task: .*\(durable-kv\)"),
        ({"agents": {"team": {"concurrency": 1}}}, r"pools.agents.team: .* no such endpoint: .*\(none\)"),
    ],
)
def test_a_pool_is_of_an_endpoint_or_a_task_that_there_is(pools: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Catalogue.model_validate({**CATALOGUE.to_json(), "pools": pools})
