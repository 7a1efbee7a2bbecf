"""WebShop's rows become products, or are named as broken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_sdk.errors import ContractError
from casewarden_tasks.agentbench_webshop.products import attributes_of, read_products


def row(**fields: Any) -> dict[str, Any]:
    return {
        "asin": "B00TEST001",
        "name": "Wool Socks",
        "small_description": ["Warm.", "Grey or brown."],
        "full_description": "Socks of wool.",
        "pricing": "$14.50",
        "query": "Hiking Socks",
        "product_category": "Clothing › Men › Socks",
        "customization_options": {"Color": [{"value": " Grey/Brown "}, {"value": "RED"}], "size": None},
        **fields,
    }


def read(*rows: Any, attributes: Any = None) -> Any:
    return read_products(json.dumps(rows), attributes or {}, "items.json")


def test_a_row_becomes_a_product_with_lower_case_options_and_the_attributes_of_the_second_file() -> None:
    catalogue = read(row(), attributes={"B00TEST001": {"attributes": ["machine washable"]}})
    product = catalogue.products["B00TEST001"]

    assert (product.title, product.query, product.tag, product.price) == ("Wool Socks", "hiking socks", "$14.5", 14.5)
    assert product.options == {"color": ("grey | brown", "red")}
    assert product.attributes == ("machine washable",)
    assert product.features == ("Warm.", "Grey or brown.")
    assert catalogue.broken == ()


@pytest.mark.parametrize(
    ("pricing", "prices"),
    [(None, (100.0,)), ("", (100.0,)), ("$1,299.99", (1299.99,)), ("$10.00$20.00", (10.0, 20.0))],
)
def test_prices_are_one_amount_or_a_range_and_100_where_nothing_is_known(pricing: Any, prices: Any) -> None:
    assert read(row(pricing=pricing)).products["B00TEST001"].prices == prices


def test_the_price_of_a_range_is_within_it_and_the_same_in_every_process() -> None:
    one, other = (read(row(pricing="$10.00$20.00")).products["B00TEST001"].price for _ in range(2))
    assert 10 <= one <= 20
    assert one == other


def test_of_equal_asins_the_first_counts() -> None:
    assert read(row(name="First"), row(name="Second")).products["B00TEST001"].title == "First"


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"name": ""}, "name is ''"),
        ({"name": None}, "name is None"),
        ({"asin": "too long to be one"}, "asin is 'too long to be one'"),
        ({"pricing": "free"}, "no amount in dollars"),
        ({"pricing": "$"}, "an amount is no number"),
        ({"pricing": 12}, "pricing is 12"),
        ({"customization_options": ["red"]}, "customization_options is no object"),
        ({"customization_options": {"color": [{"image": "x"}]}}, "it has no 'value'"),
    ],
)
def test_a_row_that_cannot_be_sold_is_left_out_and_named(broken: dict[str, Any], why: str) -> None:
    catalogue = read(row(), row(**{"asin": "B00TEST002", **broken}))

    assert list(catalogue.products) == ["B00TEST001"]
    (named,) = catalogue.broken
    assert named.row == 1
    assert why in str(named)


def test_a_row_that_is_no_object_and_one_without_a_field_are_named_too() -> None:
    nameless = row()
    del nameless["name"]
    assert [str(one) for one in read(row(), 7, nameless).broken] == [
        "row 1 (without an asin): it is no object",
        "row 2 (B00TEST001): it has no 'name'",
    ]


@pytest.mark.parametrize("text", ["{", "{}", "[]", "7"])
def test_a_file_that_is_no_list_of_products_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(ContractError, match=r"spec\.task\.params\.dataset: items\.json is no"):
        read_products(text, {}, "items.json")


@pytest.mark.parametrize("text", ["{", "[]"])
def test_attributes_are_an_object_by_asin(text: str) -> None:
    with pytest.raises(ContractError, match=r"spec\.task\.params\.dataset: ins\.json is no"):
        attributes_of(text, "ins.json")


@given(st.lists(st.dictionaries(st.sampled_from(list(row())), st.none() | st.text(max_size=5) | st.integers())))
def test_every_row_is_sold_named_or_a_copy_of_another(rows: list[Any]) -> None:
    if rows:
        catalogue = read(*rows)
        asins = [str(one.get("asin") or "") for one in rows]
        assert len(catalogue.products) + len(catalogue.broken) >= len(set(asins))
        assert len(catalogue.products) + len(catalogue.broken) <= len(rows)
