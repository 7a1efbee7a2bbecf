"""The questions that come with the pack, over its own ``world``: nine kinds, three of each, easy ones first.

What is right was found by walking through the world, not by SPARQL: the two must agree.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from .ontology import Ontology
from .programs import NAMESPACE
from .questions import Question
from .world import ATTRIBUTES, RELATIONS, World, world

__all__ = ["own_ontology", "own_questions", "own_triples", "walked"]

_OF_A_KIND: Final = 3
_INTEGER: Final = "http://www.w3.org/2001/XMLSchema#integer"
_MOST_ANSWERS: Final = 14


class _Kind(NamedTuple):
    """A kind of question: its words, the types of what it names, and the calls; ``{0}`` and ``{1}`` are what it names.

    ``several`` answers are wanted where a set is asked for.
    """

    text: str
    types: tuple[str, ...]
    calls: tuple[str, ...]
    several: bool = True


_BOTH: Final = (
    "get_relations({0})", "get_neighbors({0}, art.subject.paintings)",
    "get_relations({1})", "get_neighbors({1}, art.museum.paintings)", "intersection(#0, #1)",
)  # fmt: skip
_IN_MUSEUM: Final = ("art.subject", "art.museum")
_KINDS: Final = (
    _Kind("which paintings are by painters who were born in {0}?", ("geo.city",),
          ("get_relations({0})", "get_neighbors({0}, geo.city.painters_born)",
           "get_relations(#0)", "get_neighbors(#0, art.painter.paintings)")),
    _Kind("in which cities were the pupils of {0} born?", ("art.painter",),
          ("get_relations({0})", "get_neighbors({0}, art.painter.pupils)",
           "get_relations(#0)", "get_neighbors(#0, art.painter.born_in)")),
    _Kind("which of the paintings by {0} is the oldest?", ("art.painter",),
          ("get_relations({0})", "get_neighbors({0}, art.painter.paintings)",
           "get_attributes(#0)", "argmin(#0, art.painting.year)"), several=False),
    _Kind("which painters of the style {0} were born in {1}?", ("art.style", "geo.city"),
          ("get_relations({0})", "get_neighbors({0}, art.style.painters)",
           "get_relations({1})", "get_neighbors({1}, geo.city.painters_born)", "intersection(#0, #1)")),
    _Kind("which paintings of {0} does the {1} show?", _IN_MUSEUM, _BOTH),
    _Kind("how many paintings of {0} does the {1} show?", _IN_MUSEUM, (*_BOTH, "count(#2)"), several=False),
    _Kind("which of the paintings of {0} that the {1} shows is the highest?", _IN_MUSEUM,
          (*_BOTH, "get_attributes(#2)", "argmax(#2, art.painting.height_cm)"), several=False),
    _Kind("who painted the paintings of {0} that the {1} shows?", _IN_MUSEUM,
          (*_BOTH, "get_relations(#2)", "get_neighbors(#2, art.painting.painter)")),
    _Kind("of the painters of paintings of {0} in the {1}, where was the one born who was born last?", _IN_MUSEUM,
          (*_BOTH, "get_relations(#2)", "get_neighbors(#2, art.painting.painter)",
           "get_attributes(#3)", "argmax(#3, art.painter.year_of_birth)",
           "get_relations(#4)", "get_neighbors(#4, art.painter.born_in)"), several=False),
)  # fmt: skip


@lru_cache(maxsize=1)
def own_ontology() -> Ontology:
    """Return the relations of the world."""
    ranges: dict[str, str] = {}
    for name, (domain, range_, other) in RELATIONS.items():
        ranges |= {name: range_, other: domain}
    return Ontology(ranges, frozenset(ranges), frozenset(ATTRIBUTES))


@lru_cache(maxsize=1)
def own_triples() -> str:
    """Return the world as N-Triples."""
    made = world()
    facts = [(left, name, f"<{NAMESPACE}{right}>") for (left, name), rights in made.edges.items() for right in rights]
    facts += [(left, name, f'"{value}"^^<{_INTEGER}>') for (left, name), value in made.values.items()]
    names = [(id, "type.object.name", f'"{name}"@en') for id, name in made.names.items()]
    return "".join(f"<{NAMESPACE}{left}> <{NAMESPACE}{name}> {right} .\n" for left, name, right in facts + names)


@lru_cache(maxsize=1)
def own_questions() -> tuple[Question, ...]:
    """Return the questions; the first of every kind, then the second, and so on."""
    by_kind = [list(itertools.islice(_questions(kind), _OF_A_KIND)) for kind in _KINDS]
    return tuple(itertools.chain.from_iterable(zip(*by_kind, strict=True)))


def _questions(kind: _Kind) -> Iterator[Question]:
    """Yield those that have an answer, spread over the things that they may name."""
    made = world()
    named = [made.of_type(type_) for type_ in kind.types]
    pairs = list(itertools.product(*named))
    # A step that shares no factor with their number visits them all, far from one another.
    step = next(n for n in itertools.count(len(pairs) * 5 // 8 or 1) if _coprime(n, len(pairs)))
    for number in range(len(pairs)):
        ids = pairs[number * step % len(pairs)]
        names = [made.names[id] for id in ids]
        calls = tuple(call.format(*ids) for call in kind.calls)
        answer = walked(made, calls)
        if (2 if kind.several else 1) <= len(answer) <= _MOST_ANSWERS and answer != ("0",):
            yield Question(kind.text.format(*names), dict(zip(names, ids, strict=True)), answer, calls)


def _coprime(left: int, right: int) -> bool:
    while right:
        left, right = right, left % right
    return left == 1


def walked(made: World, calls: Sequence[str]) -> tuple[str, ...]:
    """Return, sorted, what the last variable of some calls stands for: by sets alone."""
    variables: list[_Set] = []
    for call in calls:
        name, _, rest = call.rstrip(")").partition("(")
        arguments = [part.strip() for part in rest.split(",")]
        of = _of(arguments[0], variables)
        if name == "get_neighbors":
            found = (made.edges.get((left, arguments[1]), set()) for left in of.things)
            variables.append(_Set(set().union(*found), of.named))
        elif name == "intersection":
            other = _of(arguments[1], variables)
            variables.append(_Set(of.things & other.things, of.named | other.named))
        elif name in ("argmax", "argmin"):
            most = _most(made, of.values, arguments[1], max if name == "argmax" else min)
            variables.append(_Set(most, of.named))
        elif name == "count":
            variables.append(_Set({str(len(of.values))}, of.named))
    return tuple(sorted(variables[-1].values))


class _Set(NamedTuple):
    """A variable: its things, and the ids by which its program starts, which are no values of it."""

    things: set[str]
    named: set[str]

    @property
    def values(self) -> set[str]:
        return self.things - self.named


def _of(text: str, variables: Sequence[_Set]) -> _Set:
    return variables[int(text[1:])] if text.startswith("#") else _Set({text}, {text})


def _most(made: World, of: set[str], attribute: str, choose: Callable[[Sequence[int]], int]) -> set[str]:
    values = {one: made.values[one, attribute] for one in of if (one, attribute) in made.values}
    return {one for one, value in values.items() if value == choose(list(values.values()))} if values else set()
