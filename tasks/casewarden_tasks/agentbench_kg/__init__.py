"""agentbench-kg: AgentBench's knowledge graph, over a graph of its own, a data set's, or any SPARQL endpoint."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from casewarden_sdk.agentbench import (
    SOURCES,
    AgentBenchPack,
    TaskOutput,
    chosen_indices,
    chosen_split,
    keeps_to_v0_2,
    open_dataset,
    refuse_unknown,
    whole_number,
)
from casewarden_sdk.contract import Case, Control, Limits
from casewarden_sdk.errors import ContractError

from . import planted
from .graph import Embedded, Graph, Remote
from .judging import Found, judged
from .ontology import read_ontology
from .own import own_ontology, own_questions, own_triples
from .questions import Questions, read_questions
from .task import KnowledgeGraph

__all__ = ["PACK", "GraphPack"]

_HERE: Final = Path(__file__).parent
_FILES: Final = (
    "__init__.py", "contract.md", "graph.py", "judging.py", "ontology.py", "own.py", "programs.py", "questions.py",
    "task.py", "tools.py", "world.py",
)  # fmt: skip
_SPLITS: Final = ("dev", "std")
_ROUNDS, _MOST_ROUNDS = 15, 100
_GRAPH: Final = "graph.nt"
_KNOWN: Final = ("compat", "dataset", "datasetDigest", "endpoint", "indices", "round", "split")
_SHOWN: Final = 5


class GraphPack(AgentBenchPack):
    """The pack; see ``AgentBenchPack``."""

    id = "agentbench-kg"
    version = "1.0.0"
    description = "AgentBench, knowledge graph: answer questions by walking through a graph of facts with seven tools"
    contract = (_HERE / "contract.md").read_text(encoding="utf-8")
    score = "main"
    passes = "the variable that was named is exactly the set that was asked for"
    dimensions: Mapping[str, str] = {"executable": "0.2", "complete": "0.4", "precise": "0.4"}
    limits = Limits(case_seconds=900, response_seconds=240, output_bytes=1 << 20, request_bytes=1 << 20)
    sources = (*SOURCES, *(str(_HERE / name) for name in _FILES))
    controls: Sequence[Control] = planted.controls()

    def task(self, params: Mapping[str, Any], seed: int) -> KnowledgeGraph:
        """Make the task: our own graph, or AgentBench's questions over a data set's graph or an endpoint."""
        refuse_unknown(params, _KNOWN, self.id)
        compat = keeps_to_v0_2(params)
        rounds = whole_number(params, "round", _ROUNDS, _MOST_ROUNDS)
        endpoint, dataset = _endpoint(params), open_dataset(params)
        if dataset is None:
            for name in ("split", "endpoint"):
                if name in params:
                    raise ContractError(f"spec.task.params.{name}: goes with the questions of a data set; give dataset")
            own = own_questions()
            chosen = {index: own[index] for index in chosen_indices(params, len(own))}
            questions = Questions(chosen, len(own), {})
            return KnowledgeGraph(questions, own_ontology(), _own_graph(), rounds, compat)
        split = chosen_split(params, _SPLITS)
        questions = _chosen(read_questions(dataset, f"data/knowledgegraph/{split}.json"), params)
        ontology = read_ontology(dataset)
        if endpoint is not None:
            return KnowledgeGraph(questions, ontology, endpoint, rounds, compat)
        if not dataset.has(_GRAPH):
            raise ContractError(
                f"spec.task.params.endpoint: is missing, and data set {dataset.name!r} has no {_GRAPH}: "
                "give the URL of a SPARQL endpoint over Freebase, or put a graph in N-Triples into the data set"
            )
        graph = Embedded(dataset.text(_GRAPH), f"spec.task.params.dataset: {_GRAPH}")
        return KnowledgeGraph(questions, ontology, graph, rounds, compat)

    def content(self, task: Any, index: Any) -> Mapping[str, Any]:
        """Return the question with its answer."""
        return {"question": task.questions.by_index[index].to_json()}

    def checks(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> Mapping[str, bool]:
        """Judge the answer: whether there is one, has all that was asked for, and nothing else."""
        found = _judged(case, output)
        return {"executable": found.executable, "complete": found.recall == 1, "precise": found.precision == 1}

    def metrics(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return AgentBench's three, and how many calls were made."""
        found = _judged(case, output)
        calls = len((output.result or {}).get("actions", ()))
        return {"f1": found.f1, "em": int(found.exact), "executability": int(found.executable), "calls": calls}

    def explain(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> str | None:
        """Say what is missing and what is too much."""
        found = _judged(case, output)
        if not found.executable:
            return "no variable was named that stands for anything"
        predicted, wanted = set((output.result or {})["predict"]), set(case.content["question"]["answer"])
        missing, more = sorted(wanted - predicted), sorted(predicted - wanted)
        told = [
            f"{word}: {', '.join(names[:_SHOWN])}" + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
            for word, names in (("missing", missing), ("not asked for", more))
            if names
        ]
        return "; ".join(told) or None


def _chosen(questions: Questions, params: Mapping[str, Any]) -> Questions:
    wanted = chosen_indices(params, questions.rows)
    found = {index: questions.by_index[index] for index in wanted if index in questions.by_index}
    if not found:
        raise ContractError(f"spec.task.params.indices: {questions.broken[wanted[0]]}; name rows that are questions")
    return replace(questions, by_index=found)


def _judged(case: Case, output: TaskOutput) -> Found:
    return judged(case.content["question"]["answer"], output.result)


@functools.cache
def _own_graph() -> Graph:
    return Embedded(own_triples(), "our own graph")


def _endpoint(params: Mapping[str, Any]) -> Remote | None:
    url = params.get("endpoint")
    if url is None:
        return None
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ContractError(f"spec.task.params.endpoint is {url!r}; give the http or https URL of a SPARQL endpoint")
    if parts.username or parts.password:
        raise ContractError("spec.task.params.endpoint: has a user name or a password in it; give a URL without")
    return Remote(url)


PACK = GraphPack()
