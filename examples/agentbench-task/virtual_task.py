"""A task as AgentBench v0.2 has them: it imports from AgentBench's own modules and knows nothing of Casewarden."""

import asyncio
from typing import Any, List

from src.server.task import Session, Task
from src.typings import SampleStatus, TaskOutput, TaskSampleExecutionResult


class VirtualTask(Task):
    """Ten samples of three turns each, which are all completed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(name="virtual-task", *args, **kwargs)

    def get_indices(self) -> List[Any]:
        """Return the samples."""
        return list(range(10))

    async def start_sample(self, index: Any, session: Session) -> TaskSampleExecutionResult:
        """Say three things to the agent, a second apart."""
        print(f"sample {index} begins")
        for loop in range(3):
            await asyncio.sleep(1)
            reply = await session.action({"role": "user", "content": f"Loop: {loop}"})
            print(f"sample {index}: {reply.content}")
        return TaskSampleExecutionResult(status=SampleStatus.COMPLETED, result={"result": "ok"})

    def calculate_overall(self, results: List[TaskOutput]) -> Any:
        """Return the score, which is always the same."""
        return {"score": 0.4}
