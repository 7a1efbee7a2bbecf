"""The knowledge graph as a task of AgentBench: a sample is a question, its result what the agent's last variable is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from casewarden_sdk.agentbench import (
    AgentOutputStatus,
    ChatItem,
    SampleStatus,
    Session,
    Task,
    TaskOutput,
    TaskSampleExecutionResult,
)

from .graph import Graph
from .judging import Found, judged
from .ontology import Ontology
from .questions import Question, Questions
from .tools import Call, ToolRefused, Tools, calls_in

__all__ = ["KnowledgeGraph"]

_ANSWER: Final = re.compile(r"(?:Find|Final) Answer: #(\d{1,6})")
_ACTION: Final = re.compile(r"^Action.*?:", re.MULTILINE)
_NO_ACTION: Final = (
    "Observation: there was no call in your reply that I know. Write one line that starts with Action: and calls one "
    "of the seven tools, or end with Final Answer: #N."
)
_RULES: Final = """You answer questions from a large graph of facts, which you cannot see as a whole. Things are related
to things by relations. You look around with tools; what you find is kept in variables, #0, #1 and so on, each a set of
things or a number. These are the tools:

get_relations(v): v is a variable or an entity of the question; lists the relations that lead away from it.
get_neighbors(v, r): r is one of the relations that get_relations(v) listed; makes a variable of what v leads to by r.
intersection(a, b): a and b are variables of one type; makes a variable of what is in both.
get_attributes(v): v is a variable; lists its attributes that are numbers or dates.
argmax(v, a): a is one of the attributes that get_attributes(v) listed; makes a variable of those with the most of it.
argmin(v, a): the same with the least.
count(v): makes a variable of how many there are in v.

Each of your replies has one thought and one call, in this form:

Thought: why you do it
Action: get_relations(name of an entity)

I reply with an Observation. When a variable is the answer, reply with its number: Final Answer: #3. You have {rounds}
replies. Use each name exactly as it stands in the list of entities."""
_EXAMPLE: Final = (
    ("A new question: how many lakes does the river that runs through Aldmoor feed?\nEntities: [Aldmoor]",
     "Thought: I look how Aldmoor is related to rivers.\nAction: get_relations(Aldmoor)"),
    ("Observation: [geo.town.country, geo.town.river]",
     "Thought: geo.town.river leads to the river.\nAction: get_neighbors(Aldmoor, geo.town.river)"),
    ("Observation: variable #0, which are instances of geo.river",
     "Thought: Now to the lakes.\nAction: get_relations(#0)"),
    ("Observation: [geo.river.lakes_fed, geo.river.towns]",
     "Thought: geo.river.lakes_fed leads to them.\nAction: get_neighbors(#0, geo.river.lakes_fed)"),
    ("Observation: variable #1, which are instances of geo.lake",
     "Thought: I count them.\nAction: count(#1)"),
    ("Observation: variable #2, which is a number", "Thought: This is how many.\nFinal Answer: #2"),
)  # fmt: skip
_NAMED: Final = 20


class KnowledgeGraph(Task):
    """The questions of a run over one graph."""

    def __init__(self, questions: Questions, ontology: Ontology, graph: Graph, rounds: int, compat: bool) -> None:
        super().__init__(name="kg")
        self.questions = questions
        self.ontology = ontology
        self.graph = graph
        self.rounds = rounds
        self.compat = compat

    def get_indices(self) -> list[Any]:
        """Return the rows that are questions."""
        return list(self.questions.by_index)

    async def start_sample(self, index: Any, session: Session) -> TaskSampleExecutionResult:
        """Play one question."""
        question = Question.from_json(session.case.content["question"])
        tools = Tools(self.ontology, self.graph, question.entities, self.compat)
        session.inject(_opening(self.rounds))
        told = f"A new question: {question.text}\nEntities: [{', '.join(question.entities)}]"
        actions: list[str] = []
        for _ in range(self.rounds):
            output = await session.action({"role": "user", "content": told})
            if output.status is AgentOutputStatus.CANCELLED:
                return TaskSampleExecutionResult(SampleStatus.UNKNOWN, _result([], actions))
            if output.status is AgentOutputStatus.AGENT_CONTEXT_LIMIT:
                return TaskSampleExecutionResult(SampleStatus.AGENT_CONTEXT_LIMIT, None)
            said = (output.content or "").partition("Observation:")[0].replace("\\_", "_")
            session.history[-1] = ChatItem("agent", said)
            answer = _ANSWER.search(said)
            try:
                if answer is not None:
                    found = await tools.values(int(answer.group(1)))
                    return TaskSampleExecutionResult(SampleStatus.COMPLETED, _result(found, actions))
                told = await self._act(tools, said, actions)
            except ToolRefused as refused:
                told = f"Observation: {refused}. Try something else."
        return TaskSampleExecutionResult(SampleStatus.TASK_LIMIT_REACHED, _result([], actions))

    async def _act(self, tools: Tools, said: str, actions: list[str]) -> str:
        line = next((line for line in said.splitlines() if _ACTION.match(line)), None)
        calls = calls_in(line, self.compat) if line is not None else []
        why = ""
        for call in calls:
            try:
                observed = await tools.call(call)
            except ToolRefused as refused:
                why = why or f"Observation: {call.name} cannot be called so: {refused}."
                continue
            actions.append(_shown(call))
            return f"Observation: {observed}"
        return why or _NO_ACTION

    def calculate_overall(self, results: list[TaskOutput]) -> Any:
        """Return the means over the samples that were played; with ``compat`` over all rows of the data file."""
        found = [self._found(one) for one in results]
        of = self.questions.rows if self.compat else len(results)
        f1 = sum(one.f1 for one in found) / of if of else 0.0
        return {
            "main": f1,
            "F1": f1,
            "EM": sum(one.exact for one in found) / of if of else 0.0,
            "executability": sum(one.executable for one in found) / of if of else 0.0,
            "excluded": [self.questions.broken[index] for index in sorted(self.questions.broken)][:_NAMED],
        }

    def _found(self, output: TaskOutput) -> Found:
        question = self.questions.by_index[output.index]  # type: ignore[index]
        return judged(question.answer, output.result)


def _opening(rounds: int) -> list[ChatItem]:
    items = [ChatItem("user", _RULES.format(rounds=rounds)), ChatItem("agent", "I understand. What is the question?")]
    for told, said in _EXAMPLE:
        items += [ChatItem("user", told), ChatItem("agent", said)]
    return items


def _shown(call: Call) -> str:
    return f"{call.name}({', '.join(call.arguments)})"


def _result(predict: Sequence[str], actions: Sequence[str]) -> Mapping[str, Any]:
    return {"predict": list(predict), "actions": list(actions)}
