"""Questions, and how they are read from AgentBench's files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from casewarden_sdk.agentbench import Dataset
from casewarden_sdk.errors import ContractError

__all__ = ["Question", "Questions", "read_questions"]

_FIELD: Final = "spec.task.params.dataset"


@dataclass(frozen=True)
class Question:
    """``entities`` map the names in the question to ids; ``actions`` are a program that finds ``answer``."""

    text: str
    entities: Mapping[str, str]
    answer: tuple[str, ...]
    actions: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON, for a case."""
        return {
            "text": self.text,
            "entities": dict(self.entities),
            "answer": list(self.answer),
            "actions": list(self.actions),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Question:
        """Read ``to_json`` back."""
        return cls(document["text"], dict(document["entities"]), tuple(document["answer"]), tuple(document["actions"]))


@dataclass(frozen=True)
class Questions:
    """Those of a run by their index, how many rows there were, and what was wrong with those that are none."""

    by_index: Mapping[int, Question]
    rows: int
    broken: Mapping[int, str]


def read_questions(dataset: Dataset, name: str) -> Questions:
    """Read a file of AgentBench; a row that is no question is left out and named."""
    if not dataset.has(name):
        raise ContractError(f"{_FIELD}: data set {dataset.name!r} has no file {name!r}; it is one of AgentBench's")
    try:
        rows = json.loads(dataset.text(name))
    except (ValueError, RecursionError) as error:
        raise ContractError(f"{_FIELD}: {name} is no JSON: {error}") from None
    if not isinstance(rows, list) or not rows:
        raise ContractError(f"{_FIELD}: {name} is no list of questions")
    found: dict[int, Question] = {}
    broken: dict[int, str] = {}
    for index, row in enumerate(rows):
        try:
            found[index] = _question(row)
        except (LookupError, TypeError, ValueError) as error:
            broken[index] = f"row {index}: {_what(error)}"
    if not found:
        raise ContractError(f"{_FIELD}: {name} has no question: {next(iter(broken.values()))}")
    return Questions(found, len(rows), broken)


def _question(row: Any) -> Question:
    entities, answer = row["entities"], [str(item["answer_argument"]) for item in row["answer"]]
    if not isinstance(row["question"], str) or not isinstance(entities, Mapping):
        raise TypeError("question must be a text and entities an object")
    if not all(isinstance(id, str) for id in entities.values()):
        raise TypeError("entities must map names to ids")
    actions: Sequence[Any] = row.get("actions") or ()
    return Question(row["question"], dict(entities), tuple(answer), tuple(map(str, actions)))


def _what(error: Exception) -> str:
    return f"has no {error.args[0]}" if isinstance(error, KeyError) else str(error)
