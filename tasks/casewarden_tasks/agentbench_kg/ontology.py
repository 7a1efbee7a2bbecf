"""What relations there are: AgentBench's ontology files, or a pack's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from casewarden_sdk.agentbench import Dataset
from casewarden_sdk.errors import ContractError

__all__ = ["Ontology", "read_ontology"]

_FIELD: Final = "spec.task.params.dataset"
_ROLES, _TYPES, _VOCABULARY = "fb_roles", "fb_types", "vocab.json"
_WIDTH: Final = 3


@dataclass(frozen=True)
class Ontology:
    """``ranges`` map a relation to the type of what it leads to; ``supertypes`` a type to those that have it too.

    Relations and attributes outside the two sets are not shown to an agent.
    """

    ranges: Mapping[str, str]
    relations: frozenset[str]
    attributes: frozenset[str]
    supertypes: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def common(self, left: str, right: str) -> str | None:
        """Return the narrower of two types where one includes the other, else None."""
        if left == right or right in self.supertypes.get(left, ()):
            return left
        return right if left in self.supertypes.get(right, ()) else None


def read_ontology(dataset: Dataset) -> Ontology:
    """Read AgentBench's files, which lie in one folder somewhere in the data set."""
    roles = _rows(dataset, _ROLES)
    types = _rows(dataset, _TYPES)
    name = _found(dataset, _VOCABULARY)
    try:
        vocabulary = json.loads(dataset.text(name))
        relations, attributes = (frozenset(map(str, vocabulary[key])) for key in ("relations", "attributes"))
    except (ValueError, LookupError, TypeError) as error:
        raise ContractError(f"{_FIELD}: {name}: needs lists relations and attributes: {error!r}") from None
    above: dict[str, set[str]] = {}
    for lower, _, upper in types:
        above.setdefault(lower, set()).add(upper)
    return Ontology(
        {relation: range_ for _, relation, range_ in roles},
        relations,
        attributes,
        {lower: frozenset(uppers) for lower, uppers in above.items()},
    )


def _rows(dataset: Dataset, name: str) -> list[list[str]]:
    file = _found(dataset, name)
    # AgentBench's own files have a few lines that lost their end, and some that end like a triple.
    rows = [line.split(" .")[0].split() for line in dataset.text(file).splitlines()]
    whole = [row for row in rows if len(row) == _WIDTH]
    if not whole:
        raise ContractError(f"{_FIELD}: {file} has no line of {_WIDTH} words; it is one of AgentBench's")
    return whole


def _found(dataset: Dataset, name: str) -> str:
    found = dataset.names(f"*ontology/{name}")
    if not found:
        raise ContractError(f"{_FIELD}: data set {dataset.name!r} has no ontology/{name}; it is one of AgentBench's")
    return found[0]
