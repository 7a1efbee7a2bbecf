"""The pack's own shop: large enough, with look-alikes, and every goal can be told from them."""

from __future__ import annotations

from rapidfuzz import fuzz

from casewarden_tasks.agentbench_webshop.own import own_catalogue, own_goals
from casewarden_tasks.agentbench_webshop.reward import reward


def test_it_has_at_least_500_products_of_several_categories_and_20_goals() -> None:
    products = own_catalogue().products.values()
    assert len(products) >= 500
    assert len({product.category.split(" › ")[0] for product in products}) >= 5
    assert len(own_goals()) >= 20
    assert len({goal.instruction for goal in own_goals()}) == len(own_goals())


def test_every_goal_has_its_product_and_look_alikes_that_lack_one_thing_each() -> None:
    for goal in own_goals():
        product = own_catalogue().products[goal.asin]
        assert reward(product.to_json(), goal.options, goal).total == 1
        number = int(goal.asin[4:])
        plain, dear, narrow = (
            own_catalogue().products[f"{goal.asin[:4]}{100 + number * 10 + copy:06d}"] for copy in range(3)
        )
        missed = reward(plain.to_json(), goal.options, goal)
        assert (missed.attributes, missed.kind, missed.price) == (len(goal.attributes) - 1, 1, True)
        assert not reward(dear.to_json(), goal.options, goal).price
        assert not set(goal.options) & {value for values in narrow.options.values() for value in values}


def test_no_other_value_of_an_asked_option_counts_as_it() -> None:
    for goal in own_goals():
        for values in own_catalogue().products[goal.asin].options.values():
            for value in values:
                alike = [one for one in goal.options if fuzz.token_set_ratio(value, one) > 85]
                assert alike in ([], [value])
