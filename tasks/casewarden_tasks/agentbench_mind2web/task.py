"""Web browsing as a task of AgentBench: a sample is one action of a task, chosen among what is on the page."""

from __future__ import annotations

import random
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

from .records import Records, Sample
from .rounds import Rounds, action_f1, parsed, question

__all__ = ["Browsing"]

_EXAMPLES: Final = (
    (
        question(
            "<html> <div> <a home /> <div> <input id=0 text from /> <input id=1 text to /> "
            "<button id=2> Find trains </button> </div> </div> </html>",
            "Find a train from Lunde to Brask on Friday morning",
            ["[textbox]  From -> TYPE: Lunde"],
            ["B. <input id=0 text from />", "C. <input id=1 text to />", "D. <button id=2> Find trains </button>"],
        ),
        "Thought: Where it starts is filled in; where it goes to is next.\nAnswer: C\nAction: TYPE\nValue: Brask",
    ),
    (
        question(
            "<html> <footer> <a id=0> Careers </a> <a id=1> Press </a> </footer> </html>",
            "Rent a small van for the weekend",
            ["[link]  Vans -> CLICK"],
            ["B. <a id=0> Careers </a>", "C. <a id=1> Press </a>"],
        ),
        "Thought: None of these has to do with vans.\nAnswer: A",
    ),
    (
        question(
            "<html> <nav> <a id=0> Opening hours </a> <select id=1 branch> <option> Harbour </option> "
            "<option> Market </option> </select> </nav> </html>",
            "Show the opening hours of the branch at the market",
            [],
            ["B. <a id=0> Opening hours </a>", "C. <select id=1 branch> <option> Harbour </option>"],
        ),
        "Thought: The branch has to be chosen first.\nAnswer: C\nAction: SELECT\nValue: Market",
    ),
)
_RULES: Final = """You do tasks on web pages, one action at a time. I show you a part of a page and some of its
elements; you choose the one that the next action is on, and say what to do with it. Reply in this form:

Thought: why
Answer: the letter of the element
Action: CLICK, SELECT or TYPE
Value: what to select or type; leave the line out for a click

If the next action is on none of them, reply with Answer: A alone.

"""
_NAMED: Final = 20
# v0.2 shuffles with one generator for all that a worker plays.
_V0_2_SEED: Final = 123


class Browsing(Task):
    """The actions of a run. ``compat`` draws the orders as v0.2 does, in the order of the indices."""

    def __init__(self, records: Records, indices: Sequence[int], compat: bool) -> None:
        super().__init__(name="mind2web")
        self.records = records
        self.indices = indices
        self.compat = compat

    def get_indices(self) -> list[Any]:
        """Return the places of the actions in the data."""
        return list(self.indices)

    async def start_sample(self, index: Any, session: Session) -> TaskSampleExecutionResult:
        """Play the rounds of one action."""
        sample = self.records.samples[index]
        outputs: list[dict[str, Any]] = []
        # What no rank brings among the candidates no agent can find.
        if not sample.positives:
            return TaskSampleExecutionResult(SampleStatus.COMPLETED, _result(("", ""), outputs))
        rounds = self._rounds(index, sample)
        while rounds.goes_on:
            session.clear()
            session.inject(_opening())
            asked = rounds.next()
            output = await session.action({"role": "user", "content": asked})
            if output.status is AgentOutputStatus.CANCELLED:
                return TaskSampleExecutionResult(SampleStatus.UNKNOWN, _result(("", ""), outputs))
            if output.status is AgentOutputStatus.AGENT_CONTEXT_LIMIT:
                return TaskSampleExecutionResult(SampleStatus.AGENT_CONTEXT_LIMIT, _result(("", ""), outputs))
            reply = output.content or ""
            outputs.append({"asked": asked, "reply": reply})
            rounds.take(parsed(reply))
        predicted = rounds.prediction
        session.facts["rounds"] = rounds.asked
        status = SampleStatus.COMPLETED if predicted[0] else SampleStatus.AGENT_INVALID_ACTION
        return TaskSampleExecutionResult(status, _result(predicted, outputs))

    def _rounds(self, index: Any, sample: Sample) -> Rounds:
        if not self.compat:
            return Rounds(sample, least=1)
        draw = random.Random(_V0_2_SEED)  # noqa: S311 - repeatable draws are the point
        for other in range(index):
            # v0.2 gives up on an action without a right candidate before it shuffles.
            if self.records.samples[other].positives:
                draw.shuffle(list(self.records.samples[other].candidates))
        return Rounds(sample, draw)

    def calculate_overall(self, results: list[TaskOutput]) -> Any:
        """Return AgentBench's three, of 100, and ``main``, the step success rate of 1."""
        found = [self._judged(one) for one in results]
        count = len(found) or 1
        element, f1, step = (sum(part) / count for part in zip(*found, strict=True)) if found else (0.0, 0.0, 0.0)
        return {
            "main": step,
            "element_acc": 100 * element,
            "action_f1": 100 * f1,
            "step_sr": 100 * step,
            "excluded": list(self.records.broken[:_NAMED]),
        }

    def _judged(self, output: TaskOutput) -> tuple[float, float, float]:
        sample = self.records.samples[output.index]  # type: ignore[index]
        predicted = output.result["final_prediction"] if isinstance(output.result, Mapping) else ("", "")
        element = float(predicted[0] in sample.positives)
        f1 = action_f1(predicted[1], sample.operation.words)
        return element, f1, float(element == 1.0 and f1 >= 1.0)


def _opening() -> list[ChatItem]:
    items = []
    for number, (asked, said) in enumerate(_EXAMPLES):
        items += [ChatItem("user", (_RULES if number == 0 else "") + asked), ChatItem("agent", said)]
    return items


def _result(prediction: tuple[str, str], outputs: list[dict[str, Any]]) -> dict[str, Any]:
    return {"final_prediction": list(prediction), "outputs": outputs}
