"""Goals are drawn from their own seeds, and numbered as AgentBench numbers them."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_sdk.errors import ContractError
from casewarden_tasks.agentbench_webshop.goals import NO_LIMIT, Goal, order, price_limit, read_goals
from casewarden_tasks.agentbench_webshop.products import Catalogue, Product

CATALOGUE = Catalogue.of(
    Product(f"A{number}", f"Thing {number}", "", (), "things", "Things › Plain", (price,))
    for number, price in enumerate((5.0, 15.0, 985.0))
)


def instruction(**fields: Any) -> dict[str, Any]:
    return {"instruction": "find a thing.", "instruction_attributes": ["plain"], "instruction_options": [], **fields}


def goals(instructions: Any, compat: bool = False) -> list[Goal]:
    return read_goals(json.dumps(instructions), CATALOGUE, "human.json", compat)


def test_an_instruction_becomes_a_goal_that_says_its_limit() -> None:
    (goal,) = goals({"A0": [instruction(instruction_options={"color": "red"})]})

    assert goal.instruction == f"find a thing, and price lower than {goal.price_upper:.2f} dollars"
    assert (goal.asin, goal.title, goal.query, goal.attributes, goal.options) == (
        "A0", "Thing 0", "things", ("plain",), ("red",),
    )  # fmt: skip
    assert Goal.from_json(goal.to_json()) == goal


def test_a_product_dearer_than_all_limits_but_one_has_none() -> None:
    (goal,) = goals({"A2": [instruction()]})
    assert goal.price_upper == NO_LIMIT
    assert goal.instruction == "find a thing"


def test_instructions_without_attributes_and_those_of_unknown_products_are_no_goals() -> None:
    assert [
        goal.asin for goal in goals({"A1": [instruction(instruction_attributes=[]), instruction()], "X": [{}]})
    ] == ["A1"]


def test_a_goal_s_limit_does_not_depend_on_what_else_there_is_and_does_in_v0_2() -> None:
    alone = goals({"A1": [instruction()]})[0].price_upper
    among = {"A0": [instruction()] * 30, "A1": [instruction()]}
    assert goals(among)[-1].price_upper == alone
    drawn = {
        goals({"A0": [instruction()] * count, "A1": [instruction()]}, compat=True)[-1].price_upper for count in range(9)
    }
    assert len(drawn) > 1


@given(st.floats(0.01, 1200), st.integers())
def test_a_limit_is_above_the_price_and_one_of_the_next_four_steps(price: float, seed: int) -> None:
    limit = price_limit(price, random.Random(seed))
    assert limit > price
    assert limit == NO_LIMIT or limit - price <= 40


def test_the_order_is_that_of_the_seed_233_and_loses_nothing() -> None:
    numbered = [Goal(str(number), "", "", "", "", ()) for number in range(300)]
    there = order(numbered)
    assert sorted(there, key=lambda goal: int(goal.asin)) == numbered
    expected = list(range(300))
    random.Random(233).shuffle(expected)
    assert [int(goal.asin) for goal in there] == expected


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"X": [{"instruction_attributes": ["plain"]}]}'])
def test_a_file_without_a_goal_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(ContractError, match=r"spec\.task\.params\.dataset: human\.json "):
        read_goals(text, CATALOGUE, "human.json", False)
