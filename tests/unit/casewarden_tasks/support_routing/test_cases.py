"""The cases of support-routing are those of the peer whose scores they must reproduce."""

from __future__ import annotations

import dataclasses

import evalarc.support
from hypothesis import example, given
from hypothesis import strategies as st

from casewarden_sdk.canonical import canonical
from casewarden_tasks.support_routing.cases import CATEGORIES, DIMENSIONS, generate


@given(st.integers())
@example(17)
@example(41)
@example(97)
@example(0)
@example(-1)
def test_the_cases_of_any_seed_equal_the_peers_in_content_and_order(seed: int) -> None:
    ours = [canonical(dict(case.content)) for case in generate(seed)]
    assert ours == [canonical(dataclasses.asdict(case)) for case in evalarc.support.generate_cases(seed)]


@given(st.integers())
def test_every_case_checks_all_five_dimensions_and_has_one_ticket_to_leave_alone(seed: int) -> None:
    for case in generate(seed):
        assert case.dimensions == DIMENSIONS
        target, bystander = case.content["initial"]
        assert (target, bystander[0]) == (case.content["target"], "U")
        assert sorted(case.content["routing_rules"]) == sorted(CATEGORIES)
        assert len(set(case.content["routing_rules"].values())) == len(CATEGORIES)
