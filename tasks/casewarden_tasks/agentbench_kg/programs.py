"""Variables of an agent: lazy programs over the graph, and the SPARQL 1.1 that they come to.

A program says what a variable stands for; nothing is asked of the graph until an answer is. Every name in a query was
checked before: an id by ``is_id``, a relation by having been listed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

__all__ = ["NAMESPACE", "And", "Count", "Entity", "Join", "Most", "Program", "attributes_query", "is_id", "query"]

NAMESPACE: Final = "http://rdf.freebase.com/ns/"
_ID: Final = re.compile(r"[mgf]\.\w+", re.ASCII)


@dataclass(frozen=True)
class Entity:
    """One thing of the graph, by its id."""

    id: str


@dataclass(frozen=True)
class Join:
    """What things are related to by a relation that leads away from them."""

    relation: str
    of: Program


@dataclass(frozen=True)
class And:
    """What is in both."""

    left: Program
    right: Program


@dataclass(frozen=True)
class Most:
    """Of some things those whose attribute is the highest, or the lowest; all of them where there is a tie."""

    highest: bool
    of: Program
    attribute: str


@dataclass(frozen=True)
class Count:
    """How many there are."""

    of: Program


Program = Entity | Join | And | Most | Count


def is_id(text: str) -> bool:
    """Tell whether a text has the form of an entity's id (``m.…``, ``g.…``, ``f.…``)."""
    return _ID.fullmatch(text) is not None


def query(program: Program) -> str:
    """Return the query for the values of a program, in ``?x``; of a count, its number."""
    if isinstance(program, Count):
        return f"SELECT (COUNT(DISTINCT ?x) AS ?n) WHERE {{ {_values(program.of)} }}"
    return f"SELECT DISTINCT ?x WHERE {{ {_values(program)} }}"


def attributes_query(program: Program) -> str:
    """Return the query for the relations that lead away from what a program stands for."""
    if isinstance(program, Entity):
        return f"SELECT DISTINCT ?rel WHERE {{ {_name(program.id)} ?rel ?obj . }}"
    return f"SELECT DISTINCT ?rel WHERE {{ {{ {query(program)} }} ?x ?rel ?obj . }}"


def _values(program: Program) -> str:
    return " ".join([*_pattern(program, "x", _fresh()), *_filters(program, "x")])


def _fresh() -> Iterator[str]:
    return (f"v{number}" for number in itertools.count())


def _pattern(program: Program, to: str, fresh: Iterator[str]) -> list[str]:
    match program:
        case Entity(id):
            return [f"VALUES ?{to} {{ {_name(id)} }}"]
        case Join(relation, Entity(id)):
            return [f"{_name(id)} {_name(relation)} ?{to} ."]
        case Join(relation, of):
            start = next(fresh)
            return [*_pattern(of, start, fresh), f"?{start} {_name(relation)} ?{to} ."]
        case And(left, right):
            return [*_pattern(left, to, fresh), *_pattern(right, to, fresh)]
        case Most(highest, of, attribute):
            key, other = next(fresh), next(fresh)
            inner = [*_pattern(of, other, fresh), f"?{other} {_name(attribute)} ?{key} .", *_filters(of, other)]
            order = f"DESC(?{key})" if highest else f"?{key}"
            return [
                *_pattern(of, to, fresh),
                f"?{to} {_name(attribute)} ?{key} .",
                f"{{ SELECT ?{key} WHERE {{ {' '.join(inner)} }} ORDER BY {order} LIMIT 1 }}",
            ]
        case Count():
            raise ValueError("a number leads nowhere")


def _filters(program: Program, of: str) -> list[str]:
    """Leave out what the question names itself, and texts of other languages."""
    named = [f"FILTER (?{of} != {_name(id)})" for id in sorted(_entities(program))]
    return [*named, f'FILTER (!isLiteral(?{of}) || lang(?{of}) = "" || langMatches(lang(?{of}), "en"))']


def _entities(program: Program) -> set[str]:
    match program:
        case Entity(id):
            return {id}
        case And(left, right):
            return _entities(left) | _entities(right)
        case Join(_, of) | Most(_, of, _) | Count(of):
            return _entities(of)


def _name(text: str) -> str:
    return f"<{NAMESPACE}{text}>"
