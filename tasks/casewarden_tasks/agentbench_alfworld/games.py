"""Games: our own, or ALFWorld's files in a data set by AgentBench's lists."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from casewarden_sdk.agentbench import Dataset
from casewarden_sdk.errors import ContractError

from .engine import own_document
from .own import KINDS, own_games

__all__ = ["Game", "Games", "own", "read_games"]

_FIELD: Final = "spec.task.params.dataset"
_FOLDER: Final = "data/alfworld"
_PARTS: Final = ("pddl_domain", "grammar", "pddl_problem")


@dataclass(frozen=True)
class Game:
    """``kind`` is the kind of task; ``path`` names the file, or the game of our own."""

    kind: str
    path: str
    document: Mapping[str, Any]


@dataclass(frozen=True)
class Games:
    """Those of a run by their index, and why others are none."""

    by_index: Mapping[int, Game]
    broken: Mapping[int, str]


def own() -> Games:
    """Return the games of this pack."""
    found = {
        index: Game(game.kind, f"own/{game.kind}-{index // len(KINDS)}", own_document(game.problem, game.task))
        for index, game in enumerate(own_games())
    }
    return Games(found, {})


def read_games(dataset: Dataset, split: str) -> Games:
    """Read the games of a list; a file that is missing, or is no game that can be won, is left out and named.

    Indices are places in the list, kind by kind in its own order.
    """
    name = f"{_FOLDER}/{split}.json"
    if not dataset.has(name):
        raise ContractError(f"{_FIELD}: data set {dataset.name!r} has no file {name!r}; it is one of AgentBench's")
    try:
        lists = json.loads(dataset.text(name))
        paths = [(str(kind), str(path)) for kind, paths in lists.items() for path in paths]
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ContractError(f"{_FIELD}: {name} is no object of lists of games by kind: {error}") from None
    found: dict[int, Game] = {}
    broken: dict[int, str] = {}
    for index, (kind, path) in enumerate(paths):
        document, why = _game(dataset, path)
        if document is None:
            broken[index] = f"game {index}, {path}: {why}"
        else:
            found[index] = Game(kind, path, document)
    if not found:
        why = next(iter(broken.values()), "the list is empty")
        raise ContractError(f"{_FIELD}: there is no game to play: {why}; mount ALFWorld's files below {_FOLDER}")
    return Games(found, broken)


def _game(dataset: Dataset, path: str) -> tuple[Mapping[str, Any] | None, str]:
    place = f"{_FOLDER}/{path}"
    if ".." in path.split("/") or not dataset.has(place):
        return None, "is missing"
    try:
        document = json.loads(dataset.text(place))
    except (ValueError, RecursionError) as error:
        return None, f"is no JSON: {error}"
    if not isinstance(document, Mapping) or not all(isinstance(document.get(part), str) for part in _PARTS):
        return None, f"is no game: it needs {', '.join(_PARTS)}"
    if document.get("solvable") is False:
        return None, "says itself that it cannot be won"
    return {part: document[part] for part in _PARTS}, ""
