"""Fingerprints change exactly when what they stand for does."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from casewarden.core.fingerprints import candidate_fingerprint, conditions_fingerprint, task_name

WORKSPACE = "a" * 64
CANDIDATE: dict[str, Any] = {"argv": ["python3", "main.py"], "env": [("A", "1")], "workspace": WORKSPACE}
CONDITIONS: dict[str, Any] = {"limits": {"case_seconds": 120.0}, "resources": {"candidate": {"limits": {"cpu": "1"}}}}


def test_a_candidate_is_its_command_environment_and_files() -> None:
    text = (
        '{"argv": ["python3", "main.py"], "env": [{"name": "A", "value": "1"}], "kind": "program", '
        f'"workspace": "{WORKSPACE}"}}'
    )
    assert candidate_fingerprint(**CANDIDATE) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "change",
    [
        {"argv": None},
        {"argv": []},
        {"argv": ["python3 main.py"]},
        {"env": []},
        {"env": [("A", "2")]},
        {"workspace": None},
        {"workspace": "b" * 64},
    ],
)
def test_another_candidate_has_another_fingerprint(change: dict[str, Any]) -> None:
    assert candidate_fingerprint(**CANDIDATE | change) != candidate_fingerprint(**CANDIDATE)


def test_an_image_counts_only_where_it_is_all_that_there_is_of_the_candidate() -> None:
    assert candidate_fingerprint(**CANDIDATE, image="agent:1") == candidate_fingerprint(**CANDIDATE)
    alone = {**CANDIDATE, "workspace": None}
    fingerprints = {candidate_fingerprint(**alone, image=image) for image in (None, "agent:1", "agent:2")}
    assert len(fingerprints) == 3


def test_variables_have_no_order() -> None:
    variables = [("B", "2"), ("A", "1")]
    turned = {**CANDIDATE, "env": variables[::-1]}
    assert candidate_fingerprint(**{**CANDIDATE, "env": variables}) == candidate_fingerprint(**turned)


@pytest.mark.parametrize(
    "change",
    [
        {"limits": {"case_seconds": 60.0}},
        {"limits": {"case_seconds": 120}},
        {"resources": {}},
        {"boundary": "local"},
        {"profile": "baseline"},
        {"network": "open"},
        {"runtime_class": "gvisor"},
    ],
)
def test_other_conditions_have_another_fingerprint(change: dict[str, Any]) -> None:
    assert conditions_fingerprint(**CONDITIONS | change) != conditions_fingerprint(**CONDITIONS)


def test_a_task_is_named_with_its_version() -> None:
    assert task_name("durable-kv", "0.1.0") == "durable-kv@0.1.0"
