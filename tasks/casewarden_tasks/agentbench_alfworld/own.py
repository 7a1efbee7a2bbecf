"""The games that come with the pack: six kinds of tasks in made-up rooms, in ALFWorld's own PDDL domain.

Each is a problem whose way is known, since it was laid out for it; a test has the planner find one, too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

__all__ = ["KINDS", "OwnGame", "own_games"]

KINDS: Final = (
    "pick_and_place", "pick_clean_then_place", "pick_heat_then_place", "pick_cool_then_place", "look_at_obj",
    "pick_two_obj",
)  # fmt: skip
_SEED: Final = "the rooms of agentbench-alfworld"
_OF_A_KIND: Final = 4
_TREATED: Final = {
    "pick_clean_then_place": ("clean", "clean", "Sink", "isClean"),
    "pick_heat_then_place": ("hot", "heat", "Microwave", "isHot"),
    "pick_cool_then_place": ("cool", "cool", "Fridge", "isCool"),
}
"""The word for what is wanted, the verb, where it is done, and what is then true."""


class _Room(NamedTuple):
    """What a room may have: places that open, places that do not, and things."""

    opening: tuple[str, ...]
    open: tuple[str, ...]
    things: tuple[str, ...]


_KITCHEN: Final = _Room(
    ("Cabinet", "Drawer"),
    ("CounterTop", "DiningTable", "Shelf", "StoveBurner"),
    ("Apple", "Potato", "Tomato", "Egg", "Mug", "Cup", "Plate", "Bowl", "Pan", "Fork", "Spoon", "Bread"),
)
_BEDROOM: Final = _Room(
    ("Drawer", "Dresser"),
    ("Bed", "Desk", "Shelf", "SideTable"),
    ("Book", "Pen", "Pencil", "CellPhone", "CD", "KeyChain", "AlarmClock", "Pillow", "Watch", "RemoteControl"),
)
_FIXED: Final = ("Sink", "Microwave", "Fridge")
_BASIN: Final = "Sink_bar_basin"  # the engine calls what has a basin in its id so: sinkbasin
_CLOSED: Final = ("Cabinet", "Drawer", "Dresser", "Microwave", "Fridge")
_TYPES: Final = ("SinkType", "SinkBasinType", "MicrowaveType", "FridgeType")
_TOOLS: Final = ("KnifeType", "ButterKnifeType", "DeskLampType")


@dataclass(frozen=True)
class OwnGame:
    """A game: its ``kind``, what is to be done in words, the problem in PDDL, and commands that do it."""

    kind: str
    task: str
    problem: str
    way: tuple[str, ...]


@lru_cache(maxsize=1)
def own_games() -> tuple[OwnGame, ...]:
    """Return the games: the first of every kind, then the second, and so on; later ones have larger rooms."""
    return tuple(_game(kind, turn) for turn in range(_OF_A_KIND) for kind in KINDS)


def _game(kind: str, turn: int) -> OwnGame:
    draw = random.Random(f"{_SEED}: {kind} {turn}")  # noqa: S311 - repeatable draws are the point
    room = _BEDROOM if kind == "look_at_obj" or (kind in ("pick_and_place", "pick_two_obj") and turn % 2) else _KITCHEN
    places = [f"{name}_bar_{number}" for name in (*room.opening, *room.open) for number in range(1 + turn % 3)]
    if room is _KITCHEN:
        places += [_fixed(name) for name in _FIXED]
    thing = room.things[(KINDS.index(kind) + 3 * turn) % len(room.things)]
    count = 2 if kind == "pick_two_obj" else 1
    starts = draw.sample([place for place in places if not place.startswith(_FIXED)], count)
    goal = draw.choice(
        sorted({_kind_of(place) for place in places} - {_kind_of(start) for start in starts} - set(_FIXED))
    )
    layout = {f"{thing}_bar_{number}": start for number, start in enumerate(starts)}
    for other in draw.sample(sorted(set(room.things) - {thing}), 3 + turn):
        layout[f"{other}_bar_0"] = draw.choice([place for place in places if not place.startswith(_FIXED)])
    lamp = ""
    if kind == "look_at_obj":
        lamp = "DeskLamp_bar_0"
        layout[lamp] = draw.choice([place for place in places if not place.startswith(_CLOSED)])
    words = _task(kind, thing, goal)
    problem = _problem(places, layout, _goal(kind, thing, goal))
    return OwnGame(kind, words, problem, tuple(_way(kind, thing, places, layout, goal)))


def _kind_of(name: str) -> str:
    return name.partition("_bar_")[0]


def _task(kind: str, thing: str, goal: str) -> str:
    what, where = thing.lower(), goal.lower()
    if kind == "look_at_obj":
        return f"look at {what} under the desklamp"
    if kind == "pick_two_obj":
        return f"find two {what} and put them in {where}"
    if kind in _TREATED:
        return f"put a {_TREATED[kind][0]} {what} in {where}"
    return f"put some {what} on {where}"


def _goal(kind: str, thing: str, goal: str) -> str:
    if kind == "look_at_obj":
        return (
            "(exists (?lamp - object ?at - receptacle ?here - location ?me - agent ?o - object) (and "
            "(objectType ?lamp DeskLampType) (isToggled ?lamp) (inReceptacle ?lamp ?at) "
            "(receptacleAtLocation ?at ?here) "
            f"(atLocation ?me ?here) (holds ?me ?o) (objectType ?o {thing}Type)))"
        )
    if kind == "pick_two_obj":
        return (
            "(exists (?r - receptacle ?one - object ?two - object) (and (not (= ?one ?two)) "
            f"(objectType ?one {thing}Type) (objectType ?two {thing}Type) (receptacleType ?r {goal}Type) "
            "(inReceptacle ?one ?r) (inReceptacle ?two ?r)))"
        )
    treated = f" ({_TREATED[kind][3]} ?o)" if kind in _TREATED else ""
    return (
        f"(exists (?r - receptacle ?o - object) (and (objectType ?o {thing}Type) (receptacleType ?r {goal}Type) "
        f"(inReceptacle ?o ?r){treated}))"
    )


def _problem(places: Sequence[str], layout: dict[str, str], goal: str) -> str:
    receptacles = sorted({_type_of(place) for place in places} | set(_TYPES))
    objects = sorted({f"{_kind_of(thing)}Type" for thing in layout} | set(_TOOLS))
    facts = ["(= (total-cost) 0)", "(atLocation agent1 loc_0)"]
    for number, place in enumerate(places, 1):
        facts += [f"(receptacleType {place} {_type_of(place)})", f"(receptacleAtLocation {place} loc_{number})"]
        if place.startswith(_CLOSED):
            facts.append(f"(openable {place})")
    for thing, place in layout.items():
        facts += [
            f"(objectType {thing} {_kind_of(thing)}Type)", f"(inReceptacle {thing} {place})",
            f"(objectAtLocation {thing} loc_{places.index(place) + 1})",
        ]  # fmt: skip
        facts += [f"({name} {thing})" for name in _abilities(thing)]
    facts += [f"(canContain {left} {right})" for left in receptacles for right in objects]
    locations = " ".join(f"loc_{number}" for number in range(len(places) + 1))
    return (
        f"(define (problem own) (:domain alfred) (:objects agent1 - agent {locations} - location "
        f"{' '.join(places)} - receptacle {' '.join(layout)} - object {' '.join(receptacles)} - rtype "
        f"{' '.join(objects)} - otype) (:init {' '.join(facts)}) (:goal {goal}) (:metric minimize (total-cost)))"
    )


def _type_of(place: str) -> str:
    return "SinkBasinType" if place == _BASIN else f"{_kind_of(place)}Type"


def _abilities(thing: str) -> tuple[str, ...]:
    if thing.startswith("DeskLamp"):
        return ("toggleable",)
    return ("pickupable", "moveable", "cleanable", "heatable", "coolable")


def _way(kind: str, thing: str, places: Sequence[str], layout: dict[str, str], goal: str) -> Iterator[str]:
    """Yield commands that do the task; ``names`` are those that the engine gives, by the order of the ids."""
    names = _names([*places, *layout])
    opened: set[str] = set()

    def go(place: str) -> Iterator[str]:
        yield f"go to {names[place]}"
        if place.startswith(_CLOSED) and place not in opened:
            opened.add(place)
            yield f"open {names[place]}"

    target = next(place for place in places if _kind_of(place) == goal)
    for one in [name for name in layout if _kind_of(name) == thing]:
        yield from go(layout[one])
        yield f"take {names[one]} from {names[layout[one]]}"
        if kind == "look_at_obj":
            lamp = next(name for name in layout if name.startswith("DeskLamp"))
            yield f"go to {names[layout[lamp]]}"
            yield f"use {names[lamp]}"
            return
        if kind in _TREATED:
            _, verb, fixed, _ = _TREATED[kind]
            where = _fixed(fixed)
            yield f"go to {names[where]}"
            yield f"{verb} {names[one]} with {names[where]}"
        yield from go(target)
        yield f"move {names[one]} to {names[target]}"


def _names(ids: Sequence[str]) -> dict[str, str]:
    """Return what the engine calls things: of each kind the last id, in the order of the alphabet, is number 1."""
    found: dict[str, str] = {}
    for kind in {_kind_of(id) for id in ids}:
        of_kind = sorted((id for id in ids if _kind_of(id) == kind), key=str.lower, reverse=True)
        name = kind.lower() + ("basin" if kind == "Sink" else "")
        found |= {id: f"{name} {number}" for number, id in enumerate(of_kind, 1)}
    return found


def _fixed(kind: str) -> str:
    return _BASIN if kind == "Sink" else f"{kind}_bar_0"
