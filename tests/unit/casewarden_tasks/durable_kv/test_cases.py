"""The cases of durable-kv are those of the peer whose scores they must reproduce."""

from __future__ import annotations

import dataclasses

import evalarc.task
from hypothesis import example, given
from hypothesis import strategies as st

from casewarden_sdk.canonical import canonical
from casewarden_tasks.durable_kv.cases import generate


@given(st.integers())
@example(17)
@example(41)
@example(97)
@example(0)
@example(-1)
def test_the_cases_of_any_seed_equal_the_peers_in_content_and_order(seed: int) -> None:
    ours = [canonical(dict(case.content)) for case in generate(seed)]
    assert ours == [canonical(dataclasses.asdict(case)) for case in evalarc.task.generate_cases(seed)]


@given(st.integers(), st.integers())
def test_seeds_vary_the_content_and_never_the_families(one: int, other: int) -> None:
    left, right = generate(one), generate(other)
    assert [(case.id, case.dimensions) for case in left] == [(case.id, case.dimensions) for case in right]
    # Python seeds its generator with the absolute value.
    assert ([case.sha256 for case in left] == [case.sha256 for case in right]) == (abs(one) == abs(other))


@given(st.integers())
def test_every_request_fits_the_limit_of_a_line(seed: int) -> None:
    requests = [
        request for case in generate(seed) for session in case.content["sessions"] for request in session["requests"]
    ]
    assert max(len(canonical(request)) + 1 for request in requests) <= 8192
