"""The reward of a purchase."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_tasks.agentbench_webshop.goals import Goal
from casewarden_tasks.agentbench_webshop.reward import nouns, reward

GOAL = Goal(
    asin="A0",
    instruction="",
    title="Larkfield Coffee Mug, Stackable",
    query="coffee mugs",
    category="Home & Kitchen › Kitchen & Dining › Mugs",
    attributes=("stackable", "dishwasher safe"),
    options=("navy", "one pint"),
    price_upper=20.0,
)


def product(**fields: Any) -> dict[str, Any]:
    return {
        "title": "Larkfield Coffee Mug, Stackable",
        "description": "A mug that is dishwasher safe.",
        "features": [],
        "query": "coffee mugs",
        "category": "Home & Kitchen › Kitchen & Dining › Mugs",
        "price": 20.0,
        "attributes": ["stackable"],
        **fields,
    }


CHOSEN = ("navy", "one pint")


def test_what_was_asked_for_has_the_reward_1() -> None:
    assert reward(product(), CHOSEN, GOAL).total == 1


@pytest.mark.parametrize(
    ("bought", "chosen", "total"),
    [
        (product(price=20.01), CHOSEN, 4 / 5),
        (product(), (), 3 / 5),
        (product(), ("navy",), 4 / 5),
        (product(), ("navy stripes", "one pint"), 1),
        (product(), ("dark navy stripes", "one pint"), 4 / 5),  # of the list's words "dark" is the first one in it
        (product(description="", attributes=[], title="Larkfield Coffee Mug"), CHOSEN, 3 / 5),
        (product(query="cups", title="Northgate Tumbler, Stackable"), CHOSEN, 0.0),
    ],
)  # fmt: skip
def test_every_part_counts_once(bought: dict[str, Any], chosen: tuple[str, ...], total: float) -> None:
    assert reward(bought, chosen, GOAL).total == pytest.approx(total)


@pytest.mark.parametrize(
    ("title", "query", "category", "kind"),
    [
        ("Larkfield Coffee Mug", "x", "y", 1.0),  # over a fifth of the nouns
        ("Northgate Tumbler", "coffee mugs", GOAL.category, 0.0),  # none of the nouns
    ],
)
def test_the_sort_of_thing_is_told_by_query_categories_and_nouns(
    title: str, query: str, category: str, kind: float
) -> None:
    assert reward(product(title=title, query=query, category=category), CHOSEN, GOAL).kind == kind


@pytest.mark.parametrize(
    ("shared", "query", "category", "kind"),
    [(1, "other", "Garden", 0.1), (2, "other", "Garden", 0.5), (2, "wanted", "Garden", 1.0),
     (2, "other", "Pets › Dogs › Beds", 1.0), (3, "other", "Garden", 1.0)],
)  # fmt: skip
def test_few_shared_nouns_need_the_query_or_two_categories(shared: int, query: str, category: str, kind: float) -> None:
    words = ["table", "chair", "lamp", "clock", "towel", "pillow", "blanket", "carpet", "mirror", "window", "curtain"]
    goal = Goal("A0", "", " ".join(words), "wanted", "Pets › Dogs › Toys", (), ())
    assert len(nouns(goal.title)) == len(words)
    bought = product(title=" ".join(words[:shared]), query=query, category=category)
    assert reward(bought, (), goal).kind == kind


def test_colours_are_compared_by_their_first_word_of_the_list() -> None:
    goal = Goal("A0", "", GOAL.title, GOAL.query, GOAL.category, (), ("blue",))
    assert reward(product(), ("sky blue with dots",), goal).options == 1
    assert reward(product(), ("red",), goal).options == 0


def test_nouns_are_words_for_things_and_names() -> None:
    assert nouns("A very soft towel and two large pillows") == {"towel", "pillows"}


@given(
    st.floats(0, 50), st.lists(st.sampled_from(["navy", "one pint", "red", ""])),
    st.lists(st.sampled_from(["stackable", "heavy"])), st.text(max_size=30),
)  # fmt: skip
def test_a_reward_is_from_0_to_1_and_1_only_with_all_parts(
    price: float, chosen: list[str], attributes: list[str], title: str
) -> None:
    found = reward(product(price=price, attributes=attributes, title=title), chosen, GOAL)
    assert 0 <= found.total <= 1
    whole = found.kind == 1 and found.price and found.attributes == 2 and found.options == 2
    assert (found.total == 1) == whole
