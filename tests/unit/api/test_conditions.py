"""Conditions move as Kubernetes wants them to."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from casewarden.api.conditions import Condition, ConditionStatus, is_true, set_condition

STATUSES: list[ConditionStatus] = ["True", "False", "Unknown"]


def test_the_time_moves_only_when_the_status_does() -> None:
    first = set_condition([], "Finished", "False", "Running", "1/4 cases are done", "t1", 1)
    second = set_condition(first, "Finished", "False", "Running", "2/4 cases are done", "t2", 2)
    third = set_condition(second, "Finished", "True", "Completed", "", "t3", 2)
    assert [item[0]["lastTransitionTime"] for item in (first, second, third)] == ["t1", "t1", "t3"]
    assert second[0]["message"] == "2/4 cases are done"
    assert second[0]["observedGeneration"] == 2
    assert not is_true(second, "Finished")
    assert is_true(third, "Finished")


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from(STATUSES)), max_size=30))
def test_each_type_is_there_once_with_its_last_status(steps: list[tuple[str, ConditionStatus]]) -> None:
    conditions: list[dict[str, Any]] = []
    for number, (type_, status) in enumerate(steps):
        before = list(conditions)
        conditions = set_condition(conditions, type_, status, "Because", "", f"t{number}", number)
        assert [item for item in conditions if item["type"] != type_] == [
            item for item in before if item["type"] != type_
        ]
    assert {item["type"]: item["status"] for item in conditions} == dict(steps)
    assert len(conditions) == len({type_ for type_, _ in steps})
    for item in conditions:
        Condition.model_validate(item)
