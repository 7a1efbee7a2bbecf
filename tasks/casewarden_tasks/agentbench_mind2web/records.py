"""Mind2Web's records: one sample per action of a task, with the page on which it was done."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from casewarden_sdk.agentbench import Dataset
from casewarden_sdk.canonical import sha256_bytes
from casewarden_sdk.errors import ContractError

from .page import Page, PageBroken
from .ranking import ranked

__all__ = ["Operation", "Records", "Sample", "read_records", "samples_of"]

_FIELD: Final = "spec.task.params.dataset"
_OPERATIONS: Final = ("CLICK", "SELECT", "TYPE")
_BEST: Final = 10
_SCORES: Final = ("scores_all_data.json", "scores_all_data.pkl")


@dataclass(frozen=True)
class Operation:
    """What was done: ``op`` is CLICK, SELECT or TYPE; a click has no value."""

    op: str
    value: str

    @property
    def words(self) -> str:
        """Both as one text, as they are compared."""
        return f"{self.op} {self.value}".strip()


@dataclass(frozen=True)
class Sample:
    """One action to be found. ``candidates`` are the best-ranked elements, ``positives`` the right ones of them."""

    key: str
    task: str
    website: str
    previous: tuple[str, ...]
    operation: Operation
    positives: tuple[str, ...]
    candidates: tuple[str, ...]
    html: str = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return what a case has of it: all but the page, of which there is the digest."""
        return {
            "key": self.key,
            "task": self.task,
            "website": self.website,
            "previous": list(self.previous),
            "operation": {"op": self.operation.op, "value": self.operation.value},
            "positives": list(self.positives),
            "candidates": list(self.candidates),
            "page_sha256": sha256_bytes(self.html.encode("utf-8")),
        }


@dataclass(frozen=True)
class Records:
    """The samples of a run by their index, and what was wrong with records that are none."""

    samples: Mapping[int, Sample]
    broken: Sequence[str]


def read_records(dataset: Dataset, split: str) -> Records:
    """Read the files of a split, in the order of their names; a record that is none is left out and named."""
    names = dataset.names(f"*data_{split}/*.json")
    if not names:
        raise ContractError(f"{_FIELD}: data set {dataset.name!r} has no data_{split}/*.json; it is one of Mind2Web's")
    ranks = _ranks(dataset)
    found: list[Sample] = []
    broken: list[str] = []
    for name in names:
        try:
            tasks = json.loads(dataset.text(name))
            if not isinstance(tasks, list):
                raise ValueError("no list of tasks")
        except (ValueError, RecursionError) as error:
            raise ContractError(f"{_FIELD}: {name} is no JSON list of tasks: {error}") from None
        for place, task in enumerate(tasks):
            for sample in samples_of(task, ranks):
                if isinstance(sample, Sample):
                    found.append(sample)
                else:
                    broken.append(f"{name}, task {place}: {sample}")
    if not found:
        raise ContractError(f"{_FIELD}: data_{split} has no action: {broken[0] if broken else 'its files are empty'}")
    return Records(dict(enumerate(found)), broken)


def samples_of(task: Any, ranks: Mapping[str, Mapping[str, int]] | None) -> Iterator[Sample | str]:
    """Yield a sample per action of a task, or what is wrong with the action; of the task, where that is none."""
    try:
        key, said, website = str(task["annotation_id"]), str(task["confirmed_task"]), str(task["website"])
        actions, done = list(task["actions"]), [str(text) for text in task["action_reprs"]]
        if len(actions) != len(done):
            raise ValueError(f"has {len(actions)} actions and {len(done)} action_reprs")
    except (LookupError, TypeError, ValueError) as error:
        yield _what(error)
        return
    for number, action in enumerate(actions):
        try:
            yield _sample(key, said, website, done[:number], action, ranks)
        except (LookupError, TypeError, ValueError) as error:
            yield f"action {number}: {_what(error)}"


def _sample(
    task_key: str,
    task: str,
    website: str,
    previous: Sequence[str],
    action: Mapping[str, Any],
    ranks: Mapping[str, Mapping[str, int]] | None,
) -> Sample:
    key, text = f"{task_key}_{action['action_uid']}", str(action["cleaned_html"])
    operation = Operation(str(action["operation"]["op"]), str(action["operation"].get("value") or ""))
    if operation.op not in _OPERATIONS:
        raise ValueError(f"operation.op is {operation.op!r}; one is {', '.join(_OPERATIONS)}")
    page = Page(text)
    right, wrong = (
        [node for item in action[name] if page.has(node := str(item["backend_node_id"]))]
        for name in ("pos_candidates", "neg_candidates")
    )
    if ranks is None:
        order = ranked(task, previous, {node: page.words_of(node) for node in dict.fromkeys([*right, *wrong])})
    elif key in ranks:
        order = dict(ranks[key])
    else:
        raise ValueError(f"has no ranks under {key!r}")
    positives = [node for node in right if order.get(node, _BEST) < _BEST]
    negatives = [node for node in wrong if order.get(node, _BEST) < _BEST and node not in positives]
    return Sample(key, task, website, tuple(previous), operation, tuple(positives), (*positives, *negatives), text)


def _ranks(dataset: Dataset) -> Mapping[str, Mapping[str, int]] | None:
    """Return the ranks that the data set comes with, by sample and node; None where it has none."""
    name = next((name for wanted in _SCORES for name in dataset.names(f"*{wanted}")), None)
    if name is None:
        return None
    try:
        data = dataset.read(name)
        document = json.loads(data) if name.endswith(".json") else _Plain(io.BytesIO(data)).load()
        return {
            str(key): {str(node): int(rank) for node, rank in by_node.items()}
            for key, by_node in document["ranks"].items()
        }
    except (ValueError, LookupError, TypeError, AttributeError, EOFError, pickle.UnpicklingError) as error:
        raise ContractError(f"{_FIELD}: {name}: has no ranks by sample and element: {error}") from None


class _Plain(pickle.Unpickler):
    """Reads what is of plain dictionaries, texts and numbers: a pickle of anything else may run anything."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it has a {module}.{name}, and only plain values are read")


def _what(error: Exception) -> str:
    if isinstance(error, PageBroken):
        return str(error)
    return f"has no {error.args[0]}" if isinstance(error, KeyError) else str(error)
