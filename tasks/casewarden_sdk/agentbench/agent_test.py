"""A pack that only talks: does an agent answer at all, and how? ``casewarden agent-test`` runs it."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence

from casewarden_sdk.contract import JSON, Case, Limits
from casewarden_sdk.errors import ContractError

from .foreign import SAYS_NOTHING
from .messages import SampleIndex, TaskOutput, TaskSampleExecutionResult
from .pack import SOURCES, AgentBenchPack
from .session import Session
from .statuses import AgentOutputStatus, SampleStatus
from .task import Task

__all__ = ["CASE", "MESSAGES", "PACK"]

CASE = "conversation"
MESSAGES = ("Say hello, in one word.",)
_MOST = 20


class Conversation(Task):
    """Says some things to the agent, one after another."""

    def __init__(self, messages: Sequence[str]) -> None:
        super().__init__("agent-test")
        self.messages = messages

    def get_indices(self) -> List[SampleIndex]:
        """Return the one conversation."""
        return [CASE]

    async def start_sample(self, index: SampleIndex, session: Session) -> TaskSampleExecutionResult:
        """Say them all, for as long as the agent answers."""
        for message in self.messages:
            output = await session.action({"role": "user", "content": message})
            if output.status is AgentOutputStatus.AGENT_CONTEXT_LIMIT:
                return TaskSampleExecutionResult(SampleStatus.AGENT_CONTEXT_LIMIT, {"answered": False})
            if not (output.content or "").strip():
                return TaskSampleExecutionResult(SampleStatus.AGENT_VALIDATION_FAILED, {"answered": False})
        return TaskSampleExecutionResult(SampleStatus.COMPLETED, {"answered": True})

    def calculate_overall(self, results: List[TaskOutput]) -> Any:
        """Return the share of conversations with an answer to everything."""
        return {"answered": sum((output.result or {}).get("answered") is True for output in results) / len(results)}


class AgentTest(AgentBenchPack):
    """The pack; ``params.messages`` is what is said."""

    id = "agent-test"
    version = "0.1.0"
    description = "Does the agent answer?"
    contract = "# agent-test 0.1.0\n\nAnswer every message with a text that is not empty.\n"
    score = "answered"
    passes = "every message got an answer that is not empty"
    sources = (*SOURCES, __file__)
    controls = (SAYS_NOTHING,)
    limits = Limits(case_seconds=300, response_seconds=120, start_seconds=120, request_bytes=1 << 20)

    def task(self, params: Mapping[str, JSON], seed: int) -> Task:
        """Make the conversation."""
        for name in params:
            if name != "messages":
                raise ContractError(f"spec.task.params.{name}: agent-test has messages and nothing else; remove it")
        messages = params.get("messages", list(MESSAGES))
        good = isinstance(messages, list) and all(isinstance(text, str) and text for text in messages)
        if not good or not 1 <= len(messages) <= _MOST:
            raise ContractError(f"spec.task.params.messages: {messages!r:.80}; give 1 to {_MOST} texts as a list")
        return Conversation(messages)

    def passed(self, case: Case, output: TaskOutput, facts: Mapping[str, JSON]) -> bool:
        """Take the task's word."""
        return isinstance(output.result, dict) and output.result.get("answered") is True

    def explain(self, case: Case, output: TaskOutput, facts: Mapping[str, JSON]) -> Optional[str]:
        """Say what was missing."""
        return "a reply is empty"


PACK = AgentTest()
