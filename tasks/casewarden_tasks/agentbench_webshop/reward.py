"""WebShop's reward of a purchase, from 0 to 1: pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from HanTa.HanoverTagger import HanoverTagger
from rapidfuzz import fuzz, utils

from .goals import Goal

__all__ = ["Reward", "nouns", "reward"]

_ALIKE: Final = 85.0
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'-]*")
# BNC's tags as the tagger gives them: common nouns of any number, and proper ones.
_NOUNS: Final = ("NN", "NP")
_COLOURS: Final = (
    "alabaster", "apricot", "aqua", "ash", "asphalt", "azure", "banana", "beige", "black", "blue", "blush", "bordeaux",
    "bronze", "brown", "burgundy", "camel", "camo", "caramel", "champagne", "charcoal", "cheetah", "chestnut",
    "chocolate", "christmas", "coffee", "cognac", "copper", "coral", "cranberry", "cream", "crystal", "dark", "denim",
    "eggplant", "elephant", "espresso", "fuchsia", "gold", "granite", "grape", "graphite", "grass", "gray", "green",
    "grey", "heather", "indigo", "ivory", "ivy", "khaki", "lavender", "lemon", "leopard", "light", "lilac", "lime",
    "magenta", "maroon", "mauve", "merlot", "midnight", "mint", "mocha", "multicolor", "mushroom", "mustard",
    "natural", "navy", "nude", "olive", "orange", "peach", "pewter", "pink", "plum", "purple", "rainbow", "red",
    "rose", "royal", "rust", "sand", "sapphire", "seashell", "silver", "skull", "slate", "steel", "stone", "stonewash",
    "sunflower", "tan", "taupe", "teal", "tiger", "turquoise", "violet", "walnut", "wheat", "white", "wine", "yellow",
)  # fmt: skip


@dataclass(frozen=True)
class Reward:
    """A reward and its parts: ``kind`` weighs whether it is that sort of thing, the others count what was asked for."""

    total: float
    kind: float
    attributes: int
    attributes_of: int
    options: int
    options_of: int
    price: bool

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return dict(self.__dict__)


def reward(product: Mapping[str, Any], chosen: Sequence[str], goal: Goal) -> Reward:
    """Judge the purchase of ``product`` (``Product.to_json``) with the option values ``chosen``."""
    kind = _kind(product, goal)
    attributes = sum(_has(product, name) for name in goal.attributes)
    options = _matched(chosen, goal.options)
    price = product["price"] <= goal.price_upper
    parts = len(goal.attributes) + len(goal.options) + 1
    total = kind * (attributes + options + price) / parts
    return Reward(total, kind, attributes, len(goal.attributes), options, len(goal.options), price)


def nouns(title: str) -> frozenset[str]:
    """Return the nouns of a title, in lower case."""
    words = [word.lower() for word in _WORD.findall(title)]
    return frozenset(word for word, _, tag in _tagger().tag_sent(words, taglevel=1) if tag.startswith(_NOUNS))


def _kind(product: Mapping[str, Any], goal: Goal) -> float:
    shared = {part.strip() for part in product["category"].split("›")} & {
        part.strip() for part in goal.category.split("›")
    }
    wanted = nouns(goal.title)
    overlap = len(wanted & nouns(product["title"])) / len(wanted) if wanted else 0.2
    if overlap == 0:
        return 0.0
    if overlap < 0.1:
        return 0.1
    same = (product["query"] == goal.query) or len(shared - {""}) >= 2 or overlap > 0.2
    return 1.0 if same else 0.5


def _has(product: Mapping[str, Any], wanted: str) -> bool:
    if any(_alike(name, wanted) for name in product["attributes"]):
        return True
    return any(wanted in text.lower() for text in (product["title"], *product["features"], product["description"]))


def _matched(chosen: Sequence[str], wanted: Sequence[str]) -> int:
    found = [_plain_colour(value) for value in chosen]
    return sum(any(_alike(value, _plain_colour(one)) for value in found) for one in wanted)


def _alike(one: str, other: str) -> bool:
    return bool(fuzz.token_set_ratio(one, other, processor=utils.default_process) > _ALIKE)


def _plain_colour(text: str) -> str:
    """Replace a text by the first colour that is a word of the list and stands in it."""
    return next((colour for colour in _COLOURS if colour in text), text)


@lru_cache(maxsize=1)
def _tagger() -> HanoverTagger:
    return HanoverTagger("morphmodel_en.pgz")
