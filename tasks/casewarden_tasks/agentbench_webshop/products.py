"""Products of a shop, and how they are read from WebShop's own files.

WebShop's files name fields in the way of the site that they came from; what a row needs and has not makes it *broken*:
it is left out of the catalogue and named.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from casewarden_sdk.errors import ContractError

__all__ = ["Broken", "Catalogue", "Product", "attributes_of", "read_products"]

_UNKNOWN_PRICE: Final = 100.0
_AMOUNT: Final = re.compile(r"[^\d.]")


@dataclass(frozen=True)
class Product:
    """What is sold. ``prices`` are one amount, or the two ends of a range; ``options`` map a name to its values."""

    asin: str
    title: str
    description: str
    features: tuple[str, ...]
    query: str
    category: str
    prices: tuple[float, ...]
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    attributes: tuple[str, ...] = ()

    @property
    def tag(self) -> str:
        """The price as the site shows it."""
        return " to ".join(f"${amount}" for amount in self.prices)

    @property
    def price(self) -> float:
        """The price that counts; that of a range is drawn from the product's own seed, the same in every process."""
        if len(self.prices) == 1:
            return self.prices[0]
        return random.Random(f"price of {self.asin}").uniform(*self.prices)  # noqa: S311 - repeatable draws are the point

    def to_json(self) -> dict[str, Any]:
        """Return what a grader needs of the product."""
        return {
            "asin": self.asin,
            "title": self.title,
            "description": self.description,
            "features": list(self.features),
            "query": self.query,
            "category": self.category,
            "price": self.price,
            "attributes": list(self.attributes),
        }


@dataclass(frozen=True)
class Broken:
    """A row that is no product."""

    row: int
    asin: str
    why: str

    def __str__(self) -> str:
        return f"row {self.row} ({self.asin or 'without an asin'}): {self.why}"


@dataclass(frozen=True)
class Catalogue:
    """The products by asin, in the order of their file, and the rows that are none."""

    products: Mapping[str, Product]
    broken: tuple[Broken, ...] = ()

    @classmethod
    def of(cls, products: Iterable[Product], broken: Iterable[Broken] = ()) -> Catalogue:
        """Make one; of equal asins the first counts."""
        found: dict[str, Product] = {}
        for product in products:
            found.setdefault(product.asin, product)
        return cls(found, tuple(broken))


def read_products(text: str, attributes: Mapping[str, Any], where: str) -> Catalogue:
    """Read WebShop's list of products, with the attributes that its second file gives to each asin.

    ``ContractError`` where the text is no JSON list; a row that cannot be sold is among ``broken``.
    """
    products, broken = [], []
    for number, row in enumerate(_rows(text, where)):
        asin = str(row.get("asin") or "") if isinstance(row, Mapping) else ""
        try:
            products.append(_product(row, attributes.get(asin) or {}))
        except (KeyError, TypeError, ValueError) as error:
            why = f"it has no {error.args[0]!r}" if isinstance(error, KeyError) else str(error)
            broken.append(Broken(number, asin, why))
    return Catalogue.of(products, broken)


def attributes_of(text: str, where: str) -> Mapping[str, Any]:
    """Read WebShop's second file: what is known of each asin."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ContractError(f"spec.task.params.dataset: {where} is no JSON: {error}") from None
    if not isinstance(found, Mapping):
        raise ContractError(f"spec.task.params.dataset: {where} is no object by asin")
    return found


def _rows(text: str, where: str) -> Sequence[Any]:
    try:
        rows = json.loads(text)
    except ValueError as error:
        raise ContractError(f"spec.task.params.dataset: {where} is no JSON: {error}") from None
    if not isinstance(rows, list) or not rows:
        raise ContractError(f"spec.task.params.dataset: {where} is no list of products, or an empty one")
    return rows


def _product(row: Any, attributes: Mapping[str, Any]) -> Product:
    if not isinstance(row, Mapping):
        raise ValueError("it is no object")
    asin, title = row["asin"], row["name"]
    if not isinstance(asin, str) or not re.fullmatch(r"[A-Za-z0-9]{1,10}", asin):
        raise ValueError(f"asin is {asin!r}, which is not 1 to 10 letters and digits")
    if not isinstance(title, str) or not title.strip():
        raise ValueError(f"name is {title!r}, which is no text")
    features = row.get("small_description") or ()
    return Product(
        asin=asin,
        title=title,
        description=str(row.get("full_description") or ""),
        features=(features,) if isinstance(features, str) else tuple(str(line) for line in features),
        query=str(row.get("query") or "").lower(),
        category=str(row.get("product_category") or ""),
        prices=_prices(row.get("pricing")),
        options=_options(row.get("customization_options") or {}),
        attributes=tuple(str(name) for name in attributes.get("attributes") or ()),
    )


def _prices(text: Any) -> tuple[float, ...]:
    if not text:
        return (_UNKNOWN_PRICE,)
    if not isinstance(text, str):
        raise ValueError(f"pricing is {text!r}, which is no text")
    try:
        found = tuple(float(_AMOUNT.sub("", part)) for part in text.split("$")[1:3])
    except ValueError:
        raise ValueError(f"pricing is {text!r}, where an amount is no number") from None
    if not found:
        raise ValueError(f"pricing is {text!r}, which has no amount in dollars")
    return found


def _options(given: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(given, Mapping):
        raise ValueError("customization_options is no object")
    found = {}
    for name, values in given.items():
        if values:
            found[str(name).lower()] = tuple(str(one["value"]).strip().replace("/", " | ").lower() for one in values)
    return found
