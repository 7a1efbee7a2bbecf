"""The seven tools of an agent over one question: what is called, what it makes, what is told.

A variable is a lazy program and the type of what it stands for. A call that cannot be made raises ``ToolRefused`` with
the text that the agent gets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .graph import Graph, QueryRefused
from .ontology import Ontology
from .programs import And, Count, Entity, Join, Most, Program, attributes_query, is_id, query

__all__ = ["Call", "ToolRefused", "Tools", "Variable", "calls_in"]

_NUMBER: Final = "type.int"
_NAMES: Final = ("get_relations", "get_neighbors", "intersection", "get_attributes", "argmax", "argmin", "count")
_CALL: Final = re.compile(rf"\b({'|'.join(_NAMES)})\(")
_VARIABLE: Final = re.compile(r"(?:[Vv]ariable\s*)?#\s*(\d{1,6})")
_WIDTHS: Final = {"get_neighbors": 2, "intersection": 2, "argmax": 2, "argmin": 2}
_MOST_VARIABLES: Final = 64


class ToolRefused(Exception):
    """A call that cannot be made; the text says why."""


@dataclass(frozen=True)
class Variable:
    """What a variable stands for, and the type of it."""

    program: Program
    type: str


@dataclass(frozen=True)
class Call:
    """A call as it was written."""

    name: str
    arguments: tuple[str, ...]


def calls_in(line: str, compat: bool) -> list[Call]:
    """Return the calls of the known tools in a line, in their order.

    The bracket that belongs to the first one ends the arguments, and the last comma parts two: names have brackets and
    commas. With ``compat`` it is the first bracket, and every comma.
    """
    found = []
    for match in _CALL.finditer(line):
        name, text = match.group(1), _inside(line[match.end() :], compat)
        if compat:
            parts = text.split(",")
        elif _WIDTHS.get(name, 1) == 2:
            left, _, right = text.rpartition(",")
            parts = [left, right]
        else:
            parts = [text]
        found.append(Call(name, tuple(part.strip() for part in parts)))
    return found


def _inside(text: str, compat: bool) -> str:
    depth = 0
    for place, letter in enumerate(text):
        if letter == ")":
            if depth == 0 or compat:
                return text[:place]
            depth -= 1
        elif letter == "(":
            depth += 1
    return text.partition(")")[0]


class Tools:
    """The state of one question. ``entities`` map the names in it to ids."""

    def __init__(self, ontology: Ontology, graph: Graph, entities: Mapping[str, str], compat: bool) -> None:
        self.variables: list[Variable] = []
        self._ontology = ontology
        self._graph = graph
        self._entities = entities
        self._compat = compat
        self._relations: dict[Program, frozenset[str]] = {}
        self._attributes: dict[Program, frozenset[str]] = {}

    async def call(self, call: Call) -> str:
        """Make a call and return what is observed."""
        width = _WIDTHS.get(call.name, 1)
        if len(call.arguments) != width or not all(call.arguments):
            raise ToolRefused(f"{call.name} takes {width} argument{'s' if width > 1 else ''}")
        first = call.arguments[0]
        match call.name:
            case "get_relations":
                return await self._list(self._thing(first).program, self._relations, self._ontology.relations)
            case "get_attributes":
                return await self._list(self._variable(first).program, self._attributes, self._ontology.attributes)
            case "get_neighbors":
                return self._neighbors(self._thing(first).program, call.arguments[1])
            case "intersection":
                return self._both(self._variable(first), self._variable(call.arguments[1]))
            case "count":
                return self._made(Count(self._variable(first).program), _NUMBER)
            case _:
                return self._most(call.name == "argmax", self._variable(first), call.arguments[1])

    async def values(self, number: int) -> list[str]:
        """Return what a variable stands for; ``ToolRefused`` where there is no such variable."""
        if number >= len(self.variables):
            raise ToolRefused(f"there is no variable #{number} yet")
        return await self._asked(query(self.variables[number].program))

    async def _list(self, program: Program, kept: dict[Program, frozenset[str]], shown: frozenset[str]) -> str:
        if isinstance(program, Count):
            raise ToolRefused("a number has neither relations nor attributes")
        found = frozenset(await self._asked(attributes_query(program))) & shown
        kept[program] = found
        return f"[{', '.join(sorted(found))}]"

    def _neighbors(self, program: Program, relation: str) -> str:
        known = self._relations.get(program)
        if known is None:
            raise ToolRefused("call get_relations for it first, and choose one of those")
        if relation not in known:
            raise ToolRefused(f"{relation} is not among its relations, which get_relations has listed")
        return self._made(Join(relation, program), self._ontology.ranges.get(relation, ""))

    def _both(self, left: Variable, right: Variable) -> str:
        common = left.type if left.type == right.type else None
        if not self._compat:
            common = self._ontology.common(left.type, right.type)
        if common is None:
            raise ToolRefused(f"intersection needs two variables of one type, and got {left.type} and {right.type}")
        if isinstance(left.program, Count) or isinstance(right.program, Count):
            raise ToolRefused("intersection needs sets, and got a number")
        return self._made(And(left.program, right.program), common)

    def _most(self, highest: bool, variable: Variable, attribute: str) -> str:
        known = self._attributes.get(variable.program)
        if known is None:
            raise ToolRefused("call get_attributes for it first, and choose one of those")
        if attribute not in known:
            raise ToolRefused(f"{attribute} is not among its attributes, which get_attributes has listed")
        return self._made(Most(highest, variable.program, attribute), variable.type)

    def _made(self, program: Program, type_: str) -> str:
        if len(self.variables) >= _MOST_VARIABLES:
            raise ToolRefused(f"there are {_MOST_VARIABLES} variables already")
        self.variables.append(Variable(program, type_))
        name = f"variable #{len(self.variables) - 1}"
        if type_ == _NUMBER and isinstance(program, Count):
            return f"{name}, which is a number"
        return f"{name}, which are instances of {type_ or 'an unknown type'}"

    def _thing(self, text: str) -> Variable:
        if _VARIABLE.fullmatch(text):
            return self._variable(text)
        found = self._entities.get(text, text)
        if not is_id(found) or (self._compat and found.startswith("g.")):
            raise ToolRefused(f"{text[:100]} is neither a variable nor one of the entities")
        return Variable(Entity(found), "")

    def _variable(self, text: str) -> Variable:
        match = _VARIABLE.fullmatch(text)
        if match is None:
            raise ToolRefused(f"{text[:100]} is no variable; give one as #0")
        if int(match.group(1)) >= len(self.variables):
            raise ToolRefused(f"there is no variable #{int(match.group(1))} yet")
        return self.variables[int(match.group(1))]

    async def _asked(self, text: str) -> list[str]:
        try:
            return await self._graph.select(text)
        except QueryRefused as refused:
            raise ToolRefused(str(refused)) from None
