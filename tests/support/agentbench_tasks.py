"""Small AgentBench tasks, and a pack of one, for tests of what is around them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from casewarden_sdk.agentbench import SOURCES, AgentBenchPack, SampleStatus, Task, TaskSampleExecutionResult
from casewarden_sdk.contract import Case, Control, Limits

COUNTS = (
    "import json, sys\n"
    "for line in sys.stdin:\n"
    "    asked = json.loads(line)['messages'][-1]['content']\n"
    "    print(json.dumps({'role': 'assistant', 'content': str(len(asked))}), flush=True)\n"
)
SAYS_SEVEN = COUNTS.replace("str(len(asked))", "'7'")


class Lengths(Task):
    """Asks how long words are."""

    words: ClassVar = ["one", "three", "thirteen"]

    async def start_sample(self, index: Any, session: Any) -> TaskSampleExecutionResult:
        """Ask once."""
        word = self.words[int(index)]
        reply = await session.action({"role": "user", "content": word})
        return TaskSampleExecutionResult(SampleStatus.COMPLETED, {"answer": reply.content, "gold": str(len(word))})

    def get_indices(self) -> list[Any]:
        """Whole numbers, and a text."""
        return [0, 1, "2"]

    def calculate_overall(self, results: list[Any]) -> Any:
        """The share of right answers, and the indices as they came."""
        right = sum(
            result.result is not None and result.result["answer"] == result.result["gold"] for result in results
        )
        return {"overall": {"acc": right / len(results)}, "indices": [result.index for result in results]}


class LengthsPack(AgentBenchPack):
    """A pack of ``Lengths``, or of what ``make`` makes."""

    id = "lengths"
    version = "0.1.0"
    description = "Counts letters"
    contract = "Answer with the number of letters."
    score = "overall.acc"
    passes = "the answer is the number of letters"
    sources = (*SOURCES, __file__)
    limits = Limits(case_seconds=20, response_seconds=5, request_bytes=1 << 16)
    grace_seconds = 0.2
    controls: Sequence[Control] = (
        Control("reference", "reference", {"main.py": COUNTS}),
        Control("seven", "fault", {"main.py": SAYS_SEVEN}, target="success"),
    )
    make: Any = Lengths

    def task(self, params: Mapping[str, Any], seed: int) -> Task:
        """Make it."""
        made: Task = type(self).make("lengths")
        return made

    def passed(self, case: Case, output: Any, facts: Mapping[str, Any]) -> bool:
        """Compare."""
        return output.result is not None and output.result.get("answer") == output.result.get("gold")


PACK = LengthsPack()
NO_SCORE = type("NoScore", (LengthsPack,), {"score": "overall.nowhere"})()


class _Stubborn(Lengths):
    async def start_sample(self, index: Any, session: Any) -> TaskSampleExecutionResult:
        await session.action({"role": "user", "content": "go"})
        await asyncio.Event().wait()
        raise AssertionError("nobody gets here")


STUBBORN = type("StubbornPack", (LengthsPack,), {"make": _Stubborn})()
