"""A pack that reads a data set, in one file that imports the SDK alone, so that a test can hand it to a task image."""

from __future__ import annotations

from typing import Any

from casewarden_sdk.agentbench import AgentBenchPack, SampleStatus, Task, TaskSampleExecutionResult, open_dataset
from casewarden_sdk.agentbench.foreign import SAYS_NOTHING
from casewarden_sdk.contract import Limits

WORDS = "data/words.txt"


class Words(Task):
    """Asks for the words of the data set, one each."""

    def __init__(self, words: list[str]) -> None:
        super().__init__("words")
        self.words = words

    def get_indices(self) -> list[Any]:
        """A sample per word."""
        return list(range(len(self.words)))

    async def start_sample(self, index: Any, session: Any) -> TaskSampleExecutionResult:
        """Ask the agent to say it again."""
        word = session.case.content["word"]
        reply = await session.action({"role": "user", "content": word})
        return TaskSampleExecutionResult(SampleStatus.COMPLETED, reply.content == word)

    def calculate_overall(self, results: list[Any]) -> Any:
        """The share of words that came back."""
        return {"acc": sum(output.result is True for output in results) / len(results)}


class WordsPack(AgentBenchPack):
    """The pack."""

    id = "words"
    version = "0.1.0"
    description = "Says words again"
    contract = "Answer with what you are asked."
    score = "acc"
    passes = "the word came back"
    sources = (*AgentBenchPack.sources, __file__)
    controls = (SAYS_NOTHING,)
    limits = Limits(case_seconds=20, response_seconds=10)

    def task(self, params: Any, seed: int) -> Task:
        """Read the words."""
        data = open_dataset(params)
        return Words(["one"] if data is None else data.text(WORDS).split())

    def content(self, task: Any, index: Any) -> dict[str, Any]:
        """The word."""
        return {"word": task.words[index]}

    def passed(self, case: Any, output: Any, facts: Any) -> bool:
        """Take the result."""
        return output.result is True


PACK = WordsPack()
