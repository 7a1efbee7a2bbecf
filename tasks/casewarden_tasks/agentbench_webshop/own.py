"""The shop that comes with the pack: products and goals made for it, the same in every process.

Products of one kind differ in few words, so that the right one has look-alikes: one without the asked-for trait, one
over the price, one without the asked-for option.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

from .goals import Goal
from .products import Catalogue, Product

__all__ = ["own_catalogue", "own_goals"]

_SEED: Final = "the shop of agentbench-webshop"
_OF_A_KIND: Final = 40
_GOALS_OF_A_KIND: Final = 2


class _Kind(NamedTuple):
    noun: str
    category: str
    traits: tuple[str, ...]
    options: dict[str, tuple[str, ...]]
    dearest: int


_MAKERS: Final = (
    "Alderbrook", "Brightwater", "Cobalt Lane", "Dunmore", "Eastcliff", "Fernhill", "Gatewell", "Harrowby", "Inverlea",
    "Juniper Row", "Kestrel Bay", "Larkfield", "Marlstone", "Northgate", "Oakhurst", "Pinemoor", "Quarry Hill",
    "Ravenscar", "Stonebridge", "Thornbury",
)  # fmt: skip
_COLOURS: Final = ("black", "white", "red", "navy", "green", "yellow", "purple", "orange", "pink", "teal")
_SIZES: Final = ("small", "medium", "large")
_KINDS: Final = (
    _Kind("coffee mug", "Home & Kitchen › Kitchen & Dining › Cups & Mugs",
          ("dishwasher safe", "double walled", "hand glazed", "spill proof", "stackable", "microwave safe"),
          {"color": _COLOURS, "capacity": ("eleven ounces", "half a litre", "one pint")}, 35),
    _Kind("desk lamp", "Home & Kitchen › Lighting › Table Lamps",
          ("dimmable", "swing arm", "flicker free", "touch controlled", "battery powered", "energy saving"),
          {"color": _COLOURS, "plug": ("european plug", "british style", "us socket")}, 90),
    _Kind("rain jacket", "Clothing, Shoes & Jewelry › Women › Coats & Jackets",
          ("machine washable", "windproof", "hooded", "packable", "seam sealed", "fleece lined"),
          {"color": _COLOURS, "size": _SIZES}, 120),
    _Kind("running shoes", "Clothing, Shoes & Jewelry › Men › Athletic Shoes",
          ("wide fit", "arch support", "slip resistant", "breathable mesh", "quick lacing", "vegan leather"),
          {"color": _COLOURS, "size": ("seven", "eight and a half", "ten", "twelve")}, 150),
    _Kind("face cream", "Beauty & Personal Care › Skin Care › Moisturizers",
          ("fragrance free", "cruelty free", "paraben free", "anti aging", "dermatologist tested", "oil control"),
          {"scent": ("unscented", "lavender", "green tea", "citrus"), "jar": ("travel jar", "family pot")}, 45),
    _Kind("granola bars", "Grocery & Gourmet Food › Snack Foods › Bars",
          ("gluten free", "low sugar", "high protein", "non gmo", "nut free", "kosher certified"),
          {"flavor": ("dark chocolate", "peanut butter", "blueberry", "maple pecan"),
           "pack": ("box of six", "dozen bars", "single bar")}, 40),
    _Kind("bluetooth speaker", "Electronics › Audio › Portable Speakers",
          ("waterproof", "hands free", "long lasting battery", "stereo pairing", "dust proof", "fast charging"),
          {"color": _COLOURS}, 140),
    _Kind("laptop sleeve", "Electronics › Computers & Accessories › Laptop Bags",
          ("shock absorbing", "water repellent", "extra slim", "soft interior", "with handle", "recycled fabric"),
          {"color": _COLOURS, "fits": ("thirteen inch", "fifteen inch", "tablets")}, 60),
    _Kind("bath towel", "Home & Kitchen › Bath › Towels",
          ("quick drying", "organic cotton", "extra thick", "fade resistant", "hotel quality", "lint free"),
          {"color": _COLOURS, "set": ("pair", "family set", "single")}, 55),
    _Kind("office chair", "Office Products › Furniture › Desk Chairs",
          ("lumbar support", "height adjustable", "high density foam", "reclining", "easy to assemble", "mesh back"),
          {"color": _COLOURS, "arms": ("padded armrests", "no arms")}, 320),
    _Kind("wall clock", "Home & Kitchen › Home Decor › Clocks",
          ("silent movement", "glow in the dark", "solid wood", "battery operated", "moisture proof", "large digits"),
          {"color": _COLOURS, "style": ("roman numerals", "plain face")}, 70),
    _Kind("yoga mat", "Sports & Outdoors › Exercise & Fitness › Yoga",
          ("non slip", "extra long", "odor free", "tear resistant", "foldable", "natural rubber"),
          {"color": _COLOURS, "thickness": ("four millimetres", "half an inch")}, 65),
    _Kind("dog bed", "Pet Supplies › Dogs › Beds & Furniture",
          ("removable cover", "memory foam", "chew resistant", "machine washable", "orthopedic", "anti skid"),
          {"color": _COLOURS, "size": _SIZES}, 110),
)  # fmt: skip


@lru_cache(maxsize=1)
def own_catalogue() -> Catalogue:
    """Return the products."""
    return Catalogue.of(chain.from_iterable(_of_a_kind(number) for number in range(len(_KINDS))))


@lru_cache(maxsize=1)
def own_goals() -> tuple[Goal, ...]:
    """Return the goals, the easy ones of every kind before its harder ones."""
    return tuple(chain.from_iterable(_goals(number) for number in range(len(_KINDS))))


def _of_a_kind(number: int) -> list[Product]:
    targets = _targets(number)
    made = targets + [copy for place, target in enumerate(targets) for copy in _look_alikes(number, place, target)]
    made += [_product(number, place) for place in range(len(made), _OF_A_KIND)]
    random.Random(f"{_SEED}: order {number}").shuffle(made)  # noqa: S311 - repeatable draws are the point
    return made


def _targets(number: int) -> list[Product]:
    return [_product(number, place) for place in range(_GOALS_OF_A_KIND)]


def _product(number: int, place: int) -> Product:
    kind = _KINDS[number]
    draw = random.Random(f"{_SEED}: {number}.{place}")  # noqa: S311 - repeatable draws are the point
    traits = tuple(draw.sample(kind.traits, 3))
    maker = _MAKERS[(place * 7 + number) % len(_MAKERS)]
    options = {name: tuple(draw.sample(values, max(2, len(values) * 2 // 3))) for name, values in kind.options.items()}
    return Product(
        asin=f"CW{number:02d}{place:06d}",
        title=f"{maker} {kind.noun.title()}, {traits[0].title()}, {draw.choice('ABCDEFGH')}{draw.randint(10, 99)}",
        description=f"A {kind.noun} by {maker} that is {traits[1]}.",
        features=(f"{traits[0].capitalize()}.", f"Made to be {traits[2]}.", "Ships within two days."),
        query=f"{kind.noun}s".replace("ss", "s"),
        category=kind.category,
        prices=(round(draw.uniform(kind.dearest / 4, kind.dearest), 2),),
        options=options,
        attributes=traits,
    )


def _look_alikes(number: int, place: int, target: Product) -> list[Product]:
    """Return copies of a goal's product that lack one thing each: a trait, the price, an option."""
    kind, goal = _KINDS[number], _goal(number, place, target)
    other = next(trait for trait in kind.traits if trait not in target.attributes)
    wanted = goal.attributes[-1]

    def without(text: str) -> str:
        return text.replace(wanted, other).replace(wanted.title(), other.title()).replace(
            wanted.capitalize(), other.capitalize()
        )  # fmt: skip

    asins = [f"CW{number:02d}{100 + place * 10 + copy:06d}" for copy in range(3)]
    plain = replace(
        target,
        asin=asins[0],
        title=without(target.title),
        description=without(target.description),
        features=tuple(without(line) for line in target.features),
        attributes=tuple(other if trait == wanted else trait for trait in target.attributes),
    )
    dear = replace(target, asin=asins[1], prices=(round(goal.price_upper + 4.5, 2),))
    narrow = replace(
        target,
        asin=asins[2],
        options={name: tuple(v for v in values if v not in goal.options) for name, values in target.options.items()},
    )
    return [plain, dear, narrow]


def _goals(number: int) -> list[Goal]:
    return [_goal(number, place, target) for place, target in enumerate(_targets(number))]


def _goal(number: int, place: int, target: Product) -> Goal:
    """Ask for a product: the first of a kind by one trait and one option, the second by two and by all options."""
    kind = _KINDS[number]
    draw = random.Random(f"{_SEED}: goal {number}.{place}")  # noqa: S311 - repeatable draws are the point
    traits = tuple(draw.sample(target.attributes, 1 + place))
    names = list(target.options)[: 1 if place == 0 else None]
    options = tuple(draw.choice(target.options[name]) for name in names)
    limit = float(int(target.prices[0] / 10) + 1 + draw.randint(0, 1)) * 10
    asked = f"i want a {kind.noun} that is {' and '.join(traits)}, with {' and '.join(options)}"
    return Goal(
        asin=target.asin,
        instruction=f"{asked}, and price lower than {limit:.2f} dollars",
        title=target.title,
        query=target.query,
        category=target.category,
        attributes=traits,
        options=options,
        price_upper=limit,
    )
