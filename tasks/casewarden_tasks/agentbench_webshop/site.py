"""The shop as an agent sees it: pages as text, what can be clicked, and what a click leads to. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from .products import Product

__all__ = ["SEP", "Purchase", "Site"]

SEP: Final = " [SEP] "
_PAGE: Final = 10
_HOME, _RESULTS, _ITEM, _PART = "home", "results", "item", "part"
_PARTS: Final = ("description", "features", "reviews")


@dataclass(frozen=True)
class Purchase:
    """What was bought, with the value that was last chosen of every option."""

    product: Product
    chosen: Mapping[str, str]


@dataclass
class Site:
    """One visit. Nothing of it is shared with another."""

    instruction: str
    products: Mapping[str, Product]
    find: Callable[[str], Sequence[str]]
    purchase: Purchase | None = None
    _page: str = _HOME
    _part: str = ""
    _number: int = 0
    _found: Sequence[str] = ()
    _asin: str = ""
    _chosen: dict[str, str] = field(default_factory=dict)

    @property
    def has_search_bar(self) -> bool:
        """Whether words can be searched for here."""
        return self._page == _HOME

    @property
    def clickables(self) -> list[str]:
        """What can be clicked here: buttons, links, option values."""
        if self._page == _HOME:
            return ["search"]
        if self._page == _RESULTS:
            pages = ["< prev"] * (self._number > 0) + ["next >"] * (self._last > self._number)
            return ["back to search", *pages, *(asin.lower() for asin in self._shown)]
        if self._page == _PART:
            return ["back to search", "< prev"]
        values = [value for values in self._product.options.values() for value in values]
        return list(dict.fromkeys(["back to search", "< prev", *_PARTS, "buy now", *values]))

    def text(self) -> str:
        """Return the visible texts of the page."""
        if self._page == _HOME:
            return SEP.join(("WebShop", "Instruction:", self.instruction, "Search"))
        head = ["Instruction:", self.instruction, "Back to Search"]
        if self._page == _RESULTS:
            pages = ["< Prev"] * (self._number > 0) + ["Next >"] * (self._last > self._number)
            head += [f"Page {self._number + 1} (Total results: {len(self._found)})", *pages]
            for asin in self._shown:
                head += [asin, self.products[asin].title, self.products[asin].tag]
            return SEP.join(head)
        head.append("< Prev")
        product = self._product
        if self._page == _PART:
            features = list(product.features)
            told = {"description": [product.description], "features": features, "reviews": []}[self._part]
            return SEP.join([*head, *(line for line in told if line)])
        for name, values in product.options.items():
            head += [name, *values]
        price = f"Price: {product.tag}"
        return SEP.join([*head, product.title, price, "Rating: N.A.", "Description", "Features", "Reviews", "Buy Now"])

    def search(self, keywords: str) -> bool:
        """Search, where there is a bar for it; say whether anything happened."""
        if not self.has_search_bar or not keywords.strip():
            return False
        self._page, self._number, self._found = _RESULTS, 0, tuple(self.find(keywords))
        return True

    def click(self, what: str) -> bool:
        """Click what is there; say whether anything happened."""
        what = what.strip().lower()
        if what not in self.clickables or what == "search":
            return False
        if what == "back to search":
            self._page, self._chosen = _HOME, {}
        elif self._page == _RESULTS:
            self._click_result(what)
        elif self._page == _PART:
            self._page = _ITEM
        else:
            self._click_item(what)
        return True

    @property
    def _product(self) -> Product:
        return self.products[self._asin]

    @property
    def _last(self) -> int:
        return max(0, (len(self._found) - 1) // _PAGE)

    @property
    def _shown(self) -> Sequence[str]:
        return self._found[self._number * _PAGE : (self._number + 1) * _PAGE]

    def _click_result(self, what: str) -> None:
        if what in ("next >", "< prev"):
            self._number += 1 if what == "next >" else -1
            return
        self._asin = next(asin for asin in self._shown if asin.lower() == what)
        self._page, self._chosen = _ITEM, {}

    def _click_item(self, what: str) -> None:
        if what == "< prev":
            self._page, self._chosen = _RESULTS, {}
        elif what in _PARTS:
            self._page, self._part = _PART, what
        elif what == "buy now":
            self.purchase = Purchase(self._product, dict(self._chosen))
        else:
            name = next(name for name, values in self._product.options.items() if what in values)
            self._chosen[name] = what
