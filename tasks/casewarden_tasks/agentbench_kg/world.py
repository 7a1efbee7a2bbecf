"""The graph that comes with the pack: painters, paintings, museums and cities, in Freebase's shape.

Made up, and the same in every process. Every relation is there in both directions, as in Freebase; names of museums
have commas, names of some painters have brackets, and subjects have ids that start with ``g.``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

__all__ = ["ATTRIBUTES", "RELATIONS", "World", "world"]

_SEED: Final = "the graph of agentbench-kg"
RELATIONS: Final[Mapping[str, tuple[str, str, str]]] = {
    "art.painter.born_in": ("art.painter", "geo.city", "geo.city.painters_born"),
    "art.painter.style": ("art.painter", "art.style", "art.style.painters"),
    "art.painter.pupil_of": ("art.painter", "art.painter", "art.painter.pupils"),
    "art.painting.painter": ("art.painting", "art.painter", "art.painter.paintings"),
    "art.painting.museum": ("art.painting", "art.museum", "art.museum.paintings"),
    "art.painting.subject": ("art.painting", "art.subject", "art.subject.paintings"),
    "art.museum.city": ("art.museum", "geo.city", "geo.city.museums"),
    "geo.city.country": ("geo.city", "geo.country", "geo.country.cities"),
}
"""Domain, range, and the name of the same relation the other way round."""
ATTRIBUTES: Final[Mapping[str, str]] = {
    "art.painting.year": "art.painting",
    "art.painting.height_cm": "art.painting",
    "art.painter.year_of_birth": "art.painter",
    "art.museum.opened": "art.museum",
    "geo.city.population": "geo.city",
}
"""The type that has it; all are whole numbers."""
_COUNTRIES: Final = ("Ostria", "Vell", "Marrow Isles", "Kardenia")
_CITIES: Final = (
    "Aldmoor", "Brask", "Corvale", "Dunmere", "Eskil", "Fenwick Sound", "Grauburg", "Holm", "Istria Nova", "Jarle",
    "Kettering Bay", "Lunde",
)  # fmt: skip
_STYLES: Final = ("tidal realism", "night school", "chalk manner", "late geometric", "weather painting")
_SUBJECTS: Final = ("harbours", "markets", "winter roads", "orchards", "storms", "bridges")
_FIRST: Final = ("Anna", "Berta", "Caspar", "Dora", "Emil", "Frida", "Gustav", "Hedda", "Ivo", "Johanna")
_LAST: Final = ("Holm", "Brandt", "Castel", "Dahl", "Ekman", "Frisk")
_PAINTERS, _PAINTINGS = 36, 260


@dataclass
class World:
    """``names`` map ids to names; ``edges`` a thing and a relation to what it leads to, ``values`` to a number."""

    names: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    edges: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    values: dict[tuple[str, str], int] = field(default_factory=dict)

    def of_type(self, type_: str) -> list[str]:
        """Return the ids of a type, in their order."""
        return sorted(id for id, found in self.types.items() if found == type_)

    def add(self, id: str, name: str, type_: str) -> str:
        """Add a thing."""
        self.names[id], self.types[id] = name, type_
        return id

    def relate(self, left: str, relation: str, right: str) -> None:
        """Add a fact in both directions."""
        self.edges.setdefault((left, relation), set()).add(right)
        self.edges.setdefault((right, RELATIONS[relation][2]), set()).add(left)


@lru_cache(maxsize=1)
def world() -> World:
    """Make the graph."""
    draw, made = random.Random(_SEED), World()  # noqa: S311 - repeatable draws are the point
    countries = [made.add(f"m.0c{n}", name, "geo.country") for n, name in enumerate(_COUNTRIES)]
    cities = [made.add(f"m.0t{n:02d}", name, "geo.city") for n, name in enumerate(_CITIES)]
    styles = [made.add(f"m.0s{n}", name, "art.style") for n, name in enumerate(_STYLES)]
    subjects = [made.add(f"g.11{n}", name, "art.subject") for n, name in enumerate(_SUBJECTS)]
    for place, city in enumerate(cities):
        made.relate(city, "geo.city.country", countries[place % len(countries)])
        made.values[city, "geo.city.population"] = 40_000 + 1_000 * place * 7 + draw.randrange(1_000)
    museums = []
    for place, city in enumerate(cities[:8]):
        museum = made.add(f"m.0m{place}", f"Museum of Fine Arts, {made.names[city]}", "art.museum")
        made.relate(museum, "art.museum.city", city)
        made.values[museum, "art.museum.opened"] = 1800 + 11 * place + draw.randrange(10)
        museums.append(museum)
    painters = _painters(made, draw, cities, styles)
    for number in range(_PAINTINGS):
        subject = draw.choice(subjects)
        painting = made.add(f"m.0p{number:03d}", f"{made.names[subject].title()}, no. {number}", "art.painting")
        made.relate(painting, "art.painting.painter", draw.choice(painters))
        made.relate(painting, "art.painting.museum", draw.choice(museums))
        made.relate(painting, "art.painting.subject", subject)
        made.values[painting, "art.painting.year"] = 1810 + draw.randrange(110)
        made.values[painting, "art.painting.height_cm"] = 20 + draw.randrange(260)
    return made


def _painters(made: World, draw: random.Random, cities: list[str], styles: list[str]) -> list[str]:
    painters: list[str] = []
    for number in range(_PAINTERS):
        name = f"{_FIRST[number % len(_FIRST)]} {_LAST[number % len(_LAST)]}"
        if name in made.names.values():
            name = f"{name} (the Younger)"
        painter = made.add(f"m.0a{number:02d}", name, "art.painter")
        made.relate(painter, "art.painter.born_in", draw.choice(cities))
        made.relate(painter, "art.painter.style", draw.choice(styles))
        made.values[painter, "art.painter.year_of_birth"] = 1780 + 2 * number + draw.randrange(2)
        if number >= 6:
            made.relate(painter, "art.painter.pupil_of", painters[draw.randrange(number // 2)])
        painters.append(painter)
    return painters
