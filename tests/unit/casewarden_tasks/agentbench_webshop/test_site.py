"""The shop's pages, and that no click leaves it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from casewarden_tasks.agentbench_webshop.own import own_catalogue, own_goals
from casewarden_tasks.agentbench_webshop.products import Product
from casewarden_tasks.agentbench_webshop.search import Search
from casewarden_tasks.agentbench_webshop.site import Site

PRODUCTS = {
    f"B{number:02d}": Product(
        f"B{number:02d}", f"Mug {number}", "Round.", ("Red.", "Deep."), "mugs", "Kitchen", (9.5,),
        {"color": ("red", "blue"), "size": ("small",)},
    )
    for number in range(23)
}  # fmt: skip


def shop() -> Site:
    return Site("buy a mug", PRODUCTS, lambda words: [asin for asin in PRODUCTS if words == "mug"])


def at_item() -> Site:
    site = shop()
    site.search("mug")
    site.click("B03")
    return site


def test_the_first_page_has_a_search_bar_and_nothing_else() -> None:
    site = shop()
    assert site.text() == "WebShop [SEP] Instruction: [SEP] buy a mug [SEP] Search"
    assert (site.has_search_bar, site.clickables) == (True, ["search"])
    assert not site.click("search")
    assert not site.click("buy now")


def test_results_come_ten_a_page_with_the_ways_to_the_others() -> None:
    site = shop()
    site.search("mug")
    assert "Page 1 (Total results: 23) [SEP] Next > [SEP] B00 [SEP] Mug 0 [SEP] $9.5" in site.text()
    assert site.clickables == ["back to search", "next >", *(f"b{number:02d}" for number in range(10))]
    assert site.click("next >")
    assert site.click("Next >")
    assert site.clickables == ["back to search", "< prev", "b20", "b21", "b22"]
    assert not site.click("next >")
    assert site.click("< prev")
    assert "Page 2" in site.text()


def test_a_search_that_finds_nothing_shows_an_empty_page() -> None:
    site = shop()
    assert site.search("shoes")
    assert site.text().endswith("Back to Search [SEP] Page 1 (Total results: 0)")
    assert site.clickables == ["back to search"]


def test_an_item_shows_its_options_price_and_parts() -> None:
    site = at_item()
    assert site.text() == (
        "Instruction: [SEP] buy a mug [SEP] Back to Search [SEP] < Prev [SEP] color [SEP] red [SEP] blue [SEP] size "
        "[SEP] small [SEP] Mug 3 [SEP] Price: $9.5 [SEP] Rating: N.A. [SEP] Description [SEP] Features [SEP] Reviews "
        "[SEP] Buy Now"
    )
    assert site.clickables == [
        "back to search", "< prev", "description", "features", "reviews", "buy now", "red", "blue", "small",
    ]  # fmt: skip
    assert not site.search("mug")


def test_the_parts_of_an_item_lead_back_to_it_and_keep_what_was_chosen() -> None:
    site = at_item()
    site.click("blue")
    site.click("features")
    assert site.text().endswith("< Prev [SEP] Red. [SEP] Deep.")
    assert site.clickables == ["back to search", "< prev"]
    site.click("< prev")
    site.click("buy now")
    assert site.purchase is not None
    assert (site.purchase.product.asin, site.purchase.chosen) == ("B03", {"color": "blue"})


def test_of_an_option_the_last_value_counts_and_leaving_the_item_forgets_it() -> None:
    site = at_item()
    for what in ("red", "blue", "small"):
        assert site.click(what)
    site.click("buy now")
    assert site.purchase is not None
    assert site.purchase.chosen == {"color": "blue", "size": "small"}

    again = at_item()
    for what in ("red", "< prev", "b03", "buy now"):
        assert again.click(what)
    assert again.purchase is not None
    assert again.purchase.chosen == {}


@given(st.lists(st.sampled_from(["search", "back to search", "next >", "< prev", "b03", "description", "red", "x"])))
def test_whatever_is_clicked_the_shop_shows_a_page_and_only_buy_now_buys(clicks: list[str]) -> None:
    site = shop()
    for what in clicks:
        offered = site.clickables
        moved = site.search("mug") if what == "search" else site.click(what)
        assert what == "search" or not moved or what in offered
        assert site.text().count("buy a mug") == 1
    assert site.purchase is None


def test_search_finds_a_goal_s_product_by_its_title_and_the_same_again() -> None:
    products = own_catalogue().products
    one, other = Search(products), Search(products)
    for goal in own_goals():
        found = one.find(goal.title)
        assert goal.asin in found[:10]
        assert found == other.find(goal.title)
        assert len(found) <= 50


def test_search_knows_word_forms_and_finds_nothing_for_words_that_nobody_says() -> None:
    search = Search(own_catalogue().products)
    assert search.find("coffee mugs") == search.find("Coffee MUG!")
    assert search.find("zzz") == []
    assert search.find("") == []
