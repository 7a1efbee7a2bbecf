"""Lateral thinking puzzles as a task of AgentBench: a sample is a puzzle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from casewarden_sdk.agentbench import (
    AgentOutputStatus,
    SampleStatus,
    Session,
    Task,
    TaskOutput,
    TaskSampleExecutionResult,
)

from .host import Host, opening
from .judge import Judge
from .puzzles import Puzzle

__all__ = ["ROLE", "Puzzles"]

ROLE: Final = "judge"
_STATUSES: Final = {
    AgentOutputStatus.AGENT_CONTEXT_LIMIT: SampleStatus.AGENT_CONTEXT_LIMIT,
    AgentOutputStatus.CANCELLED: SampleStatus.UNKNOWN,
}
# The judge is to say the same again where it can.
_PARAMETERS: Final = {"temperature": 0}


class Puzzles(Task):
    """The puzzles of a run."""

    def __init__(
        self, puzzles: Sequence[Puzzle], indices: Sequence[int], rounds: int, repeats: int, compat: bool
    ) -> None:
        super().__init__(name="ltp")
        self.indices = indices
        self.puzzles = puzzles
        self.rounds = rounds
        self.repeats = repeats
        self.compat = compat

    def get_indices(self) -> list[Any]:
        """Return the rows that are played, from 0."""
        return list(self.indices)

    async def start_sample(self, index: Any, session: Session) -> TaskSampleExecutionResult:
        """Play one game."""
        puzzle = Puzzle.from_json(session.case.content["puzzle"])

        async def ask(messages: Sequence[Mapping[str, str]], control: Sequence[Mapping[str, str]]) -> str:
            answer = await session.runtime.ask_model(
                ROLE, list(messages), parameters=_PARAMETERS, control=list(control)
            )
            return str(answer["content"])

        host = Host(puzzle, Judge(puzzle, ask, self.repeats, self.compat), self.rounds, self.compat)
        text = opening(puzzle, self.rounds)
        while not host.over:
            output = await session.action({"role": "user", "content": text})
            if output.status is not AgentOutputStatus.NORMAL:
                session.facts["unfinished"] = host.result()
                return TaskSampleExecutionResult(_STATUSES[output.status], None)
            text = await host.take(output.content or "")
        result = host.result()
        early = host.round < self.rounds or result["finished"]
        return TaskSampleExecutionResult(SampleStatus.COMPLETED if early else SampleStatus.TASK_LIMIT_REACHED, result)

    def calculate_overall(self, results: list[TaskOutput]) -> Any:
        """Return the means of AgentBench, where a sample without a result counts 0, and how far the judge agreed."""
        found = [result.result for result in results if isinstance(result.result, Mapping)]

        def mean(name: str) -> float:
            return sum(one[name] for one in found) / len(results) if results else 0.0

        judgements = sum(one["judge"]["judgements"] for one in found)
        flipped = sum(one["judge"]["flipped"] for one in found)
        return {
            "main": mean("progress"),
            "RE": mean("efficiency"),
            "SGA": mean("accuracy"),
            "QR": mean("relevance"),
            "GP": mean("progress"),
            "judge": {
                "calls": sum(one["judge"]["calls"] for one in found),
                "judgements": judgements,
                "flipped": flipped,
                "agreement": 1 - flipped / judgements if judgements else 1.0,
            },
        }
