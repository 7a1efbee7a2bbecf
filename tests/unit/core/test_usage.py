"""What models used: nothing unknown is ever 0, and no run can claim less than its bundles tell."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden.core.usage import (
    from_status,
    kept_usage,
    status_usage,
    told_by_attempts,
    usage_in_words,
    usage_problems,
)

COUNT = st.integers(0, 10**6)
SUMS = st.fixed_dictionaries(
    {"prompt_tokens": COUNT, "completion_tokens": COUNT, "model_calls": COUNT, "source": st.just("reported")},
    optional={"cost": st.sampled_from(["0.5", None])},
)
DOCUMENT = st.builds(lambda sums, models: {"v": 1, **sums, "models": models}, SUMS,
                     st.dictionaries(st.sampled_from(["judge", "user"]), SUMS))  # fmt: skip
ONE = {"prompt_tokens": 3, "completion_tokens": 2, "model_calls": 1, "source": "reported"}


@given(DOCUMENT)
def test_the_status_has_what_is_kept_and_nothing_that_is_not_known(document: dict[str, Any]) -> None:
    kept = kept_usage(document)
    assert from_status(status_usage(kept)) == kept
    assert ("cost" in kept) == (document.get("cost") is not None)
    assert "v" not in kept


@given(st.lists(st.tuples(SUMS, st.dictionaries(st.just("judge"), SUMS)), max_size=5), st.integers(0, 3))
def test_a_run_that_used_what_its_bundles_tell_or_more_has_no_problem(
    attempts: list[tuple[dict[str, Any], dict[str, Any]]], more: int
) -> None:
    told = told_by_attempts({"usage": own, "task_usage": task} for own, task in attempts)
    kept = {**{name: count + more for name, count in told.get(None, {}).items()},
            "models": {role: counts for role, counts in told.items() if role is not None}}  # fmt: skip
    assert list(usage_problems(kept, told)) == []


@pytest.mark.parametrize(
    ("kept", "problem"),
    [
        ({**ONE, "model_calls": 0}, "usage.model_calls is 0; its bundles come to 1"),
        ({**ONE, "prompt_tokens": "many"}, "usage.prompt_tokens is 'many'"),
        ({**ONE, "models": {"judge": {**ONE, "completion_tokens": 1}}}, "usage.models.judge.completion_tokens is 1"),
    ],
)
def test_a_run_that_claims_less_is_found_out(kept: dict[str, Any], problem: str) -> None:
    told = told_by_attempts([{"usage": ONE, "task_usage": {"judge": ONE if "models" in kept else None}}])
    assert next(usage_problems(kept, told)).startswith(problem)


def test_it_is_said_in_a_line() -> None:
    assert usage_in_words({**ONE, "cost": "0.25", "models": {"judge": ONE}}) == (
        "1 model calls, 3 tokens read and 2 written (reported), cost 0.25; "
        "judge: 1 model calls, 3 tokens read and 2 written (reported)"
    )
    only = {"prompt_tokens": 0, "completion_tokens": 0, "model_calls": 0, "source": "reported"}
    assert usage_in_words({**only, "models": {"judge": ONE}}).startswith("judge: ")
