"""AgentBench's ``Task``: what its environments, and a user's own tasks, are subclasses of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Sequence

from casewarden_sdk.errors import ContractError

from .messages import SampleIndex, TaskOutput, TaskSampleExecutionResult

if TYPE_CHECKING:
    from .session import Session

__all__ = ["V01_METHODS", "Task", "refuse_v01"]

V01_METHODS: Dict[str, str] = {
    "get_data": "get_indices (the indices) and __init__ (load the data there)",
    "predict_single": "async start_sample(index, session): ask by `await session.action(…)`, return status and result",
    "predict_all": "nothing: every index is a case with a pod of its own, spec.parallelism says how many at once",
    "metrics": "calculate_overall(results): one JSON object over all TaskOutputs",
}
"""The methods of an AgentBench v0.1 task, and what each becomes."""


def refuse_v01(name: str, found: Sequence[str]) -> ContractError:
    """Return the error for a v0.1 task: what becomes what."""
    moves = "; ".join(f"{method} becomes {V01_METHODS[method]}" for method in found)
    return ContractError(f"{name} is a task of AgentBench v0.1: {moves}. docs/agentbench.md shows a whole migration")


class Task:
    """A set of samples, how one is played, and what all of them come to.

    A subclass passes its ``name`` on, and ``concurrency`` where it is told one; Casewarden plays one sample per pod, so
    nothing of an instance is shared between samples, and ``concurrency`` limits nothing.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        old = [name for name in V01_METHODS if hasattr(cls, name)]
        # ``metrics`` alone says nothing: tasks of v0.2 may have one, and bases of tasks no start_sample yet.
        if set(old) - {"metrics"} and cls.start_sample is Task.start_sample:
            raise refuse_v01(cls.__name__, old)

    def __init__(self, name: str, concurrency: int = 1, *args: Any, **kwargs: Any) -> None:
        self.name = name
        self.concurrency = concurrency

    def get_indices(self) -> List[SampleIndex]:
        """Return the indices of the samples, in a fixed order: whole numbers or texts."""
        raise NotImplementedError(f"{type(self).__name__} has no get_indices")

    async def start_sample(self, index: SampleIndex, session: Session) -> TaskSampleExecutionResult:
        """Play one sample: ask the agent through ``session.action`` and return what came of it."""
        raise NotImplementedError(f"{type(self).__name__} has no start_sample")

    def calculate_overall(self, results: List[TaskOutput]) -> Any:
        """Return one JSON object over what the samples came to."""
        raise NotImplementedError(f"{type(self).__name__} has no calculate_overall")

    def release(self) -> None:
        """Let go of what the task holds. Called once, at the end of each pod: after its one sample, or its plan."""
